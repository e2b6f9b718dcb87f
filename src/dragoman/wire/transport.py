"""Transports, which carry lines between two peers."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import NoReturn, Protocol

from dragoman.errors import ConnectionClosedError
from dragoman.wire.framing import Oversized

HIGH_WATER_BYTES = 256 * 1024
"""Unsent bytes at which a sender must wait. This fills several pipes, so that the pipe never runs dry."""

LOW_WATER_BYTES = 64 * 1024
"""Unsent bytes at which a waiting sender continues."""

CLOSE_TIMEOUT_S = 2.0
"""How long closing waits for the other side to read the written lines. After that they are lost."""


class Receiver(Protocol):
    """The side that a transport delivers lines to."""

    def lines_received(self, lines: Sequence[bytes | Oversized]) -> None:
        """Handle the next lines, in order."""
        ...

    def input_ended(self, *, was_file: bool) -> None:
        """Handle the end of the input. If it was a file, the other side may still read our answers."""
        ...


class Transport(Protocol):
    """Carries whole lines both ways without knowing their content."""

    @property
    def unsent_bytes(self) -> int:
        """The number of bytes that were written and that the other side has not read yet."""
        ...

    @property
    def can_write(self) -> bool:
        """False once the other side is known to read no more."""
        ...

    def start(self, receiver: Receiver, tasks: asyncio.TaskGroup) -> None:
        """Start to deliver lines. `tasks` is for the tasks of the transport."""
        ...

    def write(self, lines: bytes | bytearray | memoryview) -> None:
        """Send lines that each end in a newline. Never wait, and drop the lines if the other side is gone.

        The lines may not be copied, so the caller must not change them afterwards.
        """
        ...

    async def drained(self) -> None:
        """Wait until the other side has read enough, or is gone."""
        ...

    def pause_reading(self) -> None:
        """Deliver nothing until `resume_reading`, so that the other side must wait."""
        ...

    def resume_reading(self) -> None:
        """Deliver lines again."""
        ...

    async def explain_end(self) -> ConnectionClosedError:
        """Return the reason why no more lines will arrive."""
        ...

    async def close(self) -> None:
        """Send the unsent lines, within `CLOSE_TIMEOUT_S`, and close."""
        ...


class LayeredTransport:
    """A transport on top of another one. It passes everything on, and subclasses inspect or change lines."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @property
    def unsent_bytes(self) -> int:
        return self._transport.unsent_bytes

    @property
    def can_write(self) -> bool:
        return self._transport.can_write

    def start(self, receiver: Receiver, tasks: asyncio.TaskGroup) -> None:
        self._receiver = receiver
        self._transport.start(self, tasks)

    def lines_received(self, lines: Sequence[bytes | Oversized]) -> None:
        """Handle the next lines from the transport below."""
        self._receiver.lines_received(lines)

    def input_ended(self, *, was_file: bool) -> None:
        """Handle the end of the input of the transport below."""
        self._receiver.input_ended(was_file=was_file)

    def write(self, lines: bytes | bytearray | memoryview) -> None:
        self._transport.write(lines)

    async def drained(self) -> None:
        await self._transport.drained()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    async def explain_end(self) -> ConnectionClosedError:
        return await self._transport.explain_end()

    async def close(self) -> None:
        await self._transport.close()


class Outbox:
    """Counts the unsent bytes of a transport and makes senders wait while there are too many."""

    def __init__(self) -> None:
        self.unsent_bytes = 0
        self._closed = False
        self._waiters: list[asyncio.Future[None]] = []

    def add(self, count: int) -> None:
        """Count bytes that were written."""
        self.unsent_bytes += count

    def sent(self, count: int) -> None:
        """Count bytes that the other side has read."""
        self.unsent_bytes -= count
        if self.unsent_bytes <= LOW_WATER_BYTES:
            self._release()

    def close(self) -> None:
        """Release all waiting senders, because nothing more will be sent."""
        self._closed = True
        self._release()

    async def drained(self, below: int = HIGH_WATER_BYTES) -> None:
        """Wait until no more than `below` bytes are unsent. A wait lasts until the low-water mark."""
        while self.unsent_bytes > below and not self._closed:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    def _release(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


class LineQueue:
    """Lines that a task of a transport sends one after another."""

    def __init__(self) -> None:
        self._outbox = Outbox()
        self._lines: deque[bytes] = deque()
        self._has_lines = asyncio.Event()

    @property
    def unsent_bytes(self) -> int:
        """The number of bytes that the other side has not read yet."""
        return self._outbox.unsent_bytes

    def put(self, lines: bytes | bytearray | memoryview) -> None:
        """Append lines that each end in a newline."""
        for line in bytes(lines).removesuffix(b"\n").split(b"\n"):
            self._lines.append(line)
            self._outbox.add(len(line))
        self._has_lines.set()

    async def send_all(self, send: Callable[[bytes], Awaitable[None]]) -> NoReturn:
        """Send lines as they are added, until the task is cancelled. Raises the errors of `send`."""
        while True:
            await self._has_lines.wait()
            while self._lines:
                line = self._lines.popleft()
                await send(line)
                self._outbox.sent(len(line))
            self._has_lines.clear()

    async def drained(self, below: int = HIGH_WATER_BYTES) -> None:
        """Wait until no more than `below` bytes are unsent. A wait lasts until the low-water mark."""
        await self._outbox.drained(below)

    def close(self) -> None:
        """Drop the unsent lines and release all waiting senders."""
        self._lines.clear()
        self._outbox.close()
