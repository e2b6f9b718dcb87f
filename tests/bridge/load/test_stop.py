"""SIGTERM with many sessions stops the bridge within three seconds."""

import asyncio
import json
import os
import signal

import pytest
from websockets.asyncio.client import connect

from tests.bridge.guard.serving import serving

SESSIONS = 725
"""Enough sessions to slow down a stop that ends them one by one."""

STOP_S = 3.0
PATIENCE_S = 600


async def open_sessions(served, count, cwd):
    """Open sessions with our own agent, run a turn in each, and leave them open."""
    url = served.acp.replace("http://", "ws://")
    async with connect(url, additional_headers={"authorization": f"Bearer {served.token}"}, max_size=None) as socket:

        async def call(number, method, params):
            await socket.send(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}))
            async for text in socket:
                message = json.loads(text)
                if message.get("id") == number and "method" not in message:
                    return message["result"]
            raise AssertionError("the socket was closed")

        await call(0, "initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        for number in range(count):
            new = await call(2 * number + 1, "session/new", {"cwd": cwd, "mcpServers": []})
            prompt = {"sessionId": new["sessionId"], "prompt": [{"type": "text", "text": "hello"}]}
            await call(2 * number + 2, "session/prompt", prompt)


@pytest.mark.parametrize("count", [20, pytest.param(SESSIONS, marks=pytest.mark.soak)])
def test_bridge_stops_quickly_with_many_open_sessions(tmp_path, count):
    is_soak = count == SESSIONS
    if is_soak and not os.environ.get("DRAGOMAN_SOAK"):
        pytest.skip("long: set DRAGOMAN_SOAK=1, or run make soak")
    with serving(tmp_path, agent=()) as served:
        asyncio.run(asyncio.wait_for(open_sessions(served, count, str(tmp_path)), PATIENCE_S))
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(STOP_S if is_soak else PATIENCE_S) == 0
    histories = list((tmp_path / "bridge" / "dragoman").glob("*.jsonl"))
    assert len(histories) == count
