"""HTTP/2 with and without TLS, and clients that do not read."""

import asyncio
import ssl

import hpack
import httpx2
import pytest

from dragoman.bridge.front.limits import RequestLimits, ServerLimits
from dragoman.bridge.front.server.http2 import WINDOW_BYTES
from tests.bridge.front.client import PATIENCE_S, http_viewer, texts, until_answer
from tests.bridge.front.http2 import connect_http2, open_session, open_viewer, prompt
from tests.bridge.front.raw_http2 import (
    END_HEADERS,
    END_STREAM,
    ENHANCE_YOUR_CALM,
    HEADERS,
    frame,
    open_raw,
    request,
)
from tests.bridge.front.serving import TOKEN, serving

MIB = 1024 * 1024
EVENTS = {"accept": "text/event-stream"}


async def test_turn_runs_over_http2_by_prior_knowledge(served):
    async with http_viewer(served, http1=False, http2=True) as viewer:
        answer = await viewer.initialize()
        assert answer.http_version == "HTTP/2"
        async with viewer.stream() as connection:
            session = await viewer.open_session(connection)
            async with viewer.stream(session) as events:
                taken = await until_answer(await viewer.prompt(session, chunks=2_000, bytes=100), events)
    assert len(texts(taken)) == 2_000


async def test_turn_runs_over_http2_with_tls(tmp_path, tls):
    trust = ssl.create_default_context(cafile=tls.certificate)
    async with (
        serving(tmp_path, tls=tls) as served,
        http_viewer(served, http2=True, verify=trust) as viewer,
    ):
        answer = await viewer.initialize()
        assert answer.http_version == "HTTP/2"
        assert "Secure" in answer.headers["set-cookie"]
        async with viewer.stream() as connection:
            session = await viewer.open_session(connection)
            async with viewer.stream(session) as events:
                taken = await until_answer(await viewer.prompt(session, chunks=10, bytes=50_000), events)
    assert len(texts(taken)) == 10


async def test_http2_connection_survives_a_thousand_requests(served):
    async with await connect_http2(served) as client:
        viewer = await open_viewer(client)
        events = await client.ask("GET", "/acp", acp_connection_id=viewer, **EVENTS)
        for _ in range(1_100):
            stream = await client.post({"method": "nothing/much"}, acp_connection_id=viewer)
            assert (await client.answered(stream))[0] == 202
        assert not client.is_closed
        params = {"cwd": "/", "mcpServers": []}
        await client.post({"id": 9, "method": "session/new", "params": params}, acp_connection_id=viewer)
        await client.wait(lambda: b"sessionId" in client.bodies[events])


async def test_too_long_body_ends_only_its_stream(tmp_path):
    async with serving(tmp_path, max_message_bytes=100_000) as served, await connect_http2(served) as client:
        viewer = await open_viewer(client)
        events = await client.ask("GET", "/acp", acp_connection_id=viewer, **EVENTS)
        await client.wait(lambda: events in client.heads)
        refused = await client.post(b" " * MIB, acp_connection_id=viewer)
        assert (await client.answered(refused))[0] == 413
        session = await client.post(
            {"id": 3, "method": "session/new", "params": {"cwd": "/"}}, acp_connection_id=viewer
        )
        assert (await client.answered(session))[0] == 202
        assert events not in client.ended
        assert events not in client.resets


async def test_unread_stream_is_dropped_with_little_memory(tmp_path):
    async with (
        serving(tmp_path, stall_s=2) as served,
        http_viewer(served) as other,
        await connect_http2(served) as stuck,
    ):
        viewer = await open_viewer(stuck)
        session = await open_session(stuck, viewer)
        frozen = await stuck.ask("GET", "/acp", frozen=True, acp_connection_id=viewer, acp_session_id=session, **EVENTS)
        await stuck.wait(lambda: frozen in stuck.heads)
        await prompt(stuck, viewer, session, chunks=2_000, bytes=10_000)
        most = 0
        while frozen not in stuck.resets:
            most = max(most, served.server.unsent_bytes)
            assert (await other.http.get("/config.json")).status_code == 200  # other clients are still served
        assert 0 < most < MIB
        gone = await stuck.ask("GET", "/acp", acp_connection_id=viewer, **EVENTS)
        assert (await stuck.answered(gone))[0] == 404


async def test_client_that_reads_nothing_is_cut(tmp_path):
    # A viewer on a busy machine pauses longer than a moment between its requests.
    limits, requests = ServerLimits(watch_s=0.1), RequestLimits(reattach_s=1)
    async with (
        serving(tmp_path, stall_s=1, limits=limits, requests=requests) as served,
        await connect_http2(served) as stuck,
    ):
        viewer = await open_viewer(stuck)
        session = await open_session(stuck, viewer)
        stuck.core.increment_flow_control_window(2**30)
        events = await stuck.ask("GET", "/acp", acp_connection_id=viewer, acp_session_id=session, **EVENTS)
        stuck.core.increment_flow_control_window(2**30, events)
        await stuck.wait(lambda: events in stuck.heads)
        await prompt(stuck, viewer, session, chunks=2_000, bytes=20_000)
        one = served.bridge.agent().delivery.viewers.get(viewer)
        stuck.pause()
        async with asyncio.timeout(PATIENCE_S), http_viewer(served) as other:
            while served.server.open_connections > 1:
                assert (await other.http.get("/config.json")).status_code == 200
            await asyncio.wait_for(one.closed.wait(), PATIENCE_S)


async def test_http2_streams_run_concurrently(served):
    async with http_viewer(served, http1=False, http2=True, limits=httpx2.Limits(max_connections=1)) as viewer:
        await viewer.initialize()

        async def converse(session: str, size: int) -> list[str]:
            async with viewer.stream(session) as events:
                return texts(await until_answer(await viewer.prompt(session, chunks=50, bytes=size), events))

        async with viewer.stream() as connection:
            sessions = [await viewer.open_session(connection) for _ in range(30)]
            answers = await asyncio.gather(*(converse(session, size) for size, session in enumerate(sessions)))
    for size, said in enumerate(answers):
        assert said == [f"{number}:" + "x" * size for number in range(50)]


@pytest.mark.parametrize("size", [33_000, 60_000])
async def test_too_long_headers_refuse_only_their_stream(served, size):
    known = {"authorization": f"Bearer {TOKEN}"}
    async with open_raw(served) as raw:
        raw.send(request(served, 1, **known, much="y" * size))
        status, body = await raw.answer()
        assert status == 431
        assert b"32768 bytes" in body
        raw.send(request(served, 3, **known))
        assert (await raw.answer())[0] == 200


async def test_far_too_long_headers_end_the_connection(served):
    async with open_raw(served) as raw:
        raw.send(request(served, 1, much="y" * 200_000))
        await raw.to_end()
        assert raw.goaway() == (ENHANCE_YOUR_CALM, b"")


async def test_headers_up_to_the_limit_are_accepted(served):
    async with open_raw(served) as raw:
        raw.send(request(served, 1, authorization=f"Bearer {TOKEN}", **{f"x-{one}": "y" * 3_000 for one in range(10)}))
        assert (await raw.answer())[0] == 200


async def test_body_is_read_at_the_speed_of_the_application(served):
    async with await connect_http2(served) as client:
        stream = await client.ask("POST", "/login", end=False, content_type="application/json")
        sent = 0
        while not (stream in client.ended or stream in client.resets):
            room = min(client.core.local_flow_control_window(stream), 16_000)
            if room > 0:
                client.core.send_data(stream, b" " * room)
                sent += room
            await client.flush()
            await asyncio.sleep(0)
        assert client.heads[stream][":status"] == "413"
        assert sent <= 2 * WINDOW_BYTES
        assert (await client.answered(await client.ask("GET", "/config.json")))[0] == 200


async def test_reset_request_returns_its_window(served):
    async with await connect_http2(served) as client:
        for _ in range(40):  # 16,000 bytes each, together more than twice the connection's window
            stream = await client.ask("POST", "/acp", end=False, content_type="application/json")
            await client.wait(lambda stream=stream: client.core.local_flow_control_window(stream) >= 16_000)
            client.core.send_data(stream, b" " * 16_000)
            client.core.reset_stream(stream)
            await client.flush()
        assert (await client.answered(await client.ask("GET", "/config.json")))[0] == 200


async def test_long_answer_does_not_block_other_streams(served):
    async with await connect_http2(served) as client:
        viewer = await open_viewer(client)
        session = await open_session(client, viewer)
        events = await client.ask("GET", "/acp", acp_connection_id=viewer, acp_session_id=session, **EVENTS)
        await client.wait(lambda: events in client.heads)
        await prompt(client, viewer, session, chunks=3_000, bytes=5_000)
        for _ in range(20):
            assert (await client.answered(await client.ask("GET", "/static/js/app/app.js")))[0] == 200
        await client.wait(lambda: b"stopReason" in client.bodies[events][-1_000:])


async def test_request_without_a_path_is_refused(served):
    async with open_raw(served) as raw:
        block = hpack.Encoder().encode([(":method", "CONNECT"), (":authority", f"127.0.0.1:{served.port}")])
        raw.send(frame(HEADERS, block, flags=END_HEADERS | END_STREAM, stream=1))
        assert (await raw.answer())[0] == 400
