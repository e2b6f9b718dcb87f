"""An event stream from a server that is resumed when it breaks.

A server that numbers its events continues after the last one (`Last-Event-ID`). Repeated events are dropped. If a
server does not number its events, events can be lost when a stream breaks. `on_gap` then notifies the requests that
wait for them. A stream that ended without an error was complete.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping

from dragoman.backoff import Backoff
from dragoman.protocol.address import AddressError
from dragoman.protocol.http_link import HttpLink, LinkError

RECONNECT_S = 30.0
"""How long to retry a broken stream: a restart of the server, or a change of network."""

FIRST_DELAY_S = 0.1
LONGEST_DELAY_S = 5.0

STEADY_S = 5.0
"""A stream that lasted this long counts as working, even without an event."""

REMEMBERED_EVENTS = 256
"""Number of event ids kept to recognise repeated events."""

PASSING_STATUSES = frozenset((409, 425, 429, 500, 502, 503, 504))
"""Refusals that may be temporary. A server answers 409 if it has not noticed that our last stream broke."""


class ServerStream:
    """Reads the events of one scope, a connection or a session, and passes each to `on_line` as a line."""

    def __init__(self, link: HttpLink, headers: Mapping[str, str], on_line: Callable[[bytes], None]) -> None:
        self.opened = asyncio.Event()
        """Set when the server has answered for the first time, or will not answer."""
        self.end: AddressError | None = None
        """Why the stream ended, once it has ended."""
        self.was_open = False
        self.on_gap: Callable[[], None] | None = None
        self._link = link
        self._headers = headers
        self._on_line = on_line
        self._may_read = asyncio.Event()
        self._may_read.set()
        self._seen: deque[str] = deque(maxlen=REMEMBERED_EVENTS)
        """Ids of the last events, the newest at the end."""
        self._retry = _Retry()
        self._idle_since: float | None = None
        self._stopped = False

    def pause(self) -> None:
        """Stop reading, so that the server has to wait."""
        self._may_read.clear()

    def resume(self) -> None:
        """Continue reading."""
        self._may_read.set()

    def stop(self) -> None:
        """Stop after the current event, without reconnecting."""
        self._stopped = True

    async def run(self) -> None:
        """Read until the stream is stopped or ended. Never raises."""
        try:
            while not self._stopped:
                await self._read_or_wait()
        except AddressError as end:
            self.end = end
        finally:
            self.opened.set()

    async def wait_quiet(self, quiet_s: float) -> None:
        """Wait until no event has arrived for a while, or none can arrive."""
        while self.end is None and not self._stopped:
            since = self._idle_since
            left = quiet_s if since is None else since + quiet_s - _now()
            if left <= 0:
                return
            await asyncio.sleep(left)

    async def _read_or_wait(self) -> None:
        began = _now()
        try:
            await self._read()
            problem = self._link.address.fail("keeps ending its event stream; see its log for the reason")
        except LinkError as broken:
            problem = self._link.address.fail(broken.problem)
            if self.was_open and not self._seen and self.on_gap is not None:
                self.on_gap()
        except AddressError as refused:
            if refused.status not in PASSING_STATUSES:
                raise
            problem = refused
        if self._stopped:
            return
        if _now() - began > STEADY_S:
            self._retry.reset()
        if not await self._retry.wait():
            raise problem

    async def _read(self) -> None:
        headers = {**self._headers, "Last-Event-ID": self._seen[-1]} if self._seen else self._headers
        may_repeat = self.was_open
        async with self._link.events(headers) as events:
            self.was_open = True
            self.opened.set()
            self._idle_since = _now()
            async for event in events:
                self._idle_since = None
                await self._may_read.wait()
                may_repeat = may_repeat and event.id in self._seen
                if not may_repeat:
                    self._deliver(event.data, event.id)
                if self._stopped:
                    return
                self._idle_since = _now()

    def _deliver(self, data: str, event_id: str) -> None:
        self._retry.reset()
        if event_id:
            self._seen.append(event_id)
        if data:
            # A newline inside JSON is only white space, but it would end the message.
            self._on_line(data.replace("\n", " ").encode())


class _Retry:
    """Waits longer before each attempt, and fails after `RECONNECT_S` without success."""

    def __init__(self) -> None:
        self._failing_since: float | None = None
        self._backoff = Backoff(FIRST_DELAY_S, LONGEST_DELAY_S)

    def reset(self) -> None:
        """Record a success."""
        self._failing_since = None
        self._backoff.reset()

    async def wait(self) -> bool:
        """Wait until the next attempt. Return False when there should be none."""
        now = _now()
        if self._failing_since is None:
            self._failing_since = now
        if now - self._failing_since > RECONNECT_S:
            return False
        await asyncio.sleep(self._backoff.next_s())
        return True


def _now() -> float:
    return asyncio.get_running_loop().time()
