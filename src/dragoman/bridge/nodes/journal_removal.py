"""Journals in a database that bridges share, for `dragoman sessions delete`.

This process joins the nodes of the database and becomes the owner of the journals to delete, as a bridge does to open a
session. If a living bridge has a session open, its journal cannot be deleted, because only that bridge can end its turn
and notify its viewers. Bridges that serve the agent are notified of each deleted journal, because their lists are in
memory.
"""

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import LiteralString

from dragoman.bridge.delivery.database_histories import describe_stored
from dragoman.bridge.delivery.stored_histories import StoredHistory
from dragoman.bridge.nodes.labels import DatabaseLabels
from dragoman.bridge.nodes.mailbox import Mailbox
from dragoman.bridge.nodes.messages import Announced, Labelled, NodeMessage
from dragoman.errors import DragomanError, SessionBusyError, SessionNotFoundError
from dragoman.store.opening import journal_scope, read_lease
from dragoman.store.postgresql import Database, schema
from dragoman.store.postgresql.label_table import LabelTable
from dragoman.store.postgresql.message_cipher import NodeKey
from dragoman.store.postgresql.message_table import MessageTable
from dragoman.store.postgresql.node import Node
from dragoman.store.postgresql.session_table import SessionTable

_SCOPES: LiteralString = "SELECT scope FROM dragoman_session WHERE id = %s AND starts_with(scope, %s)"

_BRIDGE_DELETES_S = 5.0
"""Time for a bridge to remove the rows of a session. It answers the deletion before that."""

_LOOK_AGAIN_S = 0.1
_LAST_MESSAGES_S = 2.0


class JournalInUseError(DragomanError):
    """A living bridge, process `pid` on `host`, has the session open."""

    def __init__(self, busy: SessionBusyError) -> None:
        self.session_id = busy.session_id
        self.pid = busy.pid
        self.host = busy.host
        super().__init__(
            f"session {busy.session_id} is open at the bridge of process {busy.pid} on {busy.host}, which has to "
            "delete it: use its page, or its address, as in "
            f"`dragoman sessions delete {busy.session_id} --url https://ADDRESS/acp`, or stop that bridge first"
        )


class DatabaseJournals:
    """The journals in a database. Implements `JournalPlace`."""

    def __init__(self, database: Database, node: Node) -> None:
        self._database = database
        self._node = node
        self._messages = MessageTable(database, node.id, NodeKey())
        self._mailbox = Mailbox(self._messages, node.lease_s)

    async def find(self, agent: str) -> list[StoredHistory]:
        return [describe_stored(found) for found in await self._table(agent).scan()]

    async def names_of(self, session_id: str) -> list[str]:
        prefix = journal_scope("")
        found = await self._database.fetch(_SCOPES, (session_id, prefix))
        return [scope.removeprefix(prefix) for (scope,) in found]

    async def hold(self, agent: str, session_id: str, *, was_deleted: bool) -> None:
        await self._node.ensure()
        labels = await self._read_labels(agent, [])
        give_up_at = time.monotonic() + (_BRIDGE_DELETES_S if was_deleted else 0.0)
        for each in (session_id, *labels.descendants_of(session_id)):
            await self._acquire(agent, each, give_up_at)

    async def delete(self, agent: str, session_id: str) -> None:
        nodes = await self._messages.nodes()
        bridges = [node for node, agents in nodes.items() if agents is not None and agent in agents]
        labels = await self._read_labels(agent, bridges)
        for each in (*labels.descendants_of(session_id), session_id):
            await self._table(agent).delete(each, self._node.id)
            await labels.forget(each)
            self._notify(bridges, Announced(agent, each, is_deleted=True))

    async def finish(self) -> None:
        """Send the last notifications to the bridges, in bounded time."""
        await self._mailbox.finish(_LAST_MESSAGES_S)

    async def _acquire(self, agent: str, session_id: str, give_up_at: float) -> None:
        """Become the owner of a journal if it still exists. Raises JournalInUseError."""
        while True:
            try:
                await self._table(agent).acquire(session_id, self._node.id)
            except SessionNotFoundError:
                return
            except SessionBusyError as busy:
                if time.monotonic() >= give_up_at:
                    raise JournalInUseError(busy) from None
                await asyncio.sleep(_LOOK_AGAIN_S)
            else:
                return

    async def _read_labels(self, agent: str, bridges: Sequence[uuid.UUID]) -> DatabaseLabels:
        """Return the labels of an agent's sessions. Bridges are notified of changes."""
        table = LabelTable(self._database, journal_scope(agent))
        labels = DatabaseLabels(table, lambda each: self._notify(bridges, Labelled(agent, each)))
        await labels.read()
        return labels

    def _notify(self, bridges: Sequence[uuid.UUID], message: NodeMessage) -> None:
        for bridge in bridges:
            self._mailbox.send(bridge, message)

    def _table(self, agent: str) -> SessionTable:
        return SessionTable(self._database, journal_scope(agent))


@asynccontextmanager
async def open_database_journals(address: str) -> AsyncGenerator[DatabaseJournals]:
    """Open the journals of a database. Release the ones that are still owned at the end. Raises DragomanError."""
    database = Database(address)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(database.close)
        await schema.check(database)
        node = Node(database, read_lease())
        stack.push_async_callback(node.leave)
        histories = DatabaseJournals(database, node)
        stack.push_async_callback(histories.finish)
        yield histories
