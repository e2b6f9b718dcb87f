"""A stdio agent for these tests, which follows the JSON in the prompt.

{"chunks": 3, "bytes": 10}   three updates of ten letters each, numbered
{"ask": true}                a permission request, whose answer is returned as an update

With `--load` it advertises `session/load`, although it has no sessions.
"""

import json
import sys
from itertools import count

_sessions = count(1)
_asked: dict[str, dict] = {}


def write(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")


def say(session, text):
    content = {"type": "text", "text": text}
    update = {"sessionUpdate": "agent_message_chunk", "content": content}
    write(method="session/update", params={"sessionId": session, "update": update})


def prompt(message):
    session = message["params"]["sessionId"]
    order = json.loads(message["params"]["prompt"][0]["text"])
    if order.get("ask"):
        _asked["ask-1"] = message
        options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
        call = {"toolCallId": "call-1", "title": "A deed"}
        params = {"sessionId": session, "toolCall": call, "options": options}
        write(id="ask-1", method="session/request_permission", params=params)
        return
    for number in range(order.get("chunks", 0)):
        say(session, f"{number}:" + "x" * order.get("bytes", 0))
    write(id=message["id"], result={"stopReason": "end_turn"})


def settle(message):
    asked = _asked.pop(message["id"])
    say(asked["params"]["sessionId"], json.dumps(message["result"]))
    write(id=asked["id"], result={"stopReason": "end_turn"})


def handle(message):
    method = message.get("method")
    if method is None:
        settle(message)
    elif method == "initialize":
        can = {"loadSession": "--load" in sys.argv}
        write(id=message["id"], result={"protocolVersion": 1, "agentCapabilities": can, "authMethods": []})
    elif method == "session/new":
        write(id=message["id"], result={"sessionId": f"session-{next(_sessions)}"})
    elif method == "session/prompt":
        prompt(message)
    elif "id" in message:
        write(id=message["id"], error={"code": -32601, "message": "Method not found", "data": {"method": method}})


for line in sys.stdin:
    handle(json.loads(line))
    sys.stdout.flush()
