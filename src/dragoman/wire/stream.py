"""Lines over a pair of asyncio streams, such as the pipes of a process, a socket or an SSH channel."""

import asyncio
from contextlib import suppress
from typing import Protocol

from dragoman.errors import ConnectionClosedError
from dragoman.wire.framing import MAX_LINE_BYTES, LineSplitter
from dragoman.wire.transport import CLOSE_TIMEOUT_S, LineQueue, Receiver

READ_BYTES = 64 * 1024


class ByteReader(Protocol):
    """The readable half of a byte stream, such as `asyncio.StreamReader`."""

    async def read(self, n: int = -1, /) -> bytes:
        """Return 1 to `n` bytes, or no bytes at the end."""
        ...


class ByteWriter(Protocol):
    """The writable half of a byte stream, such as `asyncio.StreamWriter`."""

    def write(self, data: bytes, /) -> None:
        """Buffer bytes for sending."""
        ...

    async def drain(self) -> None:
        """Wait until more bytes may be written."""
        ...

    def close(self) -> None:
        """Close the stream."""
        ...

    async def wait_closed(self) -> None:
        """Wait until the stream is closed."""
        ...


class StreamTransport:
    """Carries lines over a byte stream, which it closes at the end."""

    def __init__(self, reader: ByteReader, writer: ByteWriter, *, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._stream = (reader, writer)
        self._queue = LineQueue()
        self._splitter = LineSplitter(max_line_bytes)
        self._may_read = asyncio.Event()
        self._may_read.set()
        self._failure: OSError | None = None
        self._has_ended = False

    @property
    def unsent_bytes(self) -> int:
        return self._queue.unsent_bytes

    @property
    def can_write(self) -> bool:
        return not self._has_ended

    def start(self, receiver: Receiver, tasks: asyncio.TaskGroup) -> None:
        self._receiver = receiver
        self._tasks = (tasks.create_task(self._read()), tasks.create_task(self._write()))

    def write(self, lines: bytes | bytearray | memoryview) -> None:
        if not self._has_ended:
            self._queue.put(lines)

    async def drained(self) -> None:
        await self._queue.drained()

    def pause_reading(self) -> None:
        self._may_read.clear()

    def resume_reading(self) -> None:
        self._may_read.set()

    async def explain_end(self) -> ConnectionClosedError:
        if self._failure is not None:
            return ConnectionClosedError(f"the stream failed: {self._failure.strerror or self._failure}")
        return ConnectionClosedError("the other side closed the stream")

    async def close(self) -> None:
        writer = self._stream[1]
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self._queue.drained(below=0)
        except TimeoutError:
            pass
        finally:
            self._has_ended = True
            self._queue.close()
            for task in self._tasks:
                task.cancel()
            with suppress(OSError):
                writer.close()
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await writer.wait_closed()

    async def _read(self) -> None:
        reader = self._stream[0]
        try:
            while True:
                await self._may_read.wait()
                data = await reader.read(READ_BYTES)
                if not data:
                    break
                self._receiver.lines_received(self._splitter.feed(data))
        except OSError as error:
            self._failure = error
        self._end()

    async def _write(self) -> None:
        try:
            await self._queue.send_all(self._send)
        except OSError as error:  # a side that does not read cannot be answered, so the input ends as well
            self._failure = error
            self._tasks[0].cancel()
            self._end()

    async def _send(self, line: bytes) -> None:
        writer = self._stream[1]
        writer.write(line + b"\n")
        await writer.drain()

    def _end(self) -> None:
        if not self._has_ended:
            self._has_ended = True
            self._queue.close()
            self._receiver.lines_received(self._splitter.finish())
            self._receiver.input_ended(was_file=False)
