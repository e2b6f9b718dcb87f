"""The journals that bridges have of an agent's sessions, for `dragoman sessions delete`.

A session that went through a bridge is in two places: the agent has its log, the bridge its journal. A bridge that
runs with this home is asked to delete the session, so that its viewers see that. Journals that are left are deleted
where they are: in the home, and in the database that the command line or `DRAGOMAN_STORE` names.
"""

import asyncio
import uuid
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Protocol

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


class JournalPlace(Protocol):
    """A place where bridges keep journals, by the names of the agents that they serve."""

    async def find(self, agent: str) -> list[StoredJournal]:
        """Return the journals under an agent's name; raises DragomanError."""
        ...

    async def names_of(self, session_id: str) -> list[str]:
        """Return the names of agents under which a session has a journal; raises DragomanError."""
        ...

    async def hold(self, agent: str, session_id: str, *, was_deleted: bool) -> None:
        """Keep bridges from a journal; `was_deleted` if a bridge has just answered that it deletes the session.

        Raises DragomanError if a bridge that was not asked has it.
        """
        ...

    async def delete(self, agent: str, session_id: str) -> None:
        """Delete a journal that is held, with its label and its subagents; raises DragomanError, OSError."""
        ...


class FileJournals:
    """The journals in a home. See `JournalPlace`."""

    def __init__(self, home: Path, stack: AsyncExitStack, *, has_bridge: bool) -> None:
        """`stack` releases the home; a bridge that runs leaves the files of agents alone that it does not serve."""
        self._directory = home / "bridge"
        self._home = home
        self._stack = stack
        self._needs_lock = not has_bridge

    async def find(self, agent: str) -> list[StoredJournal]:
        return await asyncio.to_thread(find_stored, self._directory / agent)

    async def names_of(self, session_id: str) -> list[str]:
        return [path.parent.name for path in self._directory.glob(f"*/{journal_name(session_id)}")]

    async def hold(self, agent: str, session_id: str, *, was_deleted: bool) -> None:  # noqa: ARG002 -- all at once
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
    """The journals of one agent's sessions, wherever bridges have them."""

    def __init__(
        self,
        agent: str,
        places: list[JournalPlace],
        bridge: RunningBridge | None,
        stack: AsyncExitStack,
        *,
        is_own: bool,
    ) -> None:
        """Take the name by which a bridge serves the agent, unless it was given another, and the bridge that runs."""
        self.is_own = is_own
        self._agent = agent
        self._places = places
        self._bridge = bridge
        self._stack = stack
        self._served: dict[str, RemoteAgent | None] = {}

    async def find(self) -> list[StoredJournal]:
        """Return the journals under the agent's name, each session once; raises DragomanError."""
        found = [stored for place in self._places for stored in await place.find(self._agent)]
        return list({stored.header.id: stored for stored in found}.values())

    async def has(self, session_id: str) -> bool:
        """Tell whether a session has a journal; raises DragomanError."""
        return any([await self._names_of(place, session_id) for place in self._places])

    async def delete_at_bridge(self, session_id: str) -> bool:
        """Have the bridge that runs delete a session; False if there is none, or it does not have that session.

        Raises DragomanError.
        """
        if self._bridge is None:
            return False
        names = {name for place in self._places for name in await self._names_of(place, session_id)}
        if self.is_own:
            names.add(self._agent)  # without a journal it is in the lists all the same
        served = [agent for name in sorted(names) if (agent := await self._connect(self._bridge, name)) is not None]
        for agent in served:
            await agent.delete(session_id)
        return bool(served)

    async def hold(self, session_id: str) -> None:
        """See that the journals that are left of a session can be deleted, and that no bridge takes them meanwhile.

        Raises DragomanError, such as BridgeBusy and JournalInUse, if a bridge has one that was not asked.
        """
        for place in self._places:
            for name in await self._names_of(place, session_id):
                await place.hold(name, session_id, was_deleted=self._served.get(name) is not None)

    async def delete(self, session_id: str) -> None:
        """Delete the journals that are left of a session; raises DragomanError, OSError."""
        for place in self._places:
            for name in await self._names_of(place, session_id):
                await place.delete(name, session_id)

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

    async def _names_of(self, place: JournalPlace, session_id: str) -> list[str]:
        """Return the names under which a session has a journal; one that may be another agent's is left alone."""
        found = sorted(await place.names_of(session_id))
        return found if _is_unique(session_id) else [name for name in found if name == self._agent]


@asynccontextmanager
async def open_journals(home: Path, store: str | None, agent: str, *, is_own: bool) -> AsyncGenerator[BridgeJournals]:
    """Open the journals in a home, and in a database if its address is given; raises DragomanError."""
    async with AsyncExitStack() as stack:
        bridge = find_bridge(home)
        places: list[JournalPlace] = [FileJournals(home, stack, has_bridge=bridge is not None)]
        if store is not None:
            from dragoman.cli.sessions.database_journals import open_database_journals  # it needs psycopg

            places.append(await stack.enter_async_context(open_database_journals(store)))
        yield BridgeJournals(agent, places, bridge, stack, is_own=is_own)


def _is_unique(session_id: str) -> bool:
    """Tell whether no other agent has a session of the same id."""
    try:
        return str(uuid.UUID(session_id)) == session_id.lower()
    except ValueError:
        return False
