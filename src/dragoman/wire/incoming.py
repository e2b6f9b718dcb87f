"""The incoming half of a peer: lines that wait for a slow handler, and requests that are being answered."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Sequence

from dragoman.wire.framing import Oversized
from dragoman.wire.handler import IncomingRequest
from dragoman.wire.message import NULL_ID
from dragoman.wire.transport import Transport

MAX_BACKLOG_BYTES = 1024 * 1024
"""Bytes that may wait for a slow notification handler before reading stops."""

MAX_IN_FLIGHT = 1024
"""Concurrent requests of the other side: far more than any editor sends, and few enough to do no harm."""


class LineBacklog:
    """Queues lines in order while a notification handler is awaited. Stops reading when the queue is full.

    Reading stops for two independent reasons: the backlog is full, or the other side provokes refusals and does not
    read them. Reading resumes when neither holds.
    """

    def __init__(self, transport: Transport) -> None:
        self.dispatcher: asyncio.Task[None] | None = None
        """The task that awaits the handler and then handles the queued lines. None while nothing waits."""
        self.awaited: Awaitable[None] | None = None
        """The handler that the dispatcher has to await first, until the dispatcher has started."""
        self.is_refusing = False
        """Whether reading is stopped until the other side has read its refusals."""
        self._transport = transport
        self._lines: deque[bytes | Oversized] = deque()
        self._bytes = 0
        self._is_full = False

    def __bool__(self) -> bool:
        return bool(self._lines)

    def add(self, lines: Sequence[bytes | Oversized]) -> None:
        """Queue lines. Stop reading if there are too many."""
        self._lines.extend(lines)
        self._bytes += sum(len(line) for line in lines if isinstance(line, bytes))
        if self._bytes > MAX_BACKLOG_BYTES:
            self._is_full = True
            self._transport.pause_reading()

    def pop(self) -> bytes | Oversized:
        """Return the next line. Resume reading when half of the room is free again."""
        line = self._lines.popleft()
        if isinstance(line, bytes):
            self._bytes -= len(line)
        if self._is_full and self._bytes < MAX_BACKLOG_BYTES // 2:
            self._is_full = False
            self._resume_reading()
        return line

    def pause_for_refusals(self) -> None:
        """Stop reading until the other side has read its refusals."""
        self.is_refusing = True
        self._transport.pause_reading()

    def resume_after_refusals(self) -> None:
        """Resume reading, unless the backlog is full."""
        self.is_refusing = False
        self._resume_reading()

    def close(self) -> None:
        """Cancel the dispatcher, and the handler that it has not started."""
        if self.dispatcher is not None:
            self.dispatcher.cancel()
        if asyncio.iscoroutine(self.awaited):
            self.awaited.close()

    def _resume_reading(self) -> None:
        if not self._is_full and not self.is_refusing:
            self._transport.resume_reading()


class RunningRequests:
    """The requests of the other side that are being answered, each in its own task."""

    def __init__(self) -> None:
        self.unstarted = 0
        """The number of requests whose task has not run yet. A notification that follows them must wait."""
        self._running: set[IncomingRequest] = set()
        self._by_id: dict[bytes, IncomingRequest] = {}

    def __len__(self) -> int:
        return len(self._running)

    def __contains__(self, request: IncomingRequest) -> bool:
        return request in self._running

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """The tasks that answer the requests."""
        return [request.task for request in self._running if request.task is not None]

    def find(self, request_id: bytes) -> IncomingRequest | None:
        """Return the running request with an ID."""
        return self._by_id.get(request_id)

    def add(self, request: IncomingRequest) -> str | None:
        """Register a request whose task has not started. Return the problem if it is refused, or None."""
        if len(self._running) >= MAX_IN_FLIGHT:
            return f"{MAX_IN_FLIGHT} requests are already running, the limit. Wait for responses before sending more"
        if request.id in self._by_id and request.id != NULL_ID:
            return f"id {request.id.decode()} belongs to a request that is still running. Use a new one"
        self._running.add(request)
        self._by_id[request.id] = request
        self.unstarted += 1
        return None

    def remove(self, request: IncomingRequest) -> None:
        """Remove a request that was answered."""
        self._running.discard(request)
        if self._by_id.get(request.id) is request:
            del self._by_id[request.id]
