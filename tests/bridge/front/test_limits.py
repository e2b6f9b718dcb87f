"""Torn, slow, endless or too large requests, and unused connections."""

import asyncio
import json

import pytest

from dragoman.bridge.front.limits import RequestLimits, ServerLimits
from dragoman.client import connect_url
from dragoman.errors import MessageTooLongError
from dragoman.wire import MAX_LINE_BYTES
from tests.bridge.front.client import PATIENCE_S, http_viewer
from tests.bridge.front.http2 import connect_http2, open_viewer
from tests.bridge.front.raw_http1 import INITIALIZE, connect, head, status_of
from tests.bridge.front.serving import TOKEN, serving

MIB = 1024 * 1024
REATTACH_S = 1.0
"""Longer than the pauses between the requests of a viewer on a busy machine."""


async def test_body_may_arrive_in_small_pieces(served):
    reader, writer = await connect(served)
    padded = INITIALIZE + b" " * 100_000
    writer.write(head(served, len(padded)))
    for start in range(0, len(padded), 1_000):
        writer.write(padded[start : start + 1_000])
        await writer.drain()
        await asyncio.sleep(0)
    assert await status_of(reader) == 200
    writer.close()


async def test_torn_request_leaves_nothing_behind(served):
    _, writer = await connect(served)
    writer.write(head(served, 1_000) + INITIALIZE)
    await writer.drain()
    writer.transport.abort()
    async with http_viewer(served) as viewer:
        assert (await viewer.initialize()).status_code == 200


async def test_endless_body_times_out(tmp_path):
    async with serving(tmp_path, requests=RequestLimits(body_timeout_s=0.3)) as served:
        reader, writer = await connect(served)
        writer.write(head(served, 1_000) + INITIALIZE)
        assert await status_of(reader) == 408
        assert b"did not arrive within 0.3 s" in await asyncio.wait_for(reader.read(), PATIENCE_S)
        writer.close()


async def test_endless_head_times_out(tmp_path):
    async with serving(tmp_path, limits=ServerLimits(idle_s=0.3)) as served:
        reader, writer = await connect(served)
        writer.write(b"GET / HTTP/1.1\r\nhost: ")
        assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
        writer.close()


async def test_huge_head_is_refused(served):
    reader, writer = await connect(served)
    writer.write(head(served, 0, "x-much: " + "y" * 100_000))
    assert await status_of(reader) == 431
    writer.close()


async def test_too_long_body_is_refused_with_a_reason(tmp_path):
    async with serving(tmp_path, max_message_bytes=100_000) as served, http_viewer(served) as viewer:
        await viewer.initialize()
        answer = await viewer.post(b" " * 150_000)
        assert answer.status_code == 413
        assert "100000 bytes" in answer.json()["error"]
        assert (await viewer.post({"method": "x"})).status_code == 202


@pytest.mark.parametrize("transport", ["websocket", "http"])
async def test_size_limit_is_the_same_on_every_transport(served, transport):
    long = 4 * MIB  # longer than the usual limits of libraries, such as 1 MiB of `websockets`
    async with connect_url(f"{served.url}/acp", token=TOKEN, transport=transport) as agent:
        session = await agent.new_session("/")
        answer = await session.ask(json.dumps({"chunks": 1, "bytes": long, "pad": "x" * long}))
        assert len(answer) == long + len("0:")
        result = await session.prompt("x" * MAX_LINE_BYTES).result()
        assert isinstance(result.error, MessageTooLongError)
        assert "the limit is 67108864 bytes; send smaller messages" in str(result.error)
        assert await session.ask('{"chunks": 1}') == "0:"


async def test_stream_over_the_limit_is_refused(tmp_path):
    async with serving(tmp_path, requests=RequestLimits(max_streams=1)) as served, http_viewer(served) as viewer:
        await viewer.initialize()
        async with viewer.stream() as events:
            headers = {"accept": "text/event-stream", "acp-connection-id": viewer.id}
            answer = await viewer.http.get("/acp", headers=headers)
            assert answer.status_code == 429
            assert "1 event streams" in answer.json()["error"]
            del events


async def test_connection_without_streams_is_closed_after_a_while(tmp_path):
    async with (
        serving(tmp_path, requests=RequestLimits(reattach_s=REATTACH_S)) as served,
        http_viewer(served) as viewer,
    ):
        await viewer.initialize()
        one = served.bridge.agent().delivery.viewers.get(viewer.id)
        async with viewer.stream():
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(one.closed.wait(), 2 * REATTACH_S)
        await asyncio.wait_for(one.closed.wait(), PATIENCE_S)
        assert (await viewer.post({"method": "x"})).status_code == 404


async def test_silent_event_stream_sends_comments(tmp_path):
    async with serving(tmp_path, requests=RequestLimits(keep_alive_s=0.05)) as served, http_viewer(served) as viewer:
        await viewer.initialize()
        headers = {"accept": "text/event-stream", "acp-connection-id": viewer.id}
        async with viewer.http.stream("GET", "/acp", headers=headers) as response:
            comments = 0
            async for line in response.aiter_lines():
                comments += line == ":"
                if comments == 3:
                    break


async def test_unresponsive_http2_peer_is_cut(tmp_path):
    limits = ServerLimits(ping_s=0.2, silence_s=1.0, watch_s=0.1)
    requests = RequestLimits(reattach_s=REATTACH_S)
    async with serving(tmp_path, limits=limits, requests=requests) as served, await connect_http2(served) as client:
        viewer = await open_viewer(client)
        await client.ask("GET", "/acp", acp_connection_id=viewer, accept="text/event-stream")
        one = served.bridge.agent().delivery.viewers.get(viewer)
        await client.wait(lambda: client.pings > 10)
        assert not one.closed.is_set()
        client.pause()
        await asyncio.wait_for(one.closed.wait(), PATIENCE_S)


@pytest.mark.parametrize(
    "sent", [b"\0\1\2", b"GET / HTTP/9\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nnonsense, all of it"]
)
async def test_garbage_ends_only_its_connection(served, sent):
    reader, writer = await connect(served)
    writer.write(sent)
    writer.write_eof()
    await asyncio.wait_for(reader.read(), PATIENCE_S)
    writer.close()
    async with http_viewer(served) as viewer:
        assert (await viewer.initialize()).status_code == 200
