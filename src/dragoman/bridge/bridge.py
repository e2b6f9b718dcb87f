"""The bridge: several agents by name, each served to its own viewers."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from dragoman.bridge.problem import BridgeBusy
from dragoman.bridge.served_agent import ServedAgent
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
        self._agents: dict[str, ServedAgent] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            lock = await asyncio.to_thread(_lock, self._disk, self.settings.home)
            stack.callback(lock.release)
            processes = await stack.enter_async_context(Supervisor())
            tasks = await asyncio.TaskGroup().__aenter__()
            # An error in the body is no failure of a task: it is raised as it is, not in a group.
            stack.push_async_callback(tasks.__aexit__, None, None, None)
            stack.push_async_callback(self._close_agents)
            for spec in self.settings.agents:
                self._agents[spec.name] = agent = ServedAgent(spec, self.settings, processes, tasks, self._disk)
                await agent.start()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    def begin_stop(self) -> None:
        """Begin to stop all agents, while viewers are still told that the bridge ends."""
        for agent in self._agents.values():
            agent.begin_close()

    async def _close_agents(self) -> None:
        await asyncio.gather(*(agent.close() for agent in self._agents.values()))

    def agent(self, name: str | None = None) -> ServedAgent | None:
        """Give an agent by its name, by default the first; None if there is none of that name."""
        return self._agents.get(self.settings.agents[0].name if name is None else name)


def _lock(disk: Disk, home: Path) -> Lock:
    directory = home / "bridge"
    make_directories(disk, directory)
    try:
        return acquire(directory / "lock", str(directory))
    except SessionBusy as busy:
        raise BridgeBusy(str(home), busy.pid, busy.host) from None
