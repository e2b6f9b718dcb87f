"""Sees to it that journals survive a power cut: all that are due at a time go to the disk together.

Nobody waits for it, and each trip costs a change of threads: at the end of a turn the answer goes first.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from dragoman.gateway.hub.journal import Journal
from dragoman.store.thread import finish

PAUSE_S = 0.02
"""Between a turn's end and the trip to the disk: the answer is out by then, and many turns may end at once."""


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
