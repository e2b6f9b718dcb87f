"""A stdio agent that requests a login with the state in the prompt, and reports the result."""

import json
import sys


def write(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")


def say(what):
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": json.dumps(what)}}
    write(method="session/update", params={"sessionId": "session-1", "update": update})


def handle(message):
    match message:
        case {"method": "initialize", "id": id_, "params": params}:
            can = {"_meta": {"told": params["clientCapabilities"]["_meta"]}}
            write(id=id_, result={"protocolVersion": 1, "agentCapabilities": can, "authMethods": []})
        case {"method": "session/new", "id": id_}:
            write(id=id_, result={"sessionId": "session-1"})
        case {"method": "session/prompt", "id": id_, "params": params}:
            state = json.loads(params["prompt"][0]["text"])["state"]
            write(id="redirect", method="_dragoman/oauth/redirect", params={"sessionId": "session-1"})
            login = {"dragoman/oauth": {"server": "<i>tickets</i>", "state": state}}
            question = {"mode": "url", "message": "Log in", "url": "https://example.org", "elicitationId": "one"}
            write(id="ask", method="elicitation/create", params={**question, "sessionId": "session-1", "_meta": login})
            write(id=id_, result={"stopReason": "end_turn"})
        case {"method": "_dragoman/oauth/callback", "id": id_, "params": params}:
            say(params)
            write(id=id_, result={"taken": params.get("code") != "late"})
        case {"id": "redirect", "result": result}:
            say(result)
    sys.stdout.flush()


for line in sys.stdin:
    handle(json.loads(line))
