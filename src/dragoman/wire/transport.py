"""Transports: they carry lines between two peers."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import NoReturn, Protocol

from dragoman.errors import ConnectionClosed
from dragoman.wire.framing import Oversized

HIGH_WATER_BYTES = 256 * 1024
"""Unsent bytes at which a sender has to wait: several pipes full, so that the pipe never runs dry."""

LOW_WATER_BYTES = 64 * 1024
"""Unsent bytes at which it goes on."""

CLOSE_TIMEOUT_S = 2.0
"""How long closing waits for the other side to take the written lines: a peer that does not read loses them."""


class Receiver(Protocol):
    """The side that a transport delivers lines to."""

    def lines_received(self, lines: Sequence[bytes | Oversized]) -> None:
        """Take the next lines, in order."""
        ...

    def input_ended(self, *, was_file: bool) -> None:
        """Take note that no line will come any more; after the end of a file the other side may still read."""
        ...


class Transport(Protocol):
    """Carries whole lines both ways; knows nothing of their content."""

    @property
    def unsent_bytes(self) -> int:
        """Bytes that were written and that the other side has not taken yet."""
        ...

    @property
    def can_write(self) -> bool:
        """False once it is known that the other side takes nothing any more."""
        ...

    def start(self, receiver: Receiver, tasks: asyncio.TaskGroup) -> None:
        """Begin to deliver; `tasks` is for the tasks of the transport."""
        ...

    def write(self, lines: bytes | bytearray | memoryview) -> None:
        """Send lines that end in a newline each; never waits, and drops them when the other side is gone.

        The lines are not copied if that is not needed: whoever gave them does not change them any more.
        """
        ...

    async def drained(self) -> None:
        """Wait until the other side has taken enough, or is gone."""
        ...

    def pause_reading(self) -> None:
        """Deliver nothing until `resume_reading`, so that the other side has to wait."""
        ...

    def resume_reading(self) -> None:
        """Deliver again."""
        ...

    async def explain_end(self) -> ConnectionClosed:
        """Explain why no line will come any more."""
        ...

    async def close(self) -> None:
        """Send the unsent lines, within `CLOSE_TIMEOUT_S`, and close."""
        ...


class LayeredTransport:
    """A transport on another one: passes everything on, and is the place to look at lines or to change them."""

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
        """Take the next lines, from the transport below."""
        self._receiver.lines_received(lines)

    def input_ended(self, *, was_file: bool) -> None:
        """Take note that the transport below has no more lines."""
        self._receiver.input_ended(was_file=was_file)

    def write(self, lines: bytes | bytearray | memoryview) -> None:
        self._transport.write(lines)

    async def drained(self) -> None:
        await self._transport.drained()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    async def explain_end(self) -> ConnectionClosed:
        return await self._transport.explain_end()

    async def close(self) -> None:
        await self._transport.close()


class Outbox:
    """Counts the unsent bytes of a transport, and holds senders back while they are too many."""

    def __init__(self) -> None:
        self.unsent_bytes = 0
        self._closed = False
        self._waiters: list[asyncio.Future[None]] = []

    def add(self, count: int) -> None:
        """Count bytes that were written."""
        self.unsent_bytes += count

    def sent(self, count: int) -> None:
        """Count bytes that the other side took."""
        self.unsent_bytes -= count
        if self.unsent_bytes <= LOW_WATER_BYTES:
            self._release()

    def close(self) -> None:
        """Release all senders: nothing will be sent any more."""
        self._closed = True
        self._release()

    async def drained(self, below: int = HIGH_WATER_BYTES) -> None:
        """Wait while there is more unsent than `below`, down to the low-water mark."""
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
    """Lines that a task of a transport sends one after the other."""

    def __init__(self) -> None:
        self._outbox = Outbox()
        self._lines: deque[bytes] = deque()
        self._has_lines = asyncio.Event()

    @property
    def unsent_bytes(self) -> int:
        """Bytes that the other side has not taken yet."""
        return self._outbox.unsent_bytes

    def put(self, lines: bytes | bytearray | memoryview) -> None:
        """Add lines that end in a newline each."""
        for line in bytes(lines).removesuffix(b"\n").split(b"\n"):
            self._lines.append(line)
            self._outbox.add(len(line))
        self._has_lines.set()

    async def send_all(self, send: Callable[[bytes], Awaitable[None]]) -> NoReturn:
        """Send lines as they come, for a task that is cancelled in the end; raises the errors of `send`."""
        while True:
            await self._has_lines.wait()
            while self._lines:
                line = self._lines.popleft()
                await send(line)
                self._outbox.sent(len(line))
            self._has_lines.clear()

    async def drained(self, below: int = HIGH_WATER_BYTES) -> None:
        """Wait while there is more unsent than `below`, down to the low-water mark."""
        await self._outbox.drained(below)

    def close(self) -> None:
        """Drop the unsent lines, and release all senders."""
        self._lines.clear()
        self._outbox.close()
