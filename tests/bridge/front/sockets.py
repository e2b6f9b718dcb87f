"""Viewers over a WebSocket, with the client of `websockets`."""

import asyncio
import json

from websockets.asyncio.client import connect

from tests.bridge.front.client import PATIENCE_S

INITIALIZE = {"id": 0, "method": "initialize", "params": {"protocolVersion": 1, "clientCapabilities": {}}}


def dial(served, path="/acp", **options):
    headers = options.pop("headers", served.headers)
    url = f"ws://{options.pop('name', '127.0.0.1')}:{served.port}{path}"
    return connect(
        url,
        host="127.0.0.1",
        port=served.port,
        additional_headers=headers,
        max_size=None,
        open_timeout=PATIENCE_S,
        **options,
    )


async def call(socket, **message):
    await socket.send(json.dumps({"jsonrpc": "2.0", **message}))
    return (await until_answer(socket, message["id"]))[-1]


async def until_answer(socket, number):
    taken = []
    async with asyncio.timeout(PATIENCE_S):
        async for text in socket:
            taken.append(json.loads(text))
            if taken[-1].get("id") == number and "method" not in taken[-1]:
                return taken
    raise AssertionError("the socket was closed")


async def open_session(socket) -> str:
    await call(socket, **INITIALIZE)
    answer = await call(socket, id=1, method="session/new", params={"cwd": "/", "mcpServers": []})
    return answer["result"]["sessionId"]


def order(session, **what):
    params = {"sessionId": session, "prompt": [{"type": "text", "text": json.dumps(what)}]}
    return json.dumps({"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": params})
