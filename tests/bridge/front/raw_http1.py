"""Raw HTTP/1.1, for requests that no client library sends."""

import asyncio
import json

from tests.bridge.front.client import PATIENCE_S
from tests.bridge.front.serving import TOKEN

INITIALIZE = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}).encode()


async def connect(served):
    return await asyncio.open_connection("127.0.0.1", served.port)


def head(served, length, *more):
    lines = [
        "POST /acp HTTP/1.1",
        f"host: 127.0.0.1:{served.port}",
        f"authorization: Bearer {TOKEN}",
        "content-type: application/json",
        f"content-length: {length}",
        *more,
    ]
    return "\r\n".join([*lines, "", ""]).encode()


async def status_of(reader) -> int:
    line = await asyncio.wait_for(reader.readline(), PATIENCE_S)
    return int(line.split()[1])
