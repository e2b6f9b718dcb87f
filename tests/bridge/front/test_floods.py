"""Floods of frames without content are cut, and other clients are served during the flood.

No test measures time. The tests check the number of processed frames: how many a connection can pay for in total, and
how many are processed between two turns of another client.
"""

import asyncio
import json
import struct

import pytest

from dragoman.bridge.front.limits import ServerLimits
from dragoman.bridge.front.server.websocket import PIECE_BYTES
from dragoman.bridge.guard.rate_limit import Rate
from tests.bridge.front import raw_websocket as ws
from tests.bridge.front.client import PATIENCE_S, http_viewer, texts, until_answer
from tests.bridge.front.http2 import connect_http2, open_session, open_viewer, prompt
from tests.bridge.front.raw_http2 import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    ENHANCE_YOUR_CALM,
    GOAWAY,
    HEADERS,
    PING,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    frame,
    open_raw,
    request,
)
from tests.bridge.front.serving import TOKEN, open_stream, serving
from tests.bridge.front.sockets import INITIALIZE, call, dial
from tests.table import each_row

FLOOD = 20_000
LITTLE = ServerLimits(frames=Rate(burst=300, per_s=1.0), anonymous_frames=Rate(burst=100, per_s=1.0))
PLENTY = ServerLimits(frames=Rate(burst=10**9, per_s=1.0), anonymous_frames=Rate(burst=10**9, per_s=1.0))

HTTP2_FLOODS = {
    "settings": [frame(SETTINGS)],
    "settings that change": [frame(SETTINGS, struct.pack("!HL", 4, 65_535)), frame(SETTINGS)],
    "acknowledged settings": [frame(SETTINGS, flags=ACK)],
    "pings": [frame(PING, b"\0" * 8)],
    "answers to no ping": [frame(PING, b"\0" * 8, flags=ACK)],
    "window updates": [frame(WINDOW_UPDATE, b"\0\0\0\1")],
    "priorities": [frame(PRIORITY, b"\0\0\0\0\1", stream=3)],
    "frames of no known kind": [frame(0xAA, b"?")],
}


async def is_served(served):
    async with http_viewer(served) as other:
        return (await other.http.get("/config.json")).status_code == 200


@each_row("flood", HTTP2_FLOODS.values())
async def test_flood_of_control_frames_gets_enhance_your_calm(tmp_path, flood):
    async with serving(tmp_path, limits=LITTLE) as served, open_raw(served) as raw:
        raw.send(*flood * (FLOOD // len(flood)))
        await raw.to_end()
        assert raw.goaway() == (ENHANCE_YOUR_CALM, b"too many frames that carry nothing")
        assert (
            raw.count().get((PING, ACK), 0) + raw.count().get((SETTINGS, ACK), 0) <= LITTLE.anonymous_frames.burst + 1
        )
        assert await is_served(served)


async def test_tiny_body_pieces_count_as_a_flood(tmp_path):
    async with serving(tmp_path, limits=LITTLE) as served:
        for piece in (b"", b"x"):
            async with open_raw(served) as raw:
                head = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
                raw.send(request(served, 1, "/acp", flags=END_HEADERS, method="POST", **head))
                raw.send(frame(DATA, piece, stream=1) * FLOOD)
                await raw.to_end()
                assert raw.goaway() == (ENHANCE_YOUR_CALM, b"too many frames that carry nothing")
        assert await is_served(served)


async def test_endless_headers_are_cut(tmp_path):
    async with serving(tmp_path, limits=LITTLE) as served, open_raw(served) as raw:
        raw.send(request(served, 1, flags=0), frame(CONTINUATION, stream=1) * FLOOD)
        await raw.to_end()
        assert raw.goaway() is not None
        assert (HEADERS, END_HEADERS) not in raw.count()
        assert await is_served(served)


async def test_rapid_resets_are_cut(tmp_path):
    async with serving(tmp_path, limits=LITTLE) as served, open_raw(served) as raw:
        cancel = struct.pack("!L", 8)
        flood = [
            request(served, stream, authorization=f"Bearer {TOKEN}") + frame(RST_STREAM, cancel, stream=stream)
            for stream in range(1, 2_001, 2)
        ]
        raw.send(*flood)
        await raw.to_end()
        assert raw.goaway() == (ENHANCE_YOUR_CALM, b"too many frames that carry nothing")
        last = next(one for one in raw.frames if one.kind == GOAWAY).payload[:4]
        assert int.from_bytes(last, "big") < 200  # of two thousand
        assert await is_served(served)


async def test_event_streams_may_be_reset_one_by_one(tmp_path):
    async with serving(tmp_path, limits=LITTLE) as served, await connect_http2(served) as client:
        viewer = await open_viewer(client)
        for _ in range(150):  # more resets than are allowed without an answer
            events = await client.ask("GET", "/acp", accept="text/event-stream", acp_connection_id=viewer)
            await client.wait(lambda events=events: events in client.heads)
            client.core.reset_stream(events)
            await client.flush()
        assert (await client.answered(await client.ask("GET", "/config.json")))[0] == 200


async def test_acknowledging_every_frame_is_not_a_flood(tmp_path):
    async with serving(tmp_path, limits=LITTLE) as served, await connect_http2(served) as client:
        viewer = await open_viewer(client)
        session = await open_session(client, viewer)
        events = await client.ask(
            "GET", "/acp", eager=True, accept="text/event-stream", acp_connection_id=viewer, acp_session_id=session
        )
        await prompt(client, viewer, session, chunks=2_000, bytes=3_000)
        await client.wait(lambda: b"stopReason" in client.bodies[events][-1_000:])
        assert client.updates > LITTLE.frames.burst
        assert not client.is_closed


@pytest.mark.parametrize("kind", [frame(PING, b"\0" * 8), frame(SETTINGS)], ids=["pings", "settings"])
async def test_other_requests_are_answered_during_a_flood(tmp_path, kind):
    async with serving(tmp_path, limits=PLENTY) as served, open_raw(served) as raw, open_raw(served) as other:
        raw.send(kind * FLOOD)
        other.send(request(served, 1, authorization=f"Bearer {TOKEN}"))
        reading = asyncio.create_task(raw.to_end())
        await other.until(HEADERS)
        assert sum(raw.count().values()) < FLOOD // 2
        reading.cancel()


WEBSOCKET_FLOODS = {
    "pings": [ws.frame(ws.PING)],
    "pings with a load": [ws.frame(ws.PING, b"x" * 125)],
    "pongs": [ws.frame(ws.PONG)],
    "empty continuations": [ws.frame(ws.CONT, fin=False)],
    "tiny fragments": [ws.frame(ws.CONT, b"x", fin=False)],
    "pings between fragments": [ws.frame(ws.PING), ws.frame(ws.CONT, fin=False)],
    "messages too short to be one": [ws.frame(ws.CONT, fin=True), ws.frame(ws.TEXT, b"x", fin=False)],
}


@pytest.mark.parametrize("flood", WEBSOCKET_FLOODS.values(), ids=WEBSOCKET_FLOODS)
async def test_flood_over_a_websocket_closes_it(tmp_path, flood):
    async with serving(tmp_path, limits=LITTLE) as served, ws.open_raw(served) as raw:
        raw.send(ws.frame(ws.TEXT, b"{", fin=False), *flood * (FLOOD // len(flood)))
        await raw.to_end()
        assert (raw.close_code, raw.close_reason) == (1008, b"too many frames that carry nothing")
        assert raw.pongs <= LITTLE.frames.burst + PIECE_BYTES // len(ws.frame(ws.PING))
        assert await is_served(served)


async def test_other_sockets_are_answered_during_a_flood(tmp_path):
    async with serving(tmp_path, limits=PLENTY) as served, dial(served) as other, ws.open_raw(served) as raw:
        raw.send(ws.frame(ws.PING) * FLOOD)
        reading = asyncio.create_task(raw.to_end())
        await other.ping()
        await asyncio.wait_for(await other.ping(), PATIENCE_S)
        assert raw.pongs < FLOOD // 2
        assert "result" in await call(other, **INITIALIZE)
        reading.cancel()


async def test_long_fragmented_message_is_not_a_flood(tmp_path):
    async with serving(tmp_path, limits=LITTLE) as served, ws.open_raw(served) as raw:
        text = json.dumps({"jsonrpc": "2.0", **INITIALIZE, "padding": "x" * 4_000_000}).encode()
        pieces = [text[at : at + 4_096] for at in range(0, len(text), 4_096)]
        first, *middle, last = pieces
        raw.send(ws.frame(ws.TEXT, first, fin=False), *(ws.frame(ws.CONT, one, fin=False) for one in middle))
        raw.send(ws.frame(ws.PING), ws.frame(ws.CONT, last))
        assert (await raw.next()).opcode == ws.PONG
        assert json.loads((await raw.next()).payload)["id"] == 0


async def test_tiny_chunks_do_not_delay_others(served):
    lines = ["POST /login HTTP/1.1", f"host: 127.0.0.1:{served.port}", "transfer-encoding: chunked"]
    async with open_stream(served) as (reader, writer):
        writer.write("\r\n".join([*lines, "content-type: application/json", "", ""]).encode())
        writer.write(b"1\r\n \r\n" * FLOOD)
        line = await asyncio.wait_for(reader.readline(), PATIENCE_S)
        assert int(line.split()[1]) == 413
        assert await is_served(served)


async def test_turns_of_others_continue_during_a_flood(tmp_path):
    async with serving(tmp_path, limits=PLENTY) as served, http_viewer(served) as viewer:
        await viewer.initialize()
        async with viewer.stream() as connection, open_raw(served) as raw:
            session = await viewer.open_session(connection)
            raw.send(frame(PING, b"\0" * 8) * FLOOD)
            reading = asyncio.create_task(raw.to_end())
            async with viewer.stream(session) as events:
                taken = await until_answer(await viewer.prompt(session, chunks=100, bytes=100), events)
            reading.cancel()
    assert len(texts(taken)) == 100
