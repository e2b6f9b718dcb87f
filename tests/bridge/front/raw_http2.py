"""Raw HTTP/2, for frames that no library sends."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from struct import Struct
from typing import NamedTuple

import hpack

from tests.bridge.front.client import PATIENCE_S
from tests.bridge.front.serving import Serving, open_stream

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
ACK = END_STREAM = 0x1
END_HEADERS = 0x4
ENHANCE_YOUR_CALM = 11
MAX_FRAME_BYTES = 16_384
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

_HEAD = Struct("!HBBBL")


class RawFrame(NamedTuple):
    kind: int
    flags: int
    stream: int
    payload: bytes


def frame(kind: int, payload: bytes = b"", *, flags: int = 0, stream: int = 0) -> bytes:
    return _HEAD.pack(len(payload) >> 8, len(payload) & 0xFF, kind, flags, stream) + payload


def request(
    served: Serving, stream: int, path="/config.json", *, flags=END_HEADERS | END_STREAM, method="GET", **headers
):
    """Return the frames of a request with uncompressed fields."""
    fields = [(":method", method), (":path", path), (":scheme", "http"), (":authority", f"127.0.0.1:{served.port}")]
    block = hpack.Encoder().encode([*fields, *headers.items()], huffman=False)
    first, *rest = [block[at : at + MAX_FRAME_BYTES] for at in range(0, len(block), MAX_FRAME_BYTES)]
    if not rest:
        return frame(HEADERS, first, flags=flags, stream=stream)
    middle = [frame(CONTINUATION, part, stream=stream) for part in rest[:-1]]
    last = frame(CONTINUATION, rest[-1], flags=END_HEADERS, stream=stream)
    return b"".join([frame(HEADERS, first, flags=flags & ~END_HEADERS, stream=stream), *middle, last])


class RawHttp2:
    """A connection that sends raw bytes, answers pings and stores received frames."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.frames: list[RawFrame] = []
        self._decoder = hpack.Decoder()

    def send(self, *frames: bytes) -> None:
        self.writer.write(b"".join(frames))

    async def next(self) -> RawFrame | None:
        """Return the next frame, or None at the end of the connection."""
        try:
            head = await asyncio.wait_for(self.reader.readexactly(_HEAD.size), PATIENCE_S)
            high, low, kind, flags, stream = _HEAD.unpack(head)
            payload = await self.reader.readexactly(high << 8 | low)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        self.frames.append(RawFrame(kind, flags, stream, payload))
        if kind == PING and not flags & ACK:
            self.send(frame(PING, payload, flags=ACK))
        return self.frames[-1]

    async def until(self, kind: int, *, flags: int = 0) -> RawFrame:
        """Read frames until one of this kind, and return it."""
        while (one := await self.next()) is not None:
            if one.kind == kind and one.flags & flags == flags:
                return one
        raise AssertionError(f"the connection ended without a frame of kind {kind}: {self.count()}")

    async def answer(self) -> tuple[int, bytes]:
        """Read the next complete answer."""
        head = await self.until(HEADERS)
        body = b""
        last = head
        while not last.flags & END_STREAM:
            last = await self.until(DATA)
            body += last.payload
        return int(dict(self._decoder.decode(head.payload))[":status"]), body

    async def to_end(self) -> None:
        """Read to the end of the connection."""
        while await self.next() is not None:
            pass

    def count(self) -> dict[tuple[int, int], int]:
        """Return the number of received frames by kind and flags."""
        counted: dict[tuple[int, int], int] = {}
        for one in self.frames:
            counted[one.kind, one.flags] = counted.get((one.kind, one.flags), 0) + 1
        return counted

    def goaway(self) -> tuple[int, bytes] | None:
        """Return the code and the reason of the server's GOAWAY."""
        last = next((one for one in self.frames if one.kind == GOAWAY), None)
        return None if last is None else (int.from_bytes(last.payload[4:8], "big"), last.payload[8:])


@asynccontextmanager
async def open_raw(served: Serving) -> AsyncIterator[RawHttp2]:
    """Connect and exchange settings."""
    async with open_stream(served) as (reader, writer):
        raw = RawHttp2(reader, writer)
        raw.send(PREFACE, frame(SETTINGS))
        await raw.until(SETTINGS, flags=ACK)
        raw.send(frame(SETTINGS, flags=ACK))
        yield raw
