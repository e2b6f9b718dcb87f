"""The journals of one agent in a database that several nodes share."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Any

import msgspec

from dragoman.bridge.delivery.database_journal import DatabaseJournal, JournalState, SharedTables, read_part
from dragoman.bridge.delivery.journal import Journal, make_header
from dragoman.bridge.delivery.journal_store import EarlierBlocks
from dragoman.bridge.delivery.runs import MessageRun, TailBudget
from dragoman.bridge.delivery.stored_journals import GroupOf, StoredJournal, StoredJournals, one_group
from dragoman.bridge.envelope import rename_session
from dragoman.bridge.translation import Version
from dragoman.errors import DragomanError, LogFailed, SessionUnknown
from dragoman.store import UNPROMPTED_KEPT_S
from dragoman.store.postgresql.errors import DatabaseUnavailable
from dragoman.store.postgresql.session_table import ScannedSession

_LAST_COMMITS_S = 2.0
"""For commits when the bridge ends; what is not committed then was shown to nobody."""

_REPLAYS_KEPT_S = 3600.0
"""Replays that a node has left behind when it ended are removed after this time."""


class DatabaseJournalStore:
    """Makes journals in a database, and finds those of earlier runs and of other nodes. See `JournalStore`."""

    def __init__(self, tables: SharedTables, budget: TailBudget) -> None:
        self.stored = StoredJournals()
        self.is_shared = True
        self.group_of: GroupOf = one_group
        self.budget = budget
        self.tables = tables
        self.on_deleted: Callable[[str], None] | None = None
        """Called when the journal of a session was removed."""
        self._open: set[DatabaseJournal] = set()

    async def scan(self) -> None:
        with suppress(DatabaseUnavailable):  # a later scan removes them
            await self.tables.replays.sweep(_REPLAYS_KEPT_S)
            await self.tables.journals.sweep(UNPROMPTED_KEPT_S)
        found = await self.tables.journals.scan()
        owned = {journal.header.id for journal in self.open_journals()}
        not_here = (describe_stored(each) for each in found if each.header.id not in owned)
        self.stored = StoredJournals(not_here, self.group_of)

    def create(self, session_id: str, cwd: str, directories: list[str]) -> DatabaseJournal:
        header = make_header(session_id, cwd, directories, self.tables.node.now())
        return self._add(DatabaseJournal(self.tables, header, self.budget))

    def settle(self, journal: Journal) -> None:
        self.stored.pop(journal.header.id, None)
        _in_database(journal).settle()

    async def reopen(self, session_id: str) -> DatabaseJournal | None:
        """Own a session, and go on with its journal; raises SessionBusy, LogFailed."""
        await self.tables.node.ensure()
        try:
            session = await self.tables.journals.take(session_id, self.tables.node.id)
        except SessionUnknown:
            self.stored.pop(session_id, None)
            return None
        earlier = EarlierBlocks()
        reached = 0
        while reached < session.end.last:
            blocks = await self.tables.journals.read_from(session.key, reached, session.end.last)
            if not blocks:
                break
            for block in blocks:
                earlier.see(block)
            reached = blocks[-1].last
        journal = self._add(DatabaseJournal(self.tables, session.header, self.budget, session))
        journal.keep_earlier(earlier.result())
        journal.updated_ms = session.updated_ms
        self.stored.pop(session_id, None)
        return journal

    async def title_of(self, journal: Journal) -> str | None:
        session = _in_database(journal).session
        return None if session is None else session.facts.title

    async def copy_for(self, journal: Journal, session_id: str) -> list[tuple[Version, bytes]]:
        await _in_database(journal).finish()
        pieces: list[tuple[Version, bytes]] = []
        reached, end = 0, journal.end
        with suppress(OSError):
            while reached < end:
                part = await journal.read(reached, end, with_cursors=False)
                for run in part.runs:
                    lines = b"".join([rename_session(message, session_id) + b"\n" for message in run.messages()])
                    pieces.append((journal.version_at(run.first), lines))
                reached = part.reached
        return pieces

    async def read_stored(self, session_id: str) -> AsyncGenerator[list[MessageRun]]:
        key, end, _ = await self.tables.journals.find_end(session_id)
        reached = 0
        while reached < end.last:
            part = await read_part(self.tables.journals, key, reached, end.last, None)
            reached = part.reached
            yield part.runs

    def delete(self, session_id: str) -> None:
        self.stored.pop(session_id, None)
        self.tables.spawn(self._delete(session_id))

    def open_journals(self) -> list[DatabaseJournal]:
        """Return the journals that this node writes."""
        self._open = {each for each in self._open if each.state in (JournalState.NEW, JournalState.OPEN)}
        return list(self._open)

    def lose_all(self, failure: LogFailed) -> None:
        """Write nothing any more: this node does not know whether it owns a session."""
        for journal in self.open_journals():
            journal.lose(failure)

    async def close(self) -> None:
        """Have all that was added committed, in bounded time."""
        finishing = [asyncio.ensure_future(journal.finish()) for journal in self.open_journals()]
        if finishing:
            _, late = await asyncio.wait(finishing, timeout=_LAST_COMMITS_S)
            for task in late:
                task.cancel()
        for journal in self.open_journals():
            journal.drop()  # a commit that fails from now on is nobody's concern any more

    async def _delete(self, session_id: str) -> None:
        with suppress(DragomanError):  # the session of a node that lives is deleted there
            await self.tables.journals.delete(session_id, self.tables.node.id)
        if self.on_deleted is not None:
            self.on_deleted(session_id)

    def _add(self, journal: DatabaseJournal) -> DatabaseJournal:
        self._open.add(journal)
        return journal


def describe_stored(found: ScannedSession) -> StoredJournal:
    """Make the journal of a session that a scan found."""
    described: dict[str, Any] | None = None if found.shown is None else msgspec.json.decode(found.shown)
    return StoredJournal(
        header=found.header,
        title=found.title,
        updated_ms=found.updated_ms,
        prompted=found.is_prompted or (described is not None and bool(described.get("viewers"))),
        described=described,
    )


def _in_database(journal: Journal) -> DatabaseJournal:
    if not isinstance(journal, DatabaseJournal):
        raise TypeError(f"{journal.place} is no journal in a database")
    return journal
