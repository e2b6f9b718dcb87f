"""Invalid and unusual WebSocket frames, and their close codes (RFC 6455, 7.4.1)."""

import asyncio
import json
import logging

import pytest

from dragoman.bridge.front.server.websocket import PIECE_BYTES
from tests.bridge.front.client import PATIENCE_S
from tests.bridge.front.raw_websocket import BINARY, CLOSE, CONT, FIN, MASKED, PING, PONG, TEXT, frame, open_raw
from tests.bridge.front.serving import serving
from tests.bridge.front.sockets import INITIALIZE
from tests.table import each_row
from tests.waiting import until

HELLO = json.dumps({"jsonrpc": "2.0", **INITIALIZE}).encode()

BROKEN = {
    "a frame without a mask": [frame(TEXT, HELLO, masked=False)],
    "a reserved bit": [frame(TEXT, HELLO, reserved=0x40)],
    "an opcode that means nothing": [frame(3, b"")],
    "a control opcode that means nothing": [frame(11, b"")],
    "a control frame in fragments": [frame(PING, fin=False)],
    "a control frame that is too long": [frame(PING, b"x" * 126)],
    "a continuation of nothing": [frame(CONT, HELLO)],
    "a message within a message": [frame(TEXT, b"{", fin=False), frame(TEXT, HELLO)],
    "half a close code": [frame(CLOSE, b"\x03")],
    "a close code that may not be sent": [frame(CLOSE, (1005).to_bytes(2, "big"))],
}

NOT_UTF8 = {
    "in one frame": [frame(TEXT, b"\xff" * 20)],
    "in fragments": [frame(TEXT, HELLO[:20], fin=False), frame(CONT, b"\xc3", fin=False), frame(CONT, HELLO[20:])],
    "a letter that never ends": [frame(TEXT, HELLO + b"\xe2\x82")],
    "a half of a pair": [frame(TEXT, b"\xed\xa0\x80" + HELLO)],
    "in the reason of a close": [frame(CLOSE, b"\x03\xe8\xff")],
}


@each_row("frames", BROKEN.values())
async def test_invalid_frames_close_with_1002(served, frames):
    async with open_raw(served) as raw:
        raw.send(*frames)
        await raw.to_end()
        assert raw.close_code == 1002


@pytest.mark.parametrize("frames", NOT_UTF8.values(), ids=NOT_UTF8)
async def test_invalid_utf8_closes_with_1007(served, frames):
    async with open_raw(served) as raw:
        raw.send(*frames)
        await raw.to_end()
        assert raw.close_code == 1007


@pytest.mark.parametrize("opcode", [TEXT, BINARY])
@pytest.mark.parametrize("in_fragments", [False, True])
async def test_too_long_message_closes_early_with_1009(tmp_path, opcode, in_fragments):
    async with serving(tmp_path, max_message_bytes=10_000) as served, open_raw(served) as raw:
        if in_fragments:
            raw.send(frame(opcode, b"x" * 6_000, fin=False), frame(CONT, b"x" * 6_000, fin=False))
        else:
            raw.send(frame(opcode, b"x" * 100_000)[:20])
        await raw.to_end()
        assert raw.close_code == 1009


async def test_longest_allowed_message_is_accepted(tmp_path):
    async with serving(tmp_path, max_message_bytes=10_000) as served, open_raw(served) as raw:
        raw.send(frame(TEXT, HELLO.ljust(10_000)))
        assert json.loads((await raw.next()).payload)["id"] == 0


async def test_characters_may_span_fragments(served):
    async with open_raw(served) as raw:
        text = json.dumps({"jsonrpc": "2.0", **INITIALIZE, "note": "€" * 9}, ensure_ascii=False).encode()
        raw.send(*(frame(TEXT if at == 0 else CONT, text[at : at + 1], fin=False) for at in range(len(text))))
        raw.send(frame(CONT))
        assert json.loads((await raw.next()).payload)["id"] == 0


async def test_frames_may_arrive_in_any_pieces(served):
    async with open_raw(served) as raw:
        for byte in frame(PING, b"here") + frame(TEXT, HELLO):
            raw.send(bytes([byte]))
            await raw.writer.drain()
            await asyncio.sleep(0)
        assert await raw.next() == (PONG, b"here")
        assert json.loads((await raw.next()).payload)["id"] == 0


async def test_frame_within_data_of_a_frame_is_not_read(served):
    async with open_raw(served) as raw:
        room = PIECE_BYTES - len(frame(BINARY, b"x" * PIECE_BYTES)) + PIECE_BYTES
        inner = frame(TEXT, _request(6).ljust(room))  # exactly the second piece of the outer frame
        raw.send(frame(BINARY, b"x" * room + inner), frame(TEXT, _request(7)))
        assert json.loads((await raw.next()).payload)["id"] == 7


@pytest.mark.parametrize(("mark", "size_bytes"), [(126, 2), (127, 8)])
@pytest.mark.parametrize("text_bytes", [80, 119])
async def test_size_may_be_written_in_more_bytes(served, mark, size_bytes, text_bytes):
    async with open_raw(served) as raw:
        for id_ in (7, 8):
            text = _request(id_).ljust(text_bytes)  # with 119 bytes, 127 bytes follow the place of a short frame's mask
            raw.send(bytes([FIN | TEXT, MASKED | mark]), len(text).to_bytes(size_bytes), bytes(4), text)
            assert json.loads((await raw.next()).payload)["id"] == id_


@pytest.mark.parametrize("payload", [b"", b"\x03\xe8", b"\x03\xe9going", b"\x0f\xa0own"])
async def test_close_frame_is_echoed_and_ends_the_connection(served, payload):
    async with open_raw(served) as raw:
        raw.send(frame(TEXT, HELLO), frame(CLOSE, payload))
        answers = [await raw.next() for _ in range(2)]
        assert answers[-1] == (CLOSE, payload) or answers[0] == (CLOSE, payload)
        await raw.to_end()


async def test_messages_before_a_close_are_delivered(served):
    async with open_raw(served) as raw:
        raw.send(frame(TEXT, HELLO))
        assert json.loads((await raw.next()).payload)["id"] == 0
        new = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}}
        raw.send(frame(TEXT, json.dumps(new).encode()), frame(CLOSE, b"\x03\xe8"))
        await raw.to_end()
        agent = served.bridge.agent()
        await until(lambda: agent.sessions.by_id)


async def test_frames_are_never_logged(served, caplog):
    caplog.set_level(logging.DEBUG)
    async with open_raw(served) as raw:
        raw.send(frame(TEXT, HELLO), frame(TEXT, b'{"jsonrpc":"2.0","method":"secret/word"}'), frame(CLOSE))
        await raw.to_end()
    assert "secret" not in caplog.text


@pytest.mark.parametrize(
    ("headers", "key", "problem"),
    [
        ((), "", "Sec-WebSocket-Key"),
        ((), "dG9vIHNob3J0", "Sec-WebSocket-Key"),
        (("sec-websocket-version: 8",), None, "Sec-WebSocket-Version"),
        (("x: y",), None, "Sec-WebSocket-Version"),
    ],
)
async def test_invalid_handshake_is_refused_with_a_reason(served, headers, key, problem):
    async with open_raw(served, *headers, key=key) as raw:
        assert raw.head.startswith("HTTP/1.1 400 ")
        assert "sec-websocket-version: 13" in raw.head
        assert problem in (await asyncio.wait_for(raw.reader.read(), PATIENCE_S)).decode()


async def test_frames_directly_after_the_handshake_are_kept(served):
    async with open_raw(served, early=frame(TEXT, HELLO)) as raw:
        assert raw.head.startswith("HTTP/1.1 101 ")
        assert json.loads((await raw.next()).payload)["id"] == 0


def _request(id_: int) -> bytes:
    """Return a request that is refused at once."""
    return b'{"jsonrpc":"2.0","id":%d,"method":"x"}' % id_
