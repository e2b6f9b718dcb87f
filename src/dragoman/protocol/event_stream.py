"""One event stream of a server, which is opened again when it breaks, where it broke.

A server that numbers its events goes on behind the last one that came (`Last-Event-ID`), and may repeat some: those
are dropped. A server that does not number them has lost the events under way when a stream broke; `on_gap` tells the
requests that wait for them. A stream that ended without an error was complete.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping

from dragoman.protocol.address import AddressFailed
from dragoman.protocol.http_link import HttpLink, LinkBroken

RECONNECT_S = 30.0
"""For a stream to come back before it is given up: a restart of a server, or a walk to another network."""

FIRST_DELAY_S = 0.1
LONGEST_DELAY_S = 5.0

STEADY_S = 5.0
"""A stream that lasted this long was a good one, even if nothing came."""

REMEMBERED_EVENTS = 256
"""Ids of the last events, to recognise those that a server repeats."""

PASSING_STATUSES = frozenset((409, 425, 429, 500, 502, 503, 504))
"""Refusals that may be over soon; 409 is that of a server that has not noticed yet that our last stream broke."""


class ServerStream:
    """Reads the events of one scope, the connection's or a session's, and gives each to `take` as a line."""

    def __init__(self, link: HttpLink, headers: Mapping[str, str], take: Callable[[bytes], None]) -> None:
        self.opened = asyncio.Event()
        """Set when the server has answered for the first time, or will not."""
        self.end: AddressFailed | None = None
        """Why it is over, once it is."""
        self.was_open = False
        self.on_gap: Callable[[], None] | None = None
        self._link = link
        self._headers = headers
        self._take = take
        self._may_read = asyncio.Event()
        self._may_read.set()
        self._seen: deque[str] = deque(maxlen=REMEMBERED_EVENTS)
        """Ids of the last events, the newest at the end."""
        self._retry = _Retry()
        self._idle_since: float | None = None
        self._stopped = False

    def pause(self) -> None:
        """Read no further, so that the server has to wait."""
        self._may_read.clear()

    def resume(self) -> None:
        """Read on."""
        self._may_read.set()

    def stop(self) -> None:
        """Read nothing behind the event that is being read, and do not come back."""
        self._stopped = True

    async def run(self) -> None:
        """Read until the stream is stopped or over; never raises."""
        try:
            while not self._stopped:
                await self._read_or_wait()
        except AddressFailed as end:
            self.end = end
        finally:
            self.opened.set()

    async def wait_quiet(self, quiet_s: float) -> None:
        """Wait until nothing has come for a while, or nothing will."""
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
            problem = self._link.address.fail("ends its event stream again and again; its log says why")
        except LinkBroken as broken:
            problem = self._link.address.fail(broken.problem)
            if self.was_open and not self._seen and self.on_gap is not None:
                self.on_gap()
        except AddressFailed as refused:
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
            # A newline in JSON can only be blank space, and elsewhere it ends the message.
            self._take(data.replace("\n", " ").encode())


class _Retry:
    """Waits longer before each attempt, and gives up after `RECONNECT_S` without success."""

    def __init__(self) -> None:
        self._failing_since: float | None = None
        self._delay_s = FIRST_DELAY_S

    def reset(self) -> None:
        """Take note of a success."""
        self._failing_since = None
        self._delay_s = FIRST_DELAY_S

    async def wait(self) -> bool:
        """Wait until the next attempt; returns False when there should be none."""
        now = _now()
        if self._failing_since is None:
            self._failing_since = now
        if now - self._failing_since > RECONNECT_S:
            return False
        await asyncio.sleep(self._delay_s)
        self._delay_s = min(2 * self._delay_s, LONGEST_DELAY_S)
        return True


def _now() -> float:
    return asyncio.get_running_loop().time()
