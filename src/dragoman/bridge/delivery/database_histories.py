"""The histories of one agent in a database that several nodes share.

One node at a time owns a session, and only the owner writes its history. `reopen` makes this node the owner, unless a
living node owns the session. `put_away` releases the session to all nodes. Other nodes read a history through a
`ReplicaHistory`.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Any

import msgspec

from dragoman.bridge.delivery.earlier_run import EarlierRun, read_earlier
from dragoman.bridge.delivery.history_index import HistoryIndex
from dragoman.bridge.delivery.history_store import copy_messages
from dragoman.bridge.delivery.stored_histories import GroupOf, StoredHistories, StoredHistory, one_group
from dragoman.bridge.translation import Version
from dragoman.errors import DragomanError, LogError, SessionNotFoundError
from dragoman.store import UNPROMPTED_KEPT_S
from dragoman.store.block import Header
from dragoman.store.history import AfterFailure, History, HistoryState, make_header, read_part
from dragoman.store.postgresql.errors import DatabaseUnavailableError
from dragoman.store.postgresql.history import BridgePart, DatabaseHistory
from dragoman.store.postgresql.node import Node
from dragoman.store.postgresql.session_table import OwnedSession, ScannedSession, SessionTable
from dragoman.store.runs import MessageRun, TailBudget

_LAST_COMMITS_S = 2.0
"""Time for the last commits when the bridge stops. No viewer has seen the records that are not committed by then."""

_REPLAYS_KEPT_S = 3600.0
"""Time after which the replays of a node that ended are removed."""


class SharedTables(msgspec.Struct, frozen=True):
    """The tables of one agent's histories, with the node that writes them."""

    histories: SessionTable
    node: Node
    bridge: BridgePart


class DatabaseHistoryStore:
    """Creates histories in a database, and finds histories of earlier runs and other nodes. See `HistoryStore`."""

    def __init__(self, tables: SharedTables, budget: TailBudget) -> None:
        self.stored = StoredHistories()
        self.is_shared = True
        self.group_of: GroupOf = one_group
        self.index: HistoryIndex | None = None
        self.budget = budget
        self.tables = tables
        self.on_deleted: Callable[[str], None] | None = None
        """Called when the history of a session was removed."""
        self._open: set[DatabaseHistory] = set()
        """The rows of the histories that this node writes."""

    def can_keep(self, session_id: str) -> bool:
        return "\0" not in session_id  # text of PostgreSQL has no NUL

    async def scan(self) -> None:
        with suppress(DatabaseUnavailableError):  # a later scan removes them
            await self.tables.bridge.replays.sweep(_REPLAYS_KEPT_S)
            await self.tables.histories.sweep(UNPROMPTED_KEPT_S)
        found = await self.tables.histories.scan()
        owned = {rows.history.header.id for rows in self.open_rows()}
        not_here = (describe_stored(each) for each in found if each.header.id not in owned)
        self.stored = StoredHistories(not_here, self.group_of)

    def create(self, session_id: str, cwd: str, directories: list[str]) -> History:
        return self._add(make_header(session_id, cwd, directories, self.tables.node.now()), None)

    def settle(self, history: History) -> None:
        self.stored.pop(history.header.id, None)
        _rows_of(history).settle()

    async def reopen(self, session_id: str) -> tuple[History, EarlierRun] | None:
        """Become the owner of a session, and continue its history. Raises SessionBusyError, LogError."""
        await self.tables.node.ensure()
        try:
            session = await self.tables.histories.acquire(session_id, self.tables.node.id)
        except SessionNotFoundError:
            self.stored.pop(session_id, None)
            return None
        history = self._add(session.header, session)
        earlier = await read_earlier(history)
        history.updated_ms = session.updated_ms
        self.stored.pop(session_id, None)
        return history, earlier

    async def claim(self, history: History) -> None:
        await _rows_of(history).claim()

    def follow(self, history: History, other: History) -> None:
        if other.next_end > other.end:
            _rows_of(history).wait_for(_rows_of(other).reach(other.next_end))

    def put_away(self, history: History, stored: StoredHistory) -> None:
        session = _rows_of(history).session
        history.drop()
        self.stored[stored.id] = stored
        if session is not None:
            self.tables.bridge.spawn(self._release(session))

    async def copy_for(self, history: History, session_id: str) -> list[tuple[Version, bytes]]:
        await _rows_of(history).finish()
        return await copy_messages(history, session_id)

    async def read_stored(self, session_id: str) -> AsyncGenerator[list[MessageRun]]:
        key, end, _ = await self.tables.histories.find_end(session_id)
        reached = 0
        while reached < end.last:
            part = await read_part(
                lambda after: self.tables.histories.read_from(key, after, end.last), reached, end.last
            )
            reached = part.reached
            yield part.runs

    def delete(self, session_id: str) -> None:
        self.stored.pop(session_id, None)
        self.tables.bridge.spawn(self._delete(session_id))

    def open_rows(self) -> list[DatabaseHistory]:
        """Return the rows of the histories that this node writes."""
        self._open = {each for each in self._open if each.is_open}
        return list(self._open)

    def lose_all(self, failure: LogError) -> None:
        """Stop all writes, because this node no longer knows which sessions it owns."""
        for rows in self.open_rows():
            rows.lose(failure)

    async def close(self) -> None:
        """Commit all added records, in bounded time."""
        finishing = [asyncio.ensure_future(rows.finish()) for rows in self.open_rows()]
        if finishing:
            _, late = await asyncio.wait(finishing, timeout=_LAST_COMMITS_S)
            for task in late:
                task.cancel()
        for rows in self.open_rows():
            rows.history.drop()  # later failures of commits are ignored

    async def _release(self, session: OwnedSession) -> None:
        with suppress(DragomanError):  # this node then owns the session until it ends, and can still open it
            await self.tables.histories.release(session)

    async def _delete(self, session_id: str) -> None:
        with suppress(DragomanError):  # a living owner deletes the session itself
            await self.tables.histories.delete(session_id, self.tables.node.id)
        if self.on_deleted is not None:
            self.on_deleted(session_id)

    def _add(self, header: Header, session: OwnedSession | None) -> History:
        """Open the history of a session that this node owns, or begin a new one."""
        rows = DatabaseHistory(self.tables.histories, self.tables.node, session, bridge=self.tables.bridge)
        state = HistoryState.NEW if session is None else HistoryState.UNREAD
        end = 0 if session is None else session.end.last
        history = History(header, rows, state=state, end=end, budget=self.budget, after_failure=AfterFailure.DROP)
        if session is not None:
            history.facts = session.facts
        self._open.add(rows)
        return history


def describe_stored(found: ScannedSession) -> StoredHistory:
    """Return the stored history of a session that a scan found."""
    described: dict[str, Any] | None = None if found.shown is None else msgspec.json.decode(found.shown)
    return StoredHistory(
        id=found.header.id,
        cwd=found.header.cwd,
        title=found.title,
        updated_ms=found.updated_ms,
        prompted=found.is_prompted or (described is not None and bool(described.get("viewers"))),
        described=described,
    )


def rows_of(history: object) -> DatabaseHistory | None:
    """Return the rows of a history that this node writes, or None for any other history."""
    backend = history.backend if isinstance(history, History) else None
    return backend if isinstance(backend, DatabaseHistory) else None


def _rows_of(history: History) -> DatabaseHistory:
    rows = rows_of(history)
    if rows is None:
        raise TypeError(f"{history.place} is not a database")
    return rows
