"""Hostile servers of a few lines each, which control every byte that they write."""

import sys
import textwrap

from dragoman.mcp.definition import StdioServer

PRELUDE = '''
import json, os, sys

def send(**message):
    put(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\\n")

def put(data):
    while data:
        data = data[os.write(1, data):]

def messages():
    for line in sys.stdin.buffer:
        yield json.loads(line)

def greet(message, **capabilities):
    """Answer the handshake and the lists; return whether that was all that the message asked for."""
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        info = {"name": "hostile", "version": "1"}
        result = {"protocolVersion": message["params"]["protocolVersion"], "serverInfo": info}
        send(id=id, result={**result, "capabilities": capabilities or {"tools": {}}})
    elif method == "ping":
        send(id=id, result={})
    elif method == "tools/list":
        send(id=id, result={"tools": TOOLS})
    elif method == "prompts/list":
        send(id=id, result={"prompts": PROMPTS})
    return method != "tools/call" and method != "prompts/get"

def say(id, words="done", **more):
    send(id=id, result={"content": [{"type": "text", "text": words}], **more})

TOOLS = [{"name": "echo", "inputSchema": {"type": "object"}}]
PROMPTS = []
'''


def hostile_command(code):
    """Return the command of a server that runs this code after the helpers above."""
    return [sys.executable, "-I", "-S", "-c", PRELUDE + textwrap.dedent(code)]


def hostile(code, *args, name="one", env=()):
    """Return the definition of such a server."""
    command, *rest = hostile_command(code)
    return StdioServer(name, command, (*rest, *args), tuple(env))
