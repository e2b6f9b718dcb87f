"""`agent_v2.py JSON`: an agent of ACP version 2 that follows its prompts. JSON has the versions that it refuses.

A prompt is the command `/steps` and the JSON of a list of steps:

    {"say": TEXT}, {"update": …}, {"call": ID}, {"until": PATH}, {"cancel": true}, {"exit": CODE}
    {"ask": OPTIONS}   and reports the answer
    {"later": PATH}    work that it starts after the turn, once the file exists
    {"refuse": …}      an error in place of {messageId}

Prompts during a turn are run after it.
"""

import json
import os
import sys
import time
from pathlib import Path

SETTINGS = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
STORE = Path(SETTINGS["store"]) if "store" in SETTINGS else None
BACKLOG = []
COUNTER = {"session": 0, "request": 0, "message": 0}
OPTION = {
    "type": "select",
    "configId": "mode",
    "name": "Mode",
    "category": "mode",
    "currentValue": "ask",
    "options": [{"value": "ask", "name": "Ask"}, {"value": "code", "name": "Code"}],
}
COMMANDS = [{"type": "command", "name": "plan", "description": "Plan first"}]


class Cancelled(Exception):
    pass


def write(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def read():
    line = sys.stdin.readline()
    if not line:
        os._exit(0)
    if "log" in SETTINGS:
        with open(SETTINGS["log"], "a") as file:
            file.write(line)
    return json.loads(line)


def update(session, content):
    message = {"method": "session/update", "params": {"sessionId": session, "update": content}}
    write(message)
    if STORE is not None and content["sessionUpdate"] != "state_update":
        with (STORE / session).open("a") as file:
            file.write(json.dumps(message) + "\n")


def state(session, name, **more):
    update(session, {"sessionUpdate": "state_update", "state": name, **more})


def next_id():
    COUNTER["message"] += 1
    return f"m{os.getpid()}-{COUNTER['message']}"


def say(session, text, message_id):
    content = {"type": "text", "text": text}
    update(session, {"sessionUpdate": "agent_message_chunk", "messageId": message_id, "content": content})


def request(method, params):
    COUNTER["request"] += 1
    request_id = f"r{COUNTER['request']}"
    write({"id": request_id, "method": method, "params": params})
    while True:
        message = read()
        if "method" not in message and message.get("id") == request_id:
            return {key: message[key] for key in ("result", "error") if key in message}
        BACKLOG.append(message)


def do(session, step, message_id):
    match step:
        case {"say": text}:
            say(session, text, message_id)
        case {"update": content}:
            update(session, content)
        case {"call": call_id}:
            text = {"type": "content", "content": {"type": "text", "text": "one"}}
            call = {"sessionUpdate": "tool_call_update", "toolCallId": call_id, "title": "Look", "kind": "read"}
            update(session, {**call, "status": "in_progress"})
            update(session, {"sessionUpdate": "tool_call_content_chunk", "toolCallId": call_id, "content": text})
            update(session, {"sessionUpdate": "tool_call_update", "toolCallId": call_id, "status": "completed"})
        case {"ask": options}:
            state(session, "requires_action")
            subject = {"type": "tool_call", "toolCall": {"toolCallId": "c1", "title": "Do it"}}
            params = {"sessionId": session, "title": "May I?", "subject": subject, "options": options}
            answer = request("session/request_permission", params)
            state(session, "running")
            say(session, json.dumps(answer, sort_keys=True), message_id)
        case {"until": path}:
            while not os.path.exists(path):
                time.sleep(0.002)
        case {"cancel": _}:
            while (message := read()).get("method") != "session/cancel":
                BACKLOG.append(message)
            raise Cancelled
        case {"exit": code}:
            os._exit(code)


def prompt(message):
    session = message["params"]["sessionId"]
    blocks = message["params"]["prompt"]
    steps = json.loads(blocks[0]["text"].removeprefix("/steps "))
    if steps and "refuse" in steps[0]:
        write({"id": message["id"], "error": steps[0]["refuse"]})
        return
    said = next_id()
    state(session, "running")
    if SETTINGS.get("echoes_first"):
        update(session, {"sessionUpdate": "user_message", "messageId": said, "content": blocks})
    write({"id": message["id"], "result": {"messageId": said}})
    if not SETTINGS.get("echoes_first"):
        update(session, {"sessionUpdate": "user_message", "messageId": said, "content": blocks})
    reason = "end_turn"
    try:
        for step in steps:
            do(session, step, f"{said}-answer")
    except Cancelled:
        reason = "cancelled"
    state(session, "idle", stopReason=reason)
    for step in steps:
        if "later" in step:
            do(session, {"until": step["later"]}, "")
            state(session, "running")
            say(session, "by myself", next_id())
            do(session, {"until": step["later"] + ".end"}, "")
            state(session, "idle", stopReason="end_turn")


def resume(message):
    session = message["params"]["sessionId"]
    path = STORE / session if STORE else None
    if path is None or not path.exists():
        write(
            {
                "id": message["id"],
                "error": {"code": -32002, "message": "no such session", "data": {"sessionId": session}},
            }
        )
        return
    if message["params"].get("replayFrom"):
        sys.stdout.write(path.read_text())
    state(session, "idle")
    write({"id": message["id"], "result": {"configOptions": [OPTION], "availableCommands": COMMANDS}})


def handle(message):  # noqa: C901 -- a list of methods
    params = message.get("params", {})
    match message.get("method"):
        case "initialize":
            asked = params["protocolVersion"]
            if asked < 2:
                data = {"requested": asked, "supported": [2]}
                write({"id": message["id"], "error": {"code": -32022, "message": "Unsupported version", "data": data}})
                return
            session = {"prompt": {"image": {}}, "mcp": {"stdio": {}}, **SETTINGS.get("session", {})}
            info = {"name": "two", "version": "1"}
            methods = [{"type": "agent", "methodId": "key", "name": "Key"}]
            result = {"protocolVersion": 2, "info": info, "capabilities": {"session": session}, "authMethods": methods}
            write({"id": message["id"], "result": result})
        case "session/new":
            COUNTER["session"] += 1
            session = f"t{os.getpid()}-{COUNTER['session']}"
            if STORE is not None:
                (STORE / session).touch()
            result = {"sessionId": session, "configOptions": [OPTION], "availableCommands": COMMANDS}
            write({"id": message["id"], "result": result})
        case "session/resume":
            resume(message)
        case "session/prompt":
            prompt(message)
        case "session/set_config_option":
            OPTION["currentValue"] = params["value"]
            write({"id": message["id"], "result": {"configOptions": [OPTION]}})
        case "session/list":
            names = [f"t{os.getpid()}-{number + 1}" for number in range(COUNTER["session"])]
            sessions = [{"sessionId": name, "cwd": "/work"} for name in names]
            write({"id": message["id"], "result": {"sessions": sessions}})
        case "_echo":
            write({"id": message["id"], "result": params})
        case _ if "id" in message and "method" in message:
            write({"id": message["id"], "result": {}})


while True:
    handle(BACKLOG.pop(0) if BACKLOG else read())
