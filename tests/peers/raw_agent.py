"""An agent that sends exactly the messages of a script, right or wrong: `raw_agent.py JSON`.

The JSON maps each method to the actions at its first call, its second and so on; the last are repeated. The actions
are a list of:

    "text"                     a line, as it is
    {"result": …}, {"error": …}  the answer to the call
    {"update": …}              a `session/update` for session `s`
    {"method": …, …}           any message, with `jsonrpc` added
    {"hear": METHOD}           wait for a line with that method, or "answer", and say it
    {"wait": FIFO}             wait until somebody opens a named pipe to write
    {"long": CHARACTERS}       say that many characters
    {"exit": CODE, "stderr": …}, {"signal": NUMBER}

A method that is not there is answered with an empty result; notifications do nothing.
"""

import json
import os
import signal
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


def do(step, request_id):
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
