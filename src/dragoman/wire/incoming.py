"""The incoming half of a peer: lines that wait behind a slow handler, and requests that are being answered."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Sequence

from dragoman.wire.framing import Oversized
from dragoman.wire.handler import IncomingRequest
from dragoman.wire.message import NULL_ID
from dragoman.wire.transport import Transport

MAX_BACKLOG_BYTES = 1024 * 1024
"""Lines waiting behind a slow notification handler before reading stops."""

MAX_IN_FLIGHT = 1024
"""Requests of the other side that may run at a time: far more than any editor sends, far fewer than hurt."""


class LineBacklog:
    """Lines that wait, in order, while a notification handler is awaited; it stops reading when they are too many.

    Reading stops for two reasons, each of which may come and go by itself: the backlog is full, or the other side
    provokes refusals and does not read them. It goes on when neither holds.
    """

    def __init__(self, transport: Transport) -> None:
        self.dispatcher: asyncio.Task[None] | None = None
        """The task that awaits the handler and then takes the lines; None while nothing waits."""
        self.awaited: Awaitable[None] | None = None
        """The handler that the dispatcher has to await first, until it has begun."""
        self.is_refusing = False
        """Whether reading has stopped until the other side has read its refusals."""
        self._transport = transport
        self._lines: deque[bytes | Oversized] = deque()
        self._bytes = 0
        self._is_full = False

    def __bool__(self) -> bool:
        return bool(self._lines)

    def add(self, lines: Sequence[bytes | Oversized]) -> None:
        """Let lines wait; too many stop reading."""
        self._lines.extend(lines)
        self._bytes += sum(len(line) for line in lines if isinstance(line, bytes))
        if self._bytes > MAX_BACKLOG_BYTES:
            self._is_full = True
            self._transport.pause_reading()

    def pop(self) -> bytes | Oversized:
        """Return the next line; reading goes on when half of the room is free again."""
        line = self._lines.popleft()
        if isinstance(line, bytes):
            self._bytes -= len(line)
        if self._is_full and self._bytes < MAX_BACKLOG_BYTES // 2:
            self._is_full = False
            self._read_on()
        return line

    def stop_for_refusals(self) -> None:
        """Stop reading until the other side has read its refusals."""
        self.is_refusing = True
        self._transport.pause_reading()

    def go_on_after_refusals(self) -> None:
        """Read on, if nothing else holds it."""
        self.is_refusing = False
        self._read_on()

    def close(self) -> None:
        """Cancel the dispatcher, and the handler that it has not come to."""
        if self.dispatcher is not None:
            self.dispatcher.cancel()
        if asyncio.iscoroutine(self.awaited):
            self.awaited.close()

    def _read_on(self) -> None:
        if not self._is_full and not self.is_refusing:
            self._transport.resume_reading()


class RunningRequests:
    """The requests of the other side that are being answered, each in its own task."""

    def __init__(self) -> None:
        self.unbegun = 0
        """Requests whose task has not run yet; a notification behind them has to wait for that."""
        self._running: set[IncomingRequest] = set()
        self._by_id: dict[bytes, IncomingRequest] = {}

    def __len__(self) -> int:
        return len(self._running)

    def __contains__(self, request: IncomingRequest) -> bool:
        return request in self._running

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """The tasks that answer them."""
        return [request.task for request in self._running if request.task is not None]

    def find(self, request_id: bytes) -> IncomingRequest | None:
        """Return the request that runs under an id."""
        return self._by_id.get(request_id)

    def add(self, request: IncomingRequest) -> str | None:
        """Take a request, whose task has not begun; returns the problem when it cannot be taken."""
        if len(self._running) >= MAX_IN_FLIGHT:
            return f"{MAX_IN_FLIGHT} requests are in flight already; wait for answers before sending more"
        if request.id in self._by_id and request.id != NULL_ID:
            return f"id {request.id.decode()} belongs to a request that is still running; use a new one"
        self._running.add(request)
        self._by_id[request.id] = request
        self.unbegun += 1
        return None

    def remove(self, request: IncomingRequest) -> None:
        """Forget a request that was answered."""
        self._running.discard(request)
        if self._by_id.get(request.id) is request:
            del self._by_id[request.id]
