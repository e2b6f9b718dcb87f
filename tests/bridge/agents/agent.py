"""`agent.py JSON`: an agent that follows its prompts. JSON has its capabilities, session directory and faults.

A prompt is the command `/steps` (so that the bridge makes no title of it) and the JSON of a list of steps:

    {"say": TEXT}, {"update": …}, {"line": TEXT}, {"flood": COUNT}, {"drip": COUNT}, {"large": BYTES}
    {"ask": OPTIONS}, {"request": [METHOD, PARAMS]}   and report the answer
    {"notify": [METHOD, PARAMS]}, {"until": PATH}, {"cancel": true}
    {"leave": true}   starts a process that keeps the pipes open
    {"echo": PIECES, "id": …}   repeats the prompt: its text in pieces, its "blocks", or all of it "joined"
    {"steered": OUTCOME}   waits for a message into the turn, repeats it and reports that outcome
    {"exit": CODE, "stderr": …, "partial": …}, {"stop": REASON}, {"error": …}

`results` in its settings has answers by method, or by method and cursor. `string_ids` is a method whose answers have
the id as a string. The string "DEEP" in its messages becomes deeply nested brackets.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

SETTINGS = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
STORE = Path(SETTINGS["store"]) if "store" in SETTINGS else None
BACKLOG = []
DEEP = "[" * 1_000 + "]" * 1_000
COUNTER = {"session": 0, "request": 0}

if SETTINGS.get("ignores_sigterm"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


class Cancelled(Exception):
    pass


def write(message):
    write_line(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).replace('"DEEP"', DEEP))


def write_line(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def read():
    line = sys.stdin.readline()
    if not line:
        linger()
        os._exit(0)
    log(line)
    return json.loads(line)


def linger():
    """Create a file when asked to exit, and wait for another file before exiting."""
    if "lingers" in SETTINGS:
        Path(SETTINGS["lingers"] + ".asked").touch()
        while not os.path.exists(SETTINGS["lingers"]):
            time.sleep(0.002)


def log(line):
    if "log" in SETTINGS:
        with open(SETTINGS["log"], "a") as file:
            file.write(line)


def update(session, content):
    line = make_update(session, content)
    write_line(line)
    keep(session, line)


def make_update(session, content):
    return json.dumps(
        {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": content}},
        separators=(",", ":"),
    )


def keep(session, line):
    if STORE is not None:
        with (STORE / session).open("a") as file:
            file.write(line + "\n")


def say(session, text):
    update(session, {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})


def request(method, params):
    COUNTER["request"] += 1
    request_id = SETTINGS.get("request_id", f"r{COUNTER['request']}")
    write({"id": request_id, "method": method, "params": params})
    while True:
        message = read()
        if "method" not in message and message.get("id") == request_id:
            return {key: message[key] for key in ("result", "error") if key in message}
        if message.get("method") != "session/cancel":
            BACKLOG.append(message)


def echo(session, blocks, shape, message_id):
    """Send the prompt back, as version 1 allows."""
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    if isinstance(shape, int):
        size = -(-len(texts[0]) // shape)
        chunks = [{"type": "text", "text": texts[0][at : at + size]} for at in range(0, len(texts[0]), size)]
    elif shape == "blocks":
        chunks = blocks
    else:
        words = [block.get("text") or f"[{block['type']} {block.get('uri', '')}]" for block in blocks]
        chunks = [{"type": "text", "text": "\n\n".join(words)}]
    for chunk in chunks:
        named = {"messageId": message_id} if message_id else {}
        write_line(make_update(session, {"sessionUpdate": "user_message_chunk", **named, "content": chunk}))


def do(session, step):  # noqa: C901 -- a list of steps
    match step:
        case {"say": text}:
            say(session, text)
        case {"update": content}:
            update(session, content)
        case {"line": text}:
            write_line(text)
        case {"flood": count}:
            for number in range(count):
                say(session, f"{number}")
        case {"drip": count}:
            for number in range(count):
                say(session, f"{number}")
                time.sleep(0.005)
        case {"large": size}:
            say(session, "x" * size)
        case {"ask": options}:
            call = {"toolCallId": "c1", "title": "Do it"}
            answer = request("session/request_permission", {"sessionId": session, "toolCall": call, "options": options})
            say(session, json.dumps(answer, sort_keys=True))
        case {"request": [method, params]}:
            say(session, json.dumps(request(method, {"sessionId": session, **params}), sort_keys=True))
        case {"request_bare": [method, params]}:
            say(session, json.dumps(request(method, params), sort_keys=True))
        case {"notify": [method, params]}:
            write({"method": method, "params": params})
        case {"until": path}:
            while not os.path.exists(path):
                time.sleep(0.002)
        case {"cancel": _}:
            while read().get("method") != "session/cancel":
                pass
            raise Cancelled
        case {"hear": method}:
            while (message := read()).get("method") != method:
                pass
            say(session, json.dumps(message, sort_keys=True))
        case {"steered": outcome}:
            while (message := read()).get("method") != "_session/steering":
                pass
            echo(session, message["params"]["prompt"], "blocks", None)
            write({"id": message["id"], "result": {"outcome": outcome}})
        case {"leave": _}:
            subprocess.Popen(["sleep", "600"])
        case {"exit": code}:
            sys.stdout.write(step.get("partial", ""))
            sys.stdout.flush()
            print(step.get("stderr", ""), file=sys.stderr, flush=True)
            os._exit(code)


def prompt(message):
    session = message["params"]["sessionId"]
    result = {"stopReason": "end_turn"}
    for block in message["params"]["prompt"] if STORE is not None and (STORE / session).exists() else ():
        keep(session, make_update(session, {"sessionUpdate": "user_message_chunk", "content": block}))
    try:
        for step in json.loads(message["params"]["prompt"][0]["text"].removeprefix("/steps ")):
            if "stop" in step:
                result = {"stopReason": step["stop"]}
            elif "error" in step:
                write({"id": message["id"], "error": step["error"]})
                return
            elif "echo" in step:
                echo(session, message["params"]["prompt"], step["echo"], step.get("id"))
            else:
                do(session, step)
    except Cancelled:
        result = {"stopReason": "cancelled"}
    write({"id": message["id"], "result": result})


MODES = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]}


def new(message):
    if "new_waits" in SETTINGS:
        do(None, {"until": SETTINGS["new_waits"]})
    if "new_elicits" in SETTINGS:
        request("elicitation/create", {"requestId": message["id"], "mode": "form", "message": "Who?"})
    COUNTER["session"] += 1
    session = SETTINGS.get("session_id") or f"s{os.getpid()}-{COUNTER['session']}"
    if STORE is not None:
        (STORE / session).touch()
    if SETTINGS.get("early"):
        say(session, "early")
    write({"id": message["id"], "result": {"sessionId": session, "modes": MODES, "unknown": {"x": None}}})
    if SETTINGS.get("late"):
        say(session, "late")


def load(message):
    session = message["params"]["sessionId"]
    if "load_waits" in SETTINGS:
        do(session, {"until": SETTINGS["load_waits"]})
    path = STORE / session if STORE else None
    if path is None or not path.exists():
        write({"id": message["id"], "error": {"code": -32002, "message": "no such session here", "data": session}})
        return
    if "login" in SETTINGS and not os.path.exists(SETTINGS["login"]):
        error = {"code": -32000, "message": "Authentication required", "data": "the token is too old"}
        write({"id": message["id"], "error": error})
        return
    if "load_fails" in SETTINGS and not os.path.exists(SETTINGS["load_fails"][0]):
        Path(SETTINGS["load_fails"][0]).touch()
        write({"id": message["id"], "error": {"code": SETTINGS["load_fails"][1], "message": "not now"}})
        return
    if "load_dies" in SETTINGS and not os.path.exists(SETTINGS["load_dies"]):
        Path(SETTINGS["load_dies"]).touch()
        write_line(path.read_text().splitlines()[0])
        os._exit(5)
    if message["method"] == "session/load":
        for line in path.read_text().splitlines():
            write_line(line)
    if "load_holds" in SETTINGS:
        do(session, {"until": SETTINGS["load_holds"]})
    answer = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"modes": MODES}}, separators=(",", ":"))
    if "load_tells" in SETTINGS:  # in the same write as the answer
        content = {"type": "text", "text": SETTINGS["load_tells"]}
        answer += "\n" + make_update(session, {"sessionUpdate": "agent_message_chunk", "content": content})
    write_line(answer)


def handle(message):
    if SETTINGS.get("string_ids") == message.get("method"):
        message["id"] = str(message["id"])
    answer(message)


def answer(message):  # noqa: C901 -- a list of methods
    if message.get("method") in SETTINGS.get("unrouted", ()):
        write({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
        return
    results = SETTINGS.get("results", {})
    named = f"{message.get('method')} {message.get('params', {}).get('cursor', '')}".strip()
    if named in results:
        write({"id": message["id"], **results[named]})
        return
    match message.get("method"):
        case "initialize":
            initialize(message)
        case "session/new" | "session/fork":
            new(message)
        case "session/load" | "session/resume":
            load(message)
        case "session/prompt":
            prompt(message)
        case "session/delete":
            if STORE is not None:
                (STORE / message["params"]["sessionId"]).unlink(missing_ok=True)
            unknown = {"error": {"code": -32002, "message": "Resource not found"}}
            write({"id": message["id"], **(unknown if SETTINGS.get("forgets") else {"result": {}})})
        case "authenticate":
            Path(SETTINGS["login"]).touch()
            write({"id": message["id"], "result": {}})
        case "_elicit":
            params = {"requestId": message["id"], "mode": "form", "message": "Who?", "requestedSchema": {}}
            write({"id": message["id"], "result": request("elicitation/create", params)})
        case "_echo":
            write({"id": message["id"], "result": message["params"], "extra": {"kept": None}})
        case "_refuse":
            write({"id": message["id"], "error": {"code": -32099, "message": "no", "data": {"why": None}}})
        case "_null":
            write({"id": message["id"], "result": None})
        case "_twice":
            write({"id": message["id"], "result": 1})
            write({"id": message["id"], "result": 2})
        case None:
            pass
        case _ if "id" in message:
            write({"id": message["id"], "result": {}})


def initialize(message):
    if SETTINGS.get("fears") in message["params"].get("clientCapabilities", {}):
        os._exit(3)
    match SETTINGS.get("initialize"):
        case "never":
            while True:
                read()
        case "exit":
            print("cannot begin", file=sys.stderr, flush=True)
            os._exit(4)
        case "garbage":
            print("Welcome to the agent!")
            print("usage: agent --acp", flush=True)
            os._exit(2)
        case "error":
            write({"id": message["id"], "error": {"code": -32000, "message": "log in first"}})
            return
    capabilities = SETTINGS.get("capabilities", {})
    result = {"protocolVersion": 1, "agentCapabilities": capabilities, "_meta": {"mine": 1}, "strange": [None]}
    write({"id": message["id"], "result": result})


def main():
    if "starts" in SETTINGS:
        with open(SETTINGS["starts"], "a") as file:
            file.write("x")
        if os.path.getsize(SETTINGS["starts"]) in SETTINGS.get("dies_at_start", []):
            os._exit(9)
    while True:
        handle(BACKLOG.pop(0) if BACKLOG else read())


main()
