"""Sees to it that journals survive a power cut: all that are due at a time go to the disk together.

Nobody waits for it, and each trip costs a change of threads: at the end of a turn the answer goes first. At the end of
the bridge somebody does wait, for all journals at once: then they go side by side, because a file system commits those
together that wait at the same time.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any

from dragoman.bridge.hub.journal import Journal
from dragoman.store.thread import finish

PAUSE_S = 0.02
"""Between a turn's end and the trip to the disk: the answer is out by then, and many turns may end at once."""

LAST_THREADS = 16
"""Side by side at the end: 500 files take 0.1 s with four threads or more, and 2.3 s one after the other."""


class Syncer:
    """Takes journals that are due, and brings them to the disk soon."""

    def __init__(self, spawn: Callable[[Coroutine[Any, Any, None]], object]) -> None:
        self._spawn = spawn
        self._due: dict[Journal, None] = {}
        self._is_running = False

    def want(self, journal: Journal) -> None:
        """Take a journal in which something stands that must not be lost."""
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
        await finish(work_all)


async def sync_side_by_side(journals: Iterable[Journal], timeout_s: float) -> int:
    """Bring journals to the disk before the process ends; gives how many are left when the time is up.

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
