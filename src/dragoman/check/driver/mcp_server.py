"""A small MCP server on stdio that leaves a marker file when it starts. The agent under check runs it as a script.

It imports nothing from dragoman, because the agent controls its environment.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

TOOL = {"name": "check_echo", "description": "Returns what it is given.", "inputSchema": {"type": "object"}}


def _result(message: dict[str, Any]) -> dict[str, Any] | None:
    match message.get("method"):
        case "initialize":
            version = message["params"]["protocolVersion"]
            info = {"name": "dragoman-check", "version": "1"}
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            return {"content": [{"type": "text", "text": "checked"}]}
        case "ping":
            return {}
        case _:
            return None


def answer(message: dict[str, Any]) -> dict[str, Any] | None:
    """Return the answer to a request, or None for another message."""
    if "id" not in message or "method" not in message:
        return None
    result = _result(message)
    error = {"code": -32601, "message": "Method not found"}
    return {"jsonrpc": "2.0", "id": message["id"], **({"error": error} if result is None else {"result": result})}


def main(marks: Path) -> None:
    """Serve until stdin ends. Leave a file named after our process id in `marks`."""
    (marks / str(os.getpid())).write_text(str(Path.cwd()))
    for line in sys.stdin:
        reply = answer(json.loads(line))
        if reply is not None:
            print(json.dumps(reply), flush=True)  # noqa: T201 -- the protocol uses stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]))
