"""Stopping the server with open streams."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed

from tests.bridge.front.http2 import connect_http2, open_session, open_viewer, prompt
from tests.bridge.front.serving import serving
from tests.bridge.front.sockets import INITIALIZE, call, dial
from tests.proc.processes import alive, children_of


async def test_stopping_the_server_ends_open_streams(tmp_path):
    async with asyncio.timeout(30):
        async with serving(tmp_path) as served:
            port = served.port
            socket = await dial(served)
            await call(socket, **INITIALIZE)
            client = httpx2.AsyncClient(base_url=served.url, headers=served.headers)
            params = {"protocolVersion": 1}
            hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
            viewer = (await client.post("/acp", json=hello)).headers["acp-connection-id"]
            headers = {"accept": "text/event-stream", "acp-connection-id": viewer}
            stream = await client.send(client.build_request("GET", "/acp", headers=headers), stream=True)
        assert (await stream.aread()).strip(b"\n") == f"id: {viewer}.0.0".encode()
        with pytest.raises(ConnectionClosed):
            await socket.recv()
        assert socket.close_code == 1001
        with pytest.raises(OSError):
            await asyncio.open_connection("127.0.0.1", port)
        await client.aclose()


async def test_stalled_client_does_not_delay_the_stop(tmp_path):
    async with asyncio.timeout(30), serving(tmp_path) as served:
        stuck = await connect_http2(served)
        await stuck.__aenter__()
        viewer = await open_viewer(stuck)
        session = await open_session(stuck, viewer)
        events = await stuck.ask(
            "GET", "/acp", acp_connection_id=viewer, acp_session_id=session, accept="text/event-stream"
        )
        stuck.core.increment_flow_control_window(2**30, events)
        stuck.core.increment_flow_control_window(2**30)
        await prompt(stuck, viewer, session, chunks=2_000, bytes=20_000)
        stuck.pause()
    with suppress(ConnectionError):
        while await stuck.reader.read(65536):
            pass
    stuck.writer.close()


async def test_render_worker_ends_with_the_server(tmp_path):
    async with serving(tmp_path) as served, httpx2.AsyncClient(base_url=served.url, headers=served.headers) as client:
        assert (await client.post("/render", json={"markdown": "*the end*"})).status_code == 200
        [worker] = [
            pid for pid in children_of(os.getpid()) if b"render_worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
        ]
    assert not alive(worker)
