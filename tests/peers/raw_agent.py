"""An agent that sends exactly the messages of a script, valid or not: `raw_agent.py JSON`.

The JSON maps each method to the actions of its first call, its second and so on. The last ones are repeated. The
actions are a list of:

    "text"                     a line, unchanged
    {"result": …}, {"error": …}  the response to the call
    {"update": …}              a `session/update` for session `s`
    {"method": …, …}           any message, with `jsonrpc` added
    {"hear": METHOD}           wait for a line with that method, or "answer", and repeat it as text
    {"wait": FIFO}             wait until a named pipe is opened for writing
    {"long": CHARACTERS}       send that many characters
    {"leave": true}            start a process that keeps the pipes of this one open
    {"exit": CODE, "stderr": …}, {"signal": NUMBER}

A method that is not listed is answered with an empty result. Notifications do nothing.
"""

import json
import os
import signal
import subprocess
import sys
from collections import Counter

DEFAULTS = {
    "initialize": [[{"result": {"protocolVersion": 1}}]],
    "session/new": [[{"result": {"sessionId": "s"}}]],
    "session/prompt": [[{"result": {"stopReason": "end_turn"}}]],
}


def write(message):
    line = message if isinstance(message, str) else json.dumps({"jsonrpc": "2.0", **message})
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def update(content, session_id="s"):
    write({"method": "session/update", "params": {"sessionId": session_id, "update": content}})


def say(text):
    update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})


def hear(wanted):
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method", "answer") == wanted:
            say(json.dumps(message, sort_keys=True))
            return


def do(step, request_id):  # noqa: C901 -- a list of steps
    match step:
        case str():
            write(step)
        case {"result": _} | {"error": _}:
            write({"id": request_id, **step})
        case {"update": content}:
            update(content, step.get("sessionId", "s"))
        case {"long": characters}:
            say("x" * characters)
        case {"wait": fifo}:
            with open(fifo):
                pass
        case {"method": _}:
            write(step)
        case {"hear": wanted}:
            hear(wanted)
        case {"leave": _}:
            subprocess.Popen(["sleep", "600"])
        case {"exit": code}:
            print(step.get("stderr", ""), file=sys.stderr, flush=True)
            os._exit(code)
        case {"signal": number}:
            os.kill(os.getpid(), number)
            signal.pause()


def main():
    script = DEFAULTS | json.loads(sys.argv[1])
    calls = Counter()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        turns = script.get(message["method"], [[{"result": {}}]])
        for step in turns[min(calls[message["method"]], len(turns) - 1)]:
            do(step, message["id"])
        calls[message["method"]] += 1


if __name__ == "__main__":
    main()
