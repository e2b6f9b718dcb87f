"""`/acp` over a WebSocket."""

import asyncio
import json
import os
import signal
import sys

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from dragoman.bridge.front.limits import ServerLimits
from tests.bridge.front.client import PATIENCE_S, http_viewer
from tests.bridge.front.serving import TOKEN, serving
from tests.bridge.front.sockets import INITIALIZE, call, dial, open_session, order, until_answer


async def test_turn_runs_over_a_websocket(served):
    async with dial(served) as socket:
        session = await open_session(socket)
        await socket.send(order(session, chunks=1_000, bytes=100))
        taken = await until_answer(socket, 2)
    updates = [one["params"]["update"] for one in taken if one.get("method") == "session/update"]
    said = [update["content"]["text"] for update in updates if "content" in update]
    assert [text for text in said if text[0].isdigit()] == [f"{number}:" + "x" * 100 for number in range(1_000)]


async def test_upgrade_returns_connection_id_and_cookie(served):
    async with dial(served) as socket:
        headers = socket.response.headers
        assert served.bridge.agent().delivery.viewers.get(headers["Acp-Connection-Id"]) is not None
        assert headers["Set-Cookie"].startswith("acp_affinity=")
        assert "Sec-WebSocket-Extensions" not in headers


async def test_websocket_connection_id_is_not_valid_over_http(served):
    async with dial(served) as socket, http_viewer(served) as viewer:
        viewer.id = socket.response.headers["Acp-Connection-Id"]
        assert (await viewer.post({"method": "x"})).status_code == 404


async def test_viewer_closes_with_its_socket(served):
    async with dial(served) as socket:
        await call(socket, **INITIALIZE)
        viewer = served.bridge.agent().delivery.viewers.get(socket.response.headers["Acp-Connection-Id"])
    async with asyncio.timeout(PATIENCE_S):
        await viewer.closed.wait()


async def test_binary_frames_are_ignored_and_invalid_text_is_answered(served):
    async with dial(served) as socket:
        await call(socket, **INITIALIZE)
        await socket.send(b'{"jsonrpc":"2.0","id":5,"method":"session/new"}')
        await socket.send('{"jsonrpc":\n')
        answer = json.loads(await asyncio.wait_for(socket.recv(), PATIENCE_S))
    assert answer["id"] is None
    assert answer["error"]["code"] == -32700


async def test_panel_path_accepts_binary_frames(served):
    async with dial(served, "/message") as socket:
        await socket.send(json.dumps({"jsonrpc": "2.0", "id": 0, **INITIALIZE}).encode() + b"\n")
        assert json.loads(await asyncio.wait_for(socket.recv(), PATIENCE_S))["result"]["protocolVersion"] == 1


async def test_line_breaks_are_allowed_only_between_tokens(served):
    async with dial(served) as socket:
        await call(socket, **INITIALIZE)
        await socket.send('{"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/\n"}}')
        assert json.loads(await asyncio.wait_for(socket.recv(), PATIENCE_S))["error"]["code"] == -32700
        message = {"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}}
        await socket.send(json.dumps(message, indent=1).replace("\n", "\r\n"))
        assert (await until_answer(socket, 2))[-1]["result"]


async def test_token_may_be_a_subprotocol(served):
    async with dial(served, headers={}, subprotocols=["acp", f"dragoman.token.{TOKEN}"]) as socket:
        assert socket.subprotocol == "acp"
        assert "result" in await call(socket, **INITIALIZE)


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/acp", {}, 401),
        ("/acp", {"authorization": "Bearer " + "x" * 43}, 401),
        ("/acp", {"authorization": f"Bearer {TOKEN}", "origin": "http://evil.example"}, 403),
        ("/acp/three", {"authorization": f"Bearer {TOKEN}"}, 404),
        ("/", {"authorization": f"Bearer {TOKEN}"}, 404),
    ],
)
async def test_unauthorized_websocket_is_refused_before_the_upgrade(served, path, headers, status):
    with pytest.raises(InvalidStatus) as refused:
        async with dial(served, path, headers=headers):
            pass
    assert refused.value.response.status_code == status
    assert json.loads(refused.value.response.body)["error"]


async def test_rebound_name_is_refused_before_the_upgrade(served):
    with pytest.raises(InvalidStatus) as refused:
        async with dial(served, name="evil.example"):
            pass
    assert refused.value.response.status_code == 403


async def test_viewer_over_the_limit_gets_retry_after(tmp_path):
    async with serving(tmp_path, max_viewers=1) as served, dial(served), http_viewer(served) as other:
        with pytest.raises(InvalidStatus) as refused:
            async with dial(served):
                pass
        assert refused.value.response.status_code == 503
        answer = await other.initialize()
        assert answer.status_code == 503
        assert answer.headers["retry-after"]


async def test_too_long_message_closes_the_socket_with_a_reason(tmp_path):
    async with serving(tmp_path, max_message_bytes=100_000) as served, dial(served) as socket:
        await call(socket, **INITIALIZE)
        with pytest.raises(ConnectionClosed):
            await socket.send(" " * 200_000)
            await socket.recv()
        assert socket.close_code == 1009
        assert socket.close_reason == "the message is longer than the limit of 100000 bytes; send smaller messages"


async def test_unread_socket_is_dropped_and_others_continue(tmp_path):
    async with serving(tmp_path, stall_s=2) as served, dial(served) as stuck, dial(served) as other:
        session = await open_session(stuck)
        await call(other, **INITIALIZE)
        await stuck.send(order(session, chunks=4_000, bytes=10_000))
        stuck.transport.pause_reading()
        viewer = served.bridge.agent().delivery.viewers.get(stuck.response.headers["Acp-Connection-Id"])
        number = 10
        while not viewer.closed.is_set():
            number += 1
            assert (await call(other, id=number, method="session/new", params={"cwd": "/", "mcpServers": []}))["result"]
        stuck.transport.resume_reading()
        with pytest.raises(ConnectionClosed):
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    await stuck.recv()


PEER = """
import sys
from websockets.sync.client import connect
socket = connect(sys.argv[1], additional_headers={"authorization": "Bearer " + sys.argv[2]})
print(socket.response.headers["Acp-Connection-Id"], flush=True)
for text in socket: pass
"""


async def test_unresponsive_peer_is_detected(tmp_path):
    limits = ServerLimits(ping_s=0.2, silence_s=1.5, watch_s=0.1)
    async with serving(tmp_path, limits=limits) as served:
        peer = await asyncio.create_subprocess_exec(
            sys.executable, "-c", PEER, f"ws://127.0.0.1:{served.port}/acp", TOKEN, stdout=asyncio.subprocess.PIPE
        )
        try:
            viewer = served.bridge.agent().delivery.viewers.get((await peer.stdout.readline()).decode().strip())
            with pytest.raises(TimeoutError):  # silent, but it answers pings
                await asyncio.wait_for(viewer.closed.wait(), 2 * limits.silence_s)
            os.kill(peer.pid, signal.SIGSTOP)
            await asyncio.wait_for(viewer.closed.wait(), PATIENCE_S)
        finally:
            peer.kill()
            await peer.wait()
