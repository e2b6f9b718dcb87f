"""Lines over a WebSocket: one message a text frame."""

import asyncio

from websockets.asyncio.connection import Connection
from websockets.exceptions import ConnectionClosed as WebSocketClosed

from dragoman.errors import ConnectionClosed
from dragoman.wire.transport import CLOSE_TIMEOUT_S, LineQueue, Receiver

MAX_FRAME_BYTES = 16 * 1024 * 1024
"""Longest message on the network, to be given as `max_size` to the library that makes the connection."""


class WebSocketTransport:
    """Carries lines over an open WebSocket connection, which it owns from now on."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._queue = LineQueue()
        self._may_read = asyncio.Event()
        self._may_read.set()
        self._closed = False

    @property
    def unsent_bytes(self) -> int:
        return self._queue.unsent_bytes

    @property
    def can_write(self) -> bool:
        return not self._closed

    def start(self, receiver: Receiver, tasks: asyncio.TaskGroup) -> None:
        self._reader = tasks.create_task(self._read(receiver))
        self._writer = tasks.create_task(self._write())

    def write(self, lines: bytes | bytearray | memoryview) -> None:
        if not self._closed:
            self._queue.put(lines)

    async def drained(self) -> None:
        await self._queue.drained()

    def pause_reading(self) -> None:
        self._may_read.clear()

    def resume_reading(self) -> None:
        self._may_read.set()

    async def explain_end(self) -> ConnectionClosed:
        code, reason = self._connection.close_code, self._connection.close_reason
        said = f" ({reason})" if reason else ""
        return ConnectionClosed(f"the WebSocket was closed with code {code}{said}")

    async def close(self) -> None:
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self._queue.drained(below=0)
                await self._connection.close()
        except TimeoutError:
            self._connection.transport.abort()
        finally:
            self._give_up()
            self._reader.cancel()
            self._writer.cancel()

    async def _read(self, receiver: Receiver) -> None:
        try:
            while True:
                await self._may_read.wait()
                frame = await self._connection.recv(decode=False)
                # A newline in JSON can only be blank space, and elsewhere it ends the message.
                receiver.lines_received([frame.replace(b"\n", b" ")])
        except WebSocketClosed:
            self._give_up()
            receiver.input_ended(was_file=False)

    async def _write(self) -> None:
        try:
            await self._queue.send_all(self._send)
        except WebSocketClosed:
            self._give_up()

    async def _send(self, line: bytes) -> None:
        await self._connection.send(line, text=True)

    def _give_up(self) -> None:
        self._closed = True
        self._queue.close()
