"""Lines over a WebSocket: one message per text frame."""

import asyncio

from websockets.asyncio.connection import Connection
from websockets.exceptions import ConnectionClosed as WebSocketClosed
from websockets.frames import CloseCode

from dragoman.errors import ConnectionClosedError
from dragoman.wire.framing import too_long
from dragoman.wire.transport import CLOSE_TIMEOUT_S, LineQueue, Receiver


class WebSocketTransport:
    """Carries lines over an open WebSocket connection, which it owns from now on.

    The library that opened the connection refuses messages longer than its `max_size`, usually `MAX_FRAME_BYTES`.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._queue = LineQueue()
        self._may_read = asyncio.Event()
        self._may_read.set()
        self._closed = False
        self._got_too_long = False

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

    async def explain_end(self) -> ConnectionClosedError:
        if self._got_too_long:
            return ConnectionClosedError(f"{too_long()}; the other side must send smaller messages")
        code, reason = self._connection.close_code, self._connection.close_reason
        details = f" ({reason})" if reason else ""
        return ConnectionClosedError(f"the WebSocket was closed with code {code}{details}")

    async def close(self) -> None:
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self._queue.drained(below=0)
                await self._connection.close()
        except TimeoutError:
            self._connection.transport.abort()
        finally:
            self._mark_closed()
            self._reader.cancel()
            self._writer.cancel()

    async def _read(self, receiver: Receiver) -> None:
        try:
            while True:
                await self._may_read.wait()
                frame = await self._connection.recv(decode=False)
                # In JSON a newline can only be white space. In anything else it would split the message.
                receiver.lines_received([frame.replace(b"\n", b" ")])
        except WebSocketClosed as closed:
            self._got_too_long = closed.sent is not None and closed.sent.code == CloseCode.MESSAGE_TOO_BIG
            self._mark_closed()
            receiver.input_ended(was_file=False)

    async def _write(self) -> None:
        try:
            await self._queue.send_all(self._send)
        except WebSocketClosed:
            self._mark_closed()

    async def _send(self, line: bytes) -> None:
        await self._connection.send(line, text=True)

    def _mark_closed(self) -> None:
        self._closed = True
        self._queue.close()
