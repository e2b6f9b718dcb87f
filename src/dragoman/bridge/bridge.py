"""The bridge: several agents by name, each served to its viewers.

    Bridge ──► ServedAgent per agent ──► nodes ──► router ──► sessions ──► delivery | agent_host
       └─────► BridgeNode, if it shares a database with other bridges

A bridge without a database locks its home, because journals in files have one writer.
"""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from dragoman.bridge.figures import Figure
from dragoman.bridge.guard.credentials import Token, hash_code, realm_of
from dragoman.bridge.guard.shares import SHARES_FILE, Shares
from dragoman.bridge.guard.stores import CredentialStores
from dragoman.bridge.problem import BridgeBusyError
from dragoman.bridge.router import BroughtLogin, LinkedQuestion
from dragoman.bridge.served_agent import ServedAgent
from dragoman.bridge.settings import BridgeSettings
from dragoman.errors import SessionBusyError
from dragoman.proc import Supervisor
from dragoman.running_bridge import find_bridge
from dragoman.store.disk import Disk, make_directories
from dragoman.store.lock import Lock, acquire
from dragoman.store.retention import find_policy

if TYPE_CHECKING:
    from dragoman.bridge.nodes import BridgeNode


class Bridge:
    """Serves agents to viewers while it is open. Use it as an async context manager.

    Leaving the context stops the agents and completes the journals. Entering raises BridgeBusyError if another bridge
    uses its home, and OSError if journals cannot be stored there.
    """

    def __init__(self, settings: BridgeSettings, *, disk: Disk | None = None) -> None:
        """Raises InvalidStoreAddressError, InvalidRetentionError. Opens nothing yet."""
        self.settings = settings
        self._disk = disk or Disk()
        self._agents: dict[str, ServedAgent] = {}
        self._node = None if settings.store is None else _make_node(settings, settings.store)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await self._enter_home(stack)
            node = self._node
            processes = await stack.enter_async_context(Supervisor())
            tasks = await asyncio.TaskGroup().__aenter__()
            # An error in the body of the context is raised unchanged. The task group would wrap it.
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

    async def _enter_home(self, stack: AsyncExitStack) -> None:
        """Lock the home, which belongs to one bridge, or join the other bridges on a database."""
        if self._node is None:
            lock = await asyncio.to_thread(lock_home, self._disk, self.settings.home)
            stack.callback(lock.release)
            return
        stack.push_async_callback(self._node.close)
        await self._node.open()
        await asyncio.to_thread(make_directories, self._disk, self.settings.home / "bridge")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    def begin_stop(self) -> None:
        """Begin to stop all agents while viewers are still being notified of the stop."""
        for agent in self._agents.values():
            agent.begin_close()

    async def _close_agents(self) -> None:
        await asyncio.gather(*(agent.close() for agent in self._agents.values()))

    async def bring_login(self, back: Mapping[str, str]) -> BroughtLogin | None:
        """Pass the parameters of a login's redirect to the agent that waits for them, at any node.

        Return None if no login waits. Raises AccessUnavailableError.
        """
        for agent in self._agents.values():
            if (brought := await agent.bring_login(back)) is not None:
                return brought
        return None if self._node is None else await self._node.bring_login(back)

    def credential_stores(self, token: Token) -> CredentialStores:
        """Return the stores of shares and link codes: in the database with other bridges of this token, or local."""
        if self._node is not None:
            return self._node.access.stores(realm_of(token))
        return CredentialStores(Shares(self.settings.home / "bridge" / SHARES_FILE))

    async def open_question(self, code: str, option_id: str | None = None) -> LinkedQuestion | None:
        """Return the question of an approval link, at any node. Apply the option first, if given.

        Return None if no link has this code. Raises AccessUnavailableError.
        """
        hash_ = hash_code(code)
        for agent in self._agents.values():
            if (opened := agent.open_question(hash_, option_id)) is not None:
                return opened
        return None if self._node is None else await self._node.open_question(hash_, option_id)

    def end_share(self, share_id: str, reason: str) -> None:
        """Close the viewers that use a share that has ended."""
        for agent in self._agents.values():
            agent.end_share(share_id, reason)

    def measure(self) -> list[Figure]:
        """Return the metrics of all agents."""
        return [figure for agent in self._agents.values() for figure in agent.measure()]

    def agent(self, name: str | None = None) -> ServedAgent | None:
        """Return an agent by name, by default the first one. Return None if no agent has that name."""
        return self._agents.get(self.settings.agents[0].name if name is None else name)


def _make_node(settings: BridgeSettings, store: str) -> "BridgeNode":
    from dragoman.bridge.nodes import BridgeNode  # with a store only: it needs psycopg

    return BridgeNode(store, [spec.name for spec in settings.agents], settings.lease_s, find_policy())


async def _cancel(tasks: "list[asyncio.Task[None]]") -> None:
    for task in tasks:
        task.cancel()


def lock_home(disk: Disk, home: Path) -> Lock:
    """Lock a home as a running bridge does. Raises BridgeBusyError."""
    directory = home / "bridge"
    make_directories(disk, directory)
    try:
        return acquire(directory / "lock", str(directory))
    except SessionBusyError as busy:
        running = find_bridge(home)
        raise BridgeBusyError(str(home), busy.pid, busy.host, running.url if running else None) from None
