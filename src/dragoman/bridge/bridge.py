"""The bridge: several agents by name, each with its hub."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from dragoman.bridge.hub.hub import Hub
from dragoman.bridge.problem import BridgeBusy
from dragoman.bridge.settings import Settings
from dragoman.errors import SessionBusy
from dragoman.proc import Supervisor
from dragoman.store.disk import Disk, make_directories
from dragoman.store.lock import Lock, acquire


class Bridge:
    """Fronts agents while it is open: use it as an async context manager.

    On the way out agents are stopped and journals are whole. Entering raises BridgeBusy if another bridge has its
    home, and OSError if journals cannot be kept there.
    """

    def __init__(self, settings: Settings, *, disk: Disk | None = None) -> None:
        self.settings = settings
        self._disk = disk or Disk()
        self._hubs: dict[str, Hub] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            lock = await asyncio.to_thread(_lock, self._disk, self.settings.home)
            stack.callback(lock.release)
            supervisor = await stack.enter_async_context(Supervisor())
            tasks = await asyncio.TaskGroup().__aenter__()
            # What fails in the body is no failure of a task: it is to come out as it is, not in a group.
            stack.push_async_callback(tasks.__aexit__, None, None, None)
            stack.push_async_callback(self._close_hubs)
            for spec in self.settings.agents:
                self._hubs[spec.name] = hub = Hub(spec, self.settings, supervisor, tasks, self._disk)
                await hub.start()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    def begin_stop(self) -> None:
        """Begin to stop all agents, while viewers are still told that the bridge ends."""
        for hub in self._hubs.values():
            hub.begin_close()

    async def _close_hubs(self) -> None:
        await asyncio.gather(*(hub.close() for hub in self._hubs.values()))

    def hub(self, name: str | None = None) -> Hub | None:
        """Give the hub of an agent, by default the first; None if there is no agent of that name."""
        return self._hubs.get(self.settings.agents[0].name if name is None else name)


def _lock(disk: Disk, home: Path) -> Lock:
    directory = home / "bridge"
    make_directories(disk, directory)
    try:
        return acquire(directory / "lock", str(directory))
    except SessionBusy as busy:
        raise BridgeBusy(str(home), busy.pid, busy.host) from None
