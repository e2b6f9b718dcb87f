"""The bridges' journals of an agent's sessions, for `dragoman sessions delete`.

A session that was used through a bridge is stored twice: in the agent's log and in the bridge's journal. If a bridge
runs with this home, it is asked to delete the session, so that its viewers notice. Remaining journals are deleted in
the home, and in the database of the command line or `DRAGOMAN_STORE`.
"""

import asyncio
import uuid
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Protocol

from dragoman.bridge.bridge import lock_home
from dragoman.bridge.delivery.file_histories import find_stored, journal_name
from dragoman.bridge.delivery.stored_histories import StoredHistory
from dragoman.bridge.sessions import SessionLabels
from dragoman.cli.agent_choice import AgentAddress
from dragoman.client import AgentConnection
from dragoman.protocol.address import AddressError
from dragoman.running_bridge import RunningBridge, find_bridge
from dragoman.store.disk import Disk
from dragoman.store.history_file import delete_files

_NOT_SERVED = 404


class JournalPlace(Protocol):
    """A place where bridges store journals, grouped by the name of the agent."""

    async def find(self, agent: str) -> list[StoredHistory]:
        """Return the journals of an agent name. Raises DragomanError."""
        ...

    async def names_of(self, session_id: str) -> list[str]:
        """Return the agent names that have a journal of the session. Raises DragomanError."""
        ...

    async def hold(self, agent: str, session_id: str, *, was_deleted: bool) -> None:
        """Prevent bridges from opening a journal. `was_deleted` is true if a bridge has just deleted the session.

        Raises DragomanError if another bridge has it open.
        """
        ...

    async def delete(self, agent: str, session_id: str) -> None:
        """Delete a held journal with its label and its subagents. Raises DragomanError or OSError."""
        ...


class FileJournals:
    """The journals in a home. Implements `JournalPlace`."""

    def __init__(self, home: Path, stack: AsyncExitStack, *, has_bridge: bool) -> None:
        """`stack` releases the home. A running bridge does not touch files of agents that it does not serve."""
        self._directory = home / "bridge"
        self._home = home
        self._stack = stack
        self._needs_lock = not has_bridge

    async def find(self, agent: str) -> list[StoredHistory]:
        return await asyncio.to_thread(find_stored, self._directory / agent)

    async def names_of(self, session_id: str) -> list[str]:
        return [path.parent.name for path in self._directory.glob(f"*/{journal_name(session_id)}")]

    async def hold(self, agent: str, session_id: str, *, was_deleted: bool) -> None:  # noqa: ARG002 -- one lock covers all journals
        if self._needs_lock:
            lock = await asyncio.to_thread(lock_home, Disk(), self._home)
            self._stack.callback(lock.release)
            self._needs_lock = False

    async def delete(self, agent: str, session_id: str) -> None:
        await self._delete_files(agent, session_id)
        labels = SessionLabels(self._directory / agent / "labels.json")
        await labels.read()
        for child in labels.descendants_of(session_id):
            await self._delete_files(agent, child)
            await labels.forget(child)
        await labels.forget(session_id)

    async def _delete_files(self, agent: str, session_id: str) -> None:
        await asyncio.to_thread(delete_files, self._directory / agent / journal_name(session_id))


class BridgeJournals:
    """The journals of one agent's sessions in all places."""

    def __init__(
        self,
        agent: str,
        places: list[JournalPlace],
        bridge: RunningBridge | None,
        stack: AsyncExitStack,
        *,
        is_own: bool,
    ) -> None:
        """`agent` is the name under which bridges serve the agent by default. `bridge` is the running bridge."""
        self.is_own = is_own
        self._agent = agent
        self._places = places
        self._bridge = bridge
        self._stack = stack
        self._served: dict[str, AgentConnection | None] = {}

    async def find(self) -> list[StoredHistory]:
        """Return the journals under the agent's name, one per session. Raises DragomanError."""
        found = [stored for place in self._places for stored in await place.find(self._agent)]
        return list({stored.id: stored for stored in found}.values())

    async def has(self, session_id: str) -> bool:
        """Return whether a session has a journal. Raises DragomanError."""
        return any([await self._names_of(place, session_id) for place in self._places])

    async def delete_at_bridge(self, session_id: str) -> bool:
        """Ask the running bridge to delete a session.

        Return False if no bridge is running, or if it does not have the session. Raises DragomanError.
        """
        if self._bridge is None:
            return False
        names = {name for place in self._places for name in await self._names_of(place, session_id)}
        if self.is_own:
            names.add(self._agent)  # a session without a journal is still listed
        served = [agent for name in sorted(names) if (agent := await self._connect(self._bridge, name)) is not None]
        for agent in served:
            await agent.delete(session_id)
        return bool(served)

    async def hold(self, session_id: str) -> None:
        """Prevent bridges from opening the remaining journals of a session while they are deleted.

        Raises DragomanError, such as BridgeBusyError or JournalInUseError, if another bridge has one open.
        """
        for place in self._places:
            for name in await self._names_of(place, session_id):
                await place.hold(name, session_id, was_deleted=self._served.get(name) is not None)

    async def delete(self, session_id: str) -> None:
        """Delete the remaining journals of a session. Raises DragomanError or OSError."""
        for place in self._places:
            for name in await self._names_of(place, session_id):
                await place.delete(name, session_id)

    async def _connect(self, bridge: RunningBridge, name: str) -> AgentConnection | None:
        if name not in self._served:
            address = AgentAddress(bridge.acp_url(name), bridge.read_token())
            try:
                agent = await self._stack.enter_async_context(address.connect(policy=None))
            except AddressError as failure:
                if failure.status != _NOT_SERVED:
                    raise
                agent = None
            self._served[name] = agent
        return self._served[name]

    async def _names_of(self, place: JournalPlace, session_id: str) -> list[str]:
        """Return the agent names with a journal of the session. Skips journals that may belong to another agent."""
        found = sorted(await place.names_of(session_id))
        return found if _is_unique(session_id) else [name for name in found if name == self._agent]


@asynccontextmanager
async def open_journals(home: Path, store: str | None, agent: str, *, is_own: bool) -> AsyncGenerator[BridgeJournals]:
    """Open the journals in a home and, if an address is passed, in a database. Raises DragomanError."""
    async with AsyncExitStack() as stack:
        bridge = find_bridge(home)
        places: list[JournalPlace] = [FileJournals(home, stack, has_bridge=bridge is not None)]
        if store is not None:
            from dragoman.bridge.nodes.journal_removal import open_database_journals  # it needs psycopg

            places.append(await stack.enter_async_context(open_database_journals(store)))
        yield BridgeJournals(agent, places, bridge, stack, is_own=is_own)


def _is_unique(session_id: str) -> bool:
    """Return whether the session id is a UUID, which no other agent uses."""
    try:
        return str(uuid.UUID(session_id)) == session_id.lower()
    except ValueError:
        return False
