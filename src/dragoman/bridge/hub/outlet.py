"""What a viewer reads from, once it has read the last: nothing is pushed at it."""

import asyncio
import time
from collections.abc import Callable

from dragoman.bridge.hub.event import Event

Pull = Callable[[int], list[Event]]
"""Gives what is there now, up to so many bytes."""


class Outlet:
    """A stream of messages for one viewer, taken batch after batch."""

    def __init__(
        self,
        pull: Pull,
        has_more: Callable[[], bool],
        on_end: Callable[[], None] = lambda: None,
        place: Callable[[], bytes | None] = lambda: None,
    ) -> None:
        self.ended = False
        self.place = place
        """Names where it is now, as the id of an event does; None where there is no such place."""
        self._on_end = on_end
        self._pull = pull
        self._has_more = has_more
        self._waiter: asyncio.Future[None] | None = None
        self._free_since = time.monotonic()

    async def take(self, max_bytes: int = 65536) -> list[Event]:
        """Wait for at least one message, and give those that fit; an empty list is the end.

        Whoever is cancelled in here has left: the outlet ends with it.
        """
        while not self.ended:
            events = self._pull(max_bytes)
            if events:
                self._free_since = time.monotonic()
                return events
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            except asyncio.CancelledError:
                self.end()
                raise
            finally:
                self._waiter = None
                self._free_since = time.monotonic()
        return []

    @property
    def is_hungry(self) -> bool:
        """Whether somebody waits in `take`, and will have what comes now."""
        return self._waiter is not None

    def end(self) -> None:
        """Give nothing more; to be called by whoever takes, when its stream is closed."""
        self.ended = True
        self.wake()
        self._on_end()

    def wake(self) -> None:
        """Look again."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def stalled_s(self) -> float:
        """Say for how long nobody took anything although there was something."""
        if self.ended or self._waiter is not None or not self._has_more():
            return 0.0
        return time.monotonic() - self._free_since
