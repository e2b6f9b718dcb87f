"""The viewers that are connected, and the journals that are synced after the ends of turns.

The end of a turn does not wait for a sync, and each sync costs a change of threads. So the answer is sent first, and
all due journals are synced together. When the bridge stops, it must wait for all journals. Then they are synced in
parallel, because a file system commits concurrent syncs together.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any

from dragoman.bridge.delivery.history_store import HistoryStore
from dragoman.bridge.problem import TooManyViewersError
from dragoman.bridge.settings import ViewerLimits
from dragoman.bridge.viewers.viewer import Viewer, ViewerAccess, ViewerHandler
from dragoman.cancellation import finish_in_thread
from dragoman.store.history import History

PAUSE_S = 0.02
"""Pause between a turn's end and the sync. The answer is sent by then, and many turns may end at once."""

LAST_THREADS = 16
"""Threads that sync at the end. 500 files take 0.1 s with four threads or more, and 2.3 s with one."""

LAST_SYNC_S = 0.5
"""Time for the last syncs when the bridge stops. All journals are written by then, and the system syncs them some
seconds later, so only a power cut could lose the end of the others."""

_log = logging.getLogger("dragoman.bridge")

Spawn = Callable[[Coroutine[Any, Any, None]], object]


class HistorySync:
    """Brings journals to the disk soon, so that they survive a power cut."""

    def __init__(self, spawn: Spawn) -> None:
        self._spawn = spawn
        self._due: dict[History, None] = {}
        self._is_running = False

    def want(self, history: History) -> None:
        """Sync a journal soon."""
        history.is_sync_due = True
        self._due[history] = None
        if not self._is_running:
            self._is_running = True
            self._spawn(self._run())

    async def _run(self) -> None:
        try:
            while self._due:
                await asyncio.sleep(PAUSE_S)
                due, self._due = self._due, {}
                await _sync_all([work for history in due if (work := history.begin_sync()) is not None])
        finally:
            self._is_running = False


async def _sync_all(works: list[Callable[[], None]]) -> None:
    def work_all() -> None:
        for work in works:
            work()

    if works:
        await finish_in_thread(work_all)


async def sync_side_by_side(histories: Iterable[History], timeout_s: float) -> int:
    """Sync journals before the process ends. Return how many are left when the time is up.

    The threads are daemons, so that a disk which does not answer cannot keep the process from ending.
    """
    works = deque(work for history in histories if (work := history.begin_sync()) is not None)
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    left = len(works)

    def work_some() -> None:
        while works:
            try:
                work = works.popleft()
            except IndexError:
                return  # another thread was faster
            work()
            with suppress(RuntimeError):  # the loop is closed, so no task waits any more
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

    def __init__(self, agent: str, histories: HistoryStore, limits: ViewerLimits, spawn: Spawn) -> None:
        self.viewers: dict[str, Viewer] = {}
        self.histories = histories
        self._agent = agent
        self._limits = limits
        self.spawn = spawn
        self._sync = HistorySync(spawn)

    def open_viewer(self, handler: ViewerHandler, access: ViewerAccess) -> Viewer:
        """Add a viewer. Raises TooManyViewersError."""
        viewer = Viewer(handler, self._limits.window_bytes, self.spawn, access)
        self.admit(viewer)
        return viewer

    def admit(self, viewer: Viewer) -> None:
        """Count a viewer as connected. Raises TooManyViewersError."""
        limits, share_id = self._limits, viewer.access.share_id
        if len(self.viewers) >= limits.max_viewers:
            raise TooManyViewersError(self._agent, limits.max_viewers)
        if share_id is not None:
            shares = [each.access.share_id for each in self.viewers.values() if each.access.share_id is not None]
            if shares.count(share_id) >= limits.max_viewers_per_share:
                raise TooManyViewersError(self._agent, limits.max_viewers_per_share, "viewers of this link")
            if len(shares) >= limits.max_readers:
                raise TooManyViewersError(self._agent, limits.max_readers, "readers")
        self.viewers[viewer.id] = viewer

    def remove_viewer(self, viewer: Viewer) -> bool:
        """Remove a viewer. Return whether it was connected."""
        return self.viewers.pop(viewer.id, None) is not None

    def drop_stalled(self, now: float) -> None:
        """Drop viewers that read nothing although messages are waiting."""
        for viewer in list(self.viewers.values()):
            viewer.drop_if_stalled(self._limits.stall_s, now)

    def sync_soon(self, history: History) -> None:
        """Sync a journal soon, because something in it must not be lost."""
        self._sync.want(history)

    async def close(self, histories: list[History]) -> None:
        """Sync and close all journals, in bounded time."""
        left = await sync_side_by_side(histories, LAST_SYNC_S)
        if left:
            _log.warning("%s: %d journals were written and not synced: the disk is slow", self._agent, left)
        for history in histories:
            history.rest()
            if history.is_waiting:
                _log.warning("%s: the disk is full: the end of %s is lost", self._agent, history.place)
