"""Delivery: journals are written once a tick, viewers read them, and the ends of turns are synced.

Nobody waits for a sync during a turn's end, and each costs a change of threads: all journals that are due go to the
disk together, and the answer goes first. At the end of the bridge somebody does wait, for all journals at once: then
they are synced side by side, because a file system commits those together that wait at the same time.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any, Protocol

from dragoman.bridge.delivery.journal import Journal
from dragoman.bridge.delivery.journal_store import JournalStore
from dragoman.bridge.delivery.viewer import Viewer, ViewerAccess, ViewerHandler
from dragoman.bridge.problem import TooManyViewers
from dragoman.bridge.settings import ViewerLimits
from dragoman.cancellation import finish_in_thread

PAUSE_S = 0.02
"""Between a turn's end and the sync: the answer is out by then, and many turns may end at once."""

LAST_THREADS = 16
"""Side by side at the end: 500 files take 0.1 s with four threads or more, and 2.3 s one after the other."""

LAST_SYNC_S = 0.5
"""For journals to reach the disk when the bridge ends. They are written by then: only a power cut could lose the end
of those that are left, and the system syncs them some seconds later."""

_log = logging.getLogger("dragoman.bridge")

Spawn = Callable[[Coroutine[Any, Any, None]], object]


class SessionFeed(Protocol):
    """A session's journal with its subscriptions."""

    def flush(self) -> None:
        """Write the records that were added to the journal."""
        ...

    def wake_viewers(self) -> None:
        """Have all subscriptions look again."""
        ...


class JournalSync:
    """Brings journals to the disk soon, so that they survive a power cut."""

    def __init__(self, spawn: Spawn) -> None:
        self._spawn = spawn
        self._due: dict[Journal, None] = {}
        self._is_running = False

    def want(self, journal: Journal) -> None:
        """Have a journal synced."""
        journal.is_sync_due = True
        self._due[journal] = None
        if not self._is_running:
            self._is_running = True
            self._spawn(self._run())

    async def _run(self) -> None:
        try:
            while self._due:
                await asyncio.sleep(PAUSE_S)
                due, self._due = self._due, {}
                await _sync_all([work for journal in due if (work := journal.begin_sync()) is not None])
        finally:
            self._is_running = False


async def _sync_all(works: list[Callable[[], None]]) -> None:
    def work_all() -> None:
        for work in works:
            work()

    if works:
        await finish_in_thread(work_all)


async def sync_side_by_side(journals: Iterable[Journal], timeout_s: float) -> int:
    """Sync journals before the process ends; gives how many are left when the time is up.

    The threads are daemons, so that a disk which does not answer cannot keep the process from ending.
    """
    works = deque(work for journal in journals if (work := journal.begin_sync()) is not None)
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    left = len(works)

    def work_some() -> None:
        while works:
            try:
                work = works.popleft()
            except IndexError:
                return  # another thread was faster
            work()
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(count)

    def count() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            ended.set()

    for _ in range(min(LAST_THREADS, left)):
        threading.Thread(target=work_some, name="sync", daemon=True).start()
    if left:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await ended.wait()
    works.clear()
    return left


class Delivery:
    """The viewers of one agent and the journals that they read."""

    def __init__(self, agent: str, journals: JournalStore, limits: ViewerLimits, spawn: Spawn) -> None:
        self.viewers: dict[str, Viewer] = {}
        self.journals = journals
        self._agent = agent
        self._limits = limits
        self.spawn = spawn
        self._sync = JournalSync(spawn)
        self._dirty: dict[SessionFeed, None] = {}
        self._flush_due = False

    def open_viewer(self, handler: ViewerHandler, access: ViewerAccess) -> Viewer:
        """Let a viewer in; raises TooManyViewers."""
        viewer = Viewer(handler, self._limits.window_bytes, self.spawn, access)
        self.admit(viewer)
        return viewer

    def admit(self, viewer: Viewer) -> None:
        """Count a viewer as connected; raises TooManyViewers."""
        if len(self.viewers) >= self._limits.max_viewers:
            raise TooManyViewers(self._agent, self._limits.max_viewers)
        self.viewers[viewer.id] = viewer

    def remove_viewer(self, viewer: Viewer) -> bool:
        """Forget a viewer; tells whether it was there."""
        return self.viewers.pop(viewer.id, None) is not None

    def drop_stalled(self, now: float) -> None:
        """Drop viewers that take nothing although something waits for them."""
        for viewer in list(self.viewers.values()):
            viewer.drop_if_stalled(self._limits.stall_s, now)

    def touch(self, feed: SessionFeed) -> None:
        """Have a session's journal written and shown at the end of this tick."""
        self._dirty[feed] = None
        if not self._flush_due:
            self._flush_due = True
            asyncio.get_running_loop().call_soon(self._flush)

    def forget(self, feed: SessionFeed) -> None:
        """Write nothing more of a session."""
        self._dirty.pop(feed, None)

    def sync_soon(self, journal: Journal) -> None:
        """Have a journal brought to the disk, because something in it must not be lost."""
        self._sync.want(journal)

    async def close(self, journals: list[Journal]) -> None:
        """Leave whole journals, in bounded time."""
        left = await sync_side_by_side(journals, LAST_SYNC_S)
        if left:
            _log.warning("%s: %d journals were written and not synced: the disk is slow", self._agent, left)
        for journal in journals:
            journal.close()
            if journal.is_waiting:
                _log.warning("%s: the disk is full: the end of %s is lost", self._agent, journal.place)

    def _flush(self) -> None:
        self._flush_due = False
        dirty, self._dirty = self._dirty, {}
        for feed in dirty:
            feed.flush()
            feed.wake_viewers()
