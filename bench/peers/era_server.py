"""A very cheap MCP server of one era: `era_server.py legacy|modern`. Its only tool is `echo`."""

import json
import sys
from typing import Any

VERSIONS = {"legacy": "2025-11-25", "modern": "2026-07-28"}
TOOLS = [{"name": "echo", "description": "Echo.", "inputSchema": {"type": "object"}}]


def respond(method: str, params: dict[str, Any], era: str) -> dict[str, Any]:
    told: dict[str, Any] = {"capabilities": {"tools": {}}}
    match method, era:
        case "server/discover", "modern":
            return {"result": {"resultType": "complete", "supportedVersions": [VERSIONS[era]], **told}}
        case "initialize", "legacy":
            return {"result": {"protocolVersion": VERSIONS[era], "serverInfo": {"name": "era", "version": "1"}, **told}}
        case "ping", "legacy":
            return {"result": {}}
        case "tools/list", _:
            return {"result": {"resultType": "complete", "tools": TOOLS}}
        case "tools/call", _:
            text = params["arguments"]["text"]
            return {"result": {"resultType": "complete", "content": [{"type": "text", "text": text}]}}
        case _:
            return {"error": {"code": -32601, "message": "Method not found"}}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            answer = respond(message["method"], message.get("params", {}), sys.argv[1])
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)


main()
