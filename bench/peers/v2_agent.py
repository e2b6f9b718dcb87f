"""A very cheap agent of ACP version 2, which writes the chunks that a prompt requests in blocks.

The first text block of a prompt is a JSON object with the number of ``chunks`` and their ``size``.
"""

import json
import os
import sys

SESSION_ID = "0" * 32
LINES_A_WRITE = 400


def write(message: dict[str, object]) -> None:
    os.write(1, json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n")


def update(content: dict[str, object]) -> dict[str, object]:
    return {"method": "session/update", "params": {"sessionId": SESSION_ID, "update": content}}


def write_all(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def prompt(request_id: object, params: dict[str, list[dict[str, str]]]) -> None:
    order = json.loads(params["prompt"][0]["text"])
    write(update({"sessionUpdate": "state_update", "state": "running"}))
    write({"id": request_id, "result": {"messageId": "question"}})
    write(update({"sessionUpdate": "user_message", "messageId": "question", "content": params["prompt"]}))
    content = {"type": "text", "text": "x" * order.get("size", 0)}
    chunk = update({"sessionUpdate": "agent_message_chunk", "messageId": "answer", "content": content})
    line = json.dumps({"jsonrpc": "2.0", **chunk}, separators=(",", ":")).encode() + b"\n"
    left = order.get("chunks", 0)
    while left:
        count = min(left, LINES_A_WRITE)
        write_all(line * count)
        left -= count
    write(update({"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"}))


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        match message.get("method"):
            case "initialize" if message["params"]["protocolVersion"] < 2:
                write({"id": message["id"], "error": {"code": -32022, "message": "Unsupported protocol version"}})
            case "initialize":
                info = {"name": "bench", "version": "1"}
                result = {"protocolVersion": 2, "info": info, "capabilities": {"session": {}}}
                write({"id": message["id"], "result": result})
            case "session/new":
                write({"id": message["id"], "result": {"sessionId": SESSION_ID}})
            case "session/prompt":
                prompt(message["id"], message["params"])


if __name__ == "__main__":
    main()
