"""`plain_client.py COMMAND…`: a small client that sends one prompt and denies all requests."""

import json
import subprocess
import sys

agent = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def write(**message):
    agent.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    agent.stdin.flush()


def ask(number, method, **params):
    """Send a request and return its answer, or nothing if the agent exits. Deny the agent's requests until then."""
    write(id=number, method=method, params=params)
    for line in agent.stdout:
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if "method" in message and "id" in message:
            write(id=message["id"], **deny(message))
        elif message.get("id") == number:
            return message.get("result", {})
    sys.exit(1)


def deny(message):
    """Return the denial of a request from the agent."""
    if message["method"] != "session/request_permission":
        return {"error": {"code": -32601, "message": "Method not found"}}
    rejecting = [option["optionId"] for option in message["params"]["options"] if option["kind"].startswith("reject")]
    outcome = {"outcome": "selected", "optionId": rejecting[0]} if rejecting else {"outcome": "cancelled"}
    return {"result": {"outcome": outcome}}


info = {"name": "plain", "title": "Plain", "version": "1.0.0"}
if ask(0, "initialize", protocolVersion=1, clientCapabilities={}, clientInfo=info).get("protocolVersion") == 1:
    session = ask(1, "session/new", cwd="/", mcpServers=[])
    ask(2, "session/prompt", sessionId=session["sessionId"], prompt=[{"type": "text", "text": "go"}])
agent.stdin.close()
