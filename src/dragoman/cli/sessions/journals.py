"""Journals that bridges of this home have of an agent's sessions, for `dragoman sessions delete`.

A session that went through a bridge is at two places: the agent has its log, the bridge its journal. A bridge that
runs is asked to delete the session, so that its viewers see that; without one the files are deleted.
"""

import asyncio
import uuid
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from dragoman.bridge.bridge import lock_home
from dragoman.bridge.delivery.file_journal import delete_files
from dragoman.bridge.delivery.file_journal_store import find_stored, journal_name
from dragoman.bridge.delivery.stored_journals import StoredJournal
from dragoman.bridge.registry import SessionLabels
from dragoman.cli.agent_choice import AgentAddress
from dragoman.client import RemoteAgent
from dragoman.protocol.address import AddressFailed
from dragoman.protocol.running_bridge import RunningBridge, find_bridge
from dragoman.store.disk import Disk

_NOT_SERVED = 404


class BridgeJournals:
    """The journals of one agent's sessions; an async context manager, which holds the home while it deletes files."""

    def __init__(self, home: Path, agent: str, *, is_own: bool) -> None:
        self._home = home
        self._agent = agent
        """The name by which a bridge serves it, unless it was given another."""
        self.is_own = is_own
        self._bridge: RunningBridge | None = None
        self._served: dict[str, RemoteAgent | None] = {}
        self._stack = AsyncExitStack()
        self._is_locked = False

    async def __aenter__(self) -> Self:
        self._bridge = find_bridge(self._home)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    async def find(self) -> list[StoredJournal]:
        """Return the journals under the agent's name."""
        return await asyncio.to_thread(find_stored, self._directory(self._agent))

    def has(self, session_id: str) -> bool:
        """Tell whether a session has a journal."""
        return bool(self._names_of(session_id))

    async def delete_at_bridge(self, session_id: str) -> bool:
        """Have the bridge that runs delete a session; False if there is none, or it does not have that session.

        Raises DragomanError.
        """
        if self._bridge is None:
            return False
        names = self._names_of(session_id)
        if self.is_own and self._agent not in names:
            names.append(self._agent)  # without a journal it is in the lists all the same
        served = [agent for name in names if (agent := await self._connect(self._bridge, name)) is not None]
        for agent in served:
            await agent.delete(session_id)
        return bool(served)

    async def delete_files(self, session_id: str) -> None:
        """Delete what is left of a session: all without a bridge, else the files of agents that it does not serve.

        Raises BridgeBusy if a bridge has them and cannot be asked, and OSError.
        """
        for name in self._names_of(session_id):
            await self._lock()
            await asyncio.to_thread(delete_files, self._path(name, session_id))
            labels = SessionLabels(self._directory(name) / "labels.json")
            await labels.read()
            for child in [each for each in labels.ids() if labels.of(each).parent == session_id]:
                await asyncio.to_thread(delete_files, self._path(name, child))
                await labels.forget(child)
            await labels.forget(session_id)

    async def check(self, session_id: str) -> None:
        """See that the journals of a session can be deleted; raises BridgeBusy."""
        if self._names_of(session_id):
            await self._lock()

    async def _lock(self) -> None:
        """Keep bridges from starting, unless one runs that was asked: it leaves agents alone that it does not serve."""
        if self._bridge is None and not self._is_locked:
            lock = await asyncio.to_thread(lock_home, Disk(), self._home)
            self._stack.callback(lock.release)
            self._is_locked = True

    async def _connect(self, bridge: RunningBridge, name: str) -> RemoteAgent | None:
        if name not in self._served:
            address = AgentAddress(bridge.acp_url(name), bridge.read_token())
            try:
                agent = await self._stack.enter_async_context(address.connect(policy=None))
            except AddressFailed as failure:
                if failure.status != _NOT_SERVED:
                    raise
                agent = None
            self._served[name] = agent
        return self._served[name]

    def _names_of(self, session_id: str) -> list[str]:
        """Return the names under which a session has a journal; one that may be another agent's is left alone."""
        found = sorted(path.parent.name for path in (self._home / "bridge").glob(f"*/{journal_name(session_id)}"))
        return found if _is_unique(session_id) else [name for name in found if name == self._agent]

    def _directory(self, name: str) -> Path:
        return self._home / "bridge" / name

    def _path(self, name: str, session_id: str) -> Path:
        return self._directory(name) / journal_name(session_id)


def _is_unique(session_id: str) -> bool:
    """Tell whether no other agent has a session of the same id."""
    try:
        return str(uuid.UUID(session_id)) == session_id.lower()
    except ValueError:
        return False
