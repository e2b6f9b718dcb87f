"""Two connected transports in one process."""

import asyncio
from collections import deque

from dragoman.errors import ConnectionClosedError
from dragoman.wire.framing import LineSplitter
from dragoman.wire.transport import Outbox, Receiver


def memory_pair() -> tuple["MemoryTransport", "MemoryTransport"]:
    """Create two transports that are connected to each other."""
    there, back = _Direction(), _Direction()
    return MemoryTransport(back, there), MemoryTransport(there, back)


class _Direction:
    """One direction. Lines that are put in are delivered on the next tick of the event loop."""

    def __init__(self) -> None:
        self.outbox = Outbox()
        self._splitter = LineSplitter()
        self._queue: deque[bytes] = deque()
        self._receiver: Receiver | None = None
        self._paused = False
        self._scheduled = False
        self.ended = False

    def put(self, data: bytes) -> None:
        if not self.ended:
            self.outbox.add(len(data))
            self._queue.append(data)
            self._schedule()

    def end(self) -> None:
        if not self.ended:
            self.ended = True
            self._schedule()

    def deliver_to(self, receiver: Receiver | None) -> None:
        self._receiver = receiver
        self._schedule()

    def pause(self, *, paused: bool) -> None:
        self._paused = paused
        self._schedule()

    def _schedule(self) -> None:
        if self._receiver is not None and not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._deliver)

    def _deliver(self) -> None:
        self._scheduled = False
        while self._queue and self._receiver is not None and not self._paused:
            data = self._queue.popleft()
            self.outbox.sent(len(data))
            self._receiver.lines_received(self._splitter.feed(data))
        if self.ended and not self._queue and self._receiver is not None:
            receiver, self._receiver = self._receiver, None
            receiver.input_ended(was_file=False)


class MemoryTransport:
    """Carries lines to the transport that was created with it."""

    def __init__(self, incoming: _Direction, outgoing: _Direction) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    @property
    def unsent_bytes(self) -> int:
        return self._outgoing.outbox.unsent_bytes

    @property
    def can_write(self) -> bool:
        return not self._outgoing.ended

    def start(self, receiver: Receiver, tasks: asyncio.TaskGroup) -> None:
        del tasks
        self._incoming.deliver_to(receiver)

    def write(self, lines: bytes | bytearray | memoryview) -> None:
        self._outgoing.put(bytes(lines))

    async def drained(self) -> None:
        await self._outgoing.outbox.drained()

    def pause_reading(self) -> None:
        self._incoming.pause(paused=True)

    def resume_reading(self) -> None:
        self._incoming.pause(paused=False)

    async def explain_end(self) -> ConnectionClosedError:
        return ConnectionClosedError("the other side closed the connection")

    async def close(self) -> None:
        self._outgoing.end()
        self._outgoing.outbox.close()
        self._incoming.deliver_to(None)
        self._incoming.end()
        self._incoming.outbox.close()
