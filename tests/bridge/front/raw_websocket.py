"""A raw WebSocket, for frames that no library sends."""

import asyncio
import os
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from tests.bridge.front.client import PATIENCE_S
from tests.bridge.front.serving import TOKEN, Serving, open_stream

CONT, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
FIN = 0x80
MASKED = 0x80


class RawMessage(NamedTuple):
    opcode: int
    payload: bytes


def frame(opcode: int, payload: bytes = b"", *, fin: bool = True, reserved: int = 0, masked: bool = True) -> bytes:
    """Return a client frame, masked with zeros. The last three arguments make it invalid."""
    first = opcode | reserved | (FIN if fin else 0)
    mask = MASKED if masked else 0
    if len(payload) < 126:
        head = bytes([first, mask | len(payload)])
    elif len(payload) < 0x10000:
        head = bytes([first, mask | 126]) + len(payload).to_bytes(2, "big")
    else:
        head = bytes([first, mask | 127]) + len(payload).to_bytes(8, "big")
    return head + (b"\0\0\0\0" if masked else b"") + payload


class RawWebSocket:
    """A connection that sends raw bytes and stores received frames."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: str) -> None:
        self.head = head
        """The answer to the handshake."""
        self.reader = reader
        self.writer = writer
        self.pongs = 0
        self.close_code: int | None = None
        self.close_reason = b""

    def send(self, *frames: bytes) -> None:
        self.writer.write(b"".join(frames))

    async def next(self) -> RawMessage | None:
        """Return the next frame, or None at the end of the connection."""
        try:
            first, size = await asyncio.wait_for(self.reader.readexactly(2), PATIENCE_S)
            if size >= 126:
                size = int.from_bytes(await self.reader.readexactly(2 if size == 126 else 8), "big")
            payload = await self.reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        one = RawMessage(first & 0x0F, payload)
        self.pongs += one.opcode == PONG
        if one.opcode == CLOSE:
            self.close_code, self.close_reason = int.from_bytes(payload[:2], "big"), payload[2:]
        return one

    async def to_end(self) -> None:
        """Read to the end of the connection."""
        while await self.next() is not None:
            pass


@asynccontextmanager
async def open_raw(
    served: Serving, *headers: str, key: str | None = None, early: bytes = b""
) -> AsyncIterator[RawWebSocket]:
    """Request a WebSocket. `early` is sent in the same write."""
    async with open_stream(served) as (reader, writer):
        lines = [
            "GET /acp HTTP/1.1",
            f"host: 127.0.0.1:{served.port}",
            f"authorization: Bearer {TOKEN}",
            "upgrade: websocket",
            "connection: keep-alive, Upgrade",
            f"sec-websocket-key: {b64encode(os.urandom(16)).decode() if key is None else key}",
            *(headers or ("sec-websocket-version: 13",)),
        ]
        writer.write("\r\n".join([*lines, "", ""]).encode() + early)
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_S)
        yield RawWebSocket(reader, writer, head.decode())
