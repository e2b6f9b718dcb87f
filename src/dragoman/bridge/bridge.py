"""The bridge: several agents by name, each served to its own viewers."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from dragoman.bridge.figures import Figure
from dragoman.bridge.problem import BridgeBusy
from dragoman.bridge.router import PendingLogin
from dragoman.bridge.served_agent import ServedAgent
from dragoman.bridge.settings import Settings
from dragoman.errors import SessionBusy
from dragoman.proc import Supervisor
from dragoman.store.disk import Disk, make_directories
from dragoman.store.lock import Lock, acquire
from dragoman.store.retention import find_policy

if TYPE_CHECKING:
    from dragoman.bridge.nodes import BridgeNode


class Bridge:
    """Fronts agents while it is open: use it as an async context manager.

    On the way out agents are stopped and journals are whole. Entering raises BridgeBusy if another bridge has its
    home, and OSError if journals cannot be kept there.
    """

    def __init__(self, settings: Settings, *, disk: Disk | None = None) -> None:
        self.settings = settings
        self._disk = disk or Disk()
        self._agents: dict[str, ServedAgent] = {}
        self._node: BridgeNode | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            self._node = node = await self._enter_home(stack)
            processes = await stack.enter_async_context(Supervisor())
            tasks = await asyncio.TaskGroup().__aenter__()
            # An error in the body is no failure of a task: it is raised as it is, not in a group.
            stack.push_async_callback(tasks.__aexit__, None, None, None)
            stack.push_async_callback(self._close_agents)
            for spec in self.settings.agents:
                self._agents[spec.name] = agent = ServedAgent(
                    spec, self.settings, processes, tasks, self._disk, bridge_node=node
                )
                await agent.start()
            if node is not None:
                looking = [tasks.create_task(work) for work in node.tasks()]
                stack.push_async_callback(_cancel, looking)
            self._stack = stack.pop_all()
        return self

    async def _enter_home(self, stack: AsyncExitStack) -> "BridgeNode | None":
        """Own the home, whose files are of one bridge; or join the other bridges of a database."""
        if self.settings.store is None:
            lock = await asyncio.to_thread(lock_home, self._disk, self.settings.home)
            stack.callback(lock.release)
            return None
        from dragoman.bridge.nodes import BridgeNode  # with a store only: it needs psycopg

        names = [spec.name for spec in self.settings.agents]
        node = BridgeNode(self.settings.store, names, self.settings.lease_s, find_policy())
        stack.push_async_callback(node.close)
        await node.open()
        await asyncio.to_thread(make_directories, self._disk, self.settings.home / "bridge")
        return node

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

    def take_login(self, state: str) -> tuple[ServedAgent, PendingLogin] | None:
        """Use up the state of a login that a browser comes back from, and give its agent; None if none waits for it."""
        for agent in self._agents.values():
            login = agent.router.logins.take(state)
            if login is not None:
                return agent, login
        return None

    def show_question(self, code: str) -> dict[str, Any] | None:
        """Describe the question that a link leads to, or how it was settled; None if the code is of no link."""
        for agent in self._agents.values():
            links = agent.router.questions.links
            if (link := links.find(code)) is not None:
                return {"agent": agent.spec.title or agent.spec.name, **links.describe(link)}
        return None

    def answer_question(self, code: str, option_id: str) -> bool:
        """Settle the question that a link leads to, if it still waits; false if the link does not offer the option."""
        for agent in self._agents.values():
            links = agent.router.questions.links
            if (link := links.find(code)) is not None:
                return links.answer(link, option_id)
        return False

    def end_share(self, share_id: str, reason: str) -> None:
        """Close the viewers that were let in by a share which is over."""
        for agent in self._agents.values():
            agent.end_share(share_id, reason)

    @property
    def has_other_nodes(self) -> bool:
        """Whether other bridges share its database now."""
        return self._node is not None and self._node.has_others

    def measure(self) -> list[Figure]:
        """Return the figures of all agents, for monitoring."""
        return [figure for agent in self._agents.values() for figure in agent.measure()]

    def agent(self, name: str | None = None) -> ServedAgent | None:
        """Give an agent by its name, by default the first; None if there is none of that name."""
        return self._agents.get(self.settings.agents[0].name if name is None else name)


async def _cancel(tasks: "list[asyncio.Task[None]]") -> None:
    for task in tasks:
        task.cancel()


def lock_home(disk: Disk, home: Path) -> Lock:
    """Hold a home as a bridge does; raises BridgeBusy."""
    directory = home / "bridge"
    make_directories(disk, directory)
    try:
        return acquire(directory / "lock", str(directory))
    except SessionBusy as busy:
        raise BridgeBusy(str(home), busy.pid, busy.host) from None
