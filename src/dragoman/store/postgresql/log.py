"""A session's log in a database.

    UNREAD ──read to its end──▶ WRITABLE ──a write fails for good──▶ FAILED
       │                           │                                   │
       └────────── close ──────────┴─────────────▶ CLOSED ◀────────────┘

Lines are written behind (`writer`). `flush` gives a future where a file would have written: its lines are committed
then, and may be shown. While the database is away they wait in memory, as long as this process is sure to own the
session; then the log fails, in words, and the session is restored from what was committed.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from enum import Enum, auto

from dragoman.cancellation import finish
from dragoman.errors import LogFailed
from dragoman.store.block import Block, Header
from dragoman.store.log_end import LogEnd, is_archived, is_kept, take_title, take_turn
from dragoman.store.postgresql.node import Node
from dragoman.store.postgresql.session_table import OwnedSession, SessionEnd, SessionTable
from dragoman.store.postgresql.writer import BlockWriter, SessionWrites, Written


class _State(Enum):
    UNREAD = auto()
    WRITABLE = auto()
    FAILED = auto()
    CLOSED = auto()


class DatabaseLog:
    """One session's log, owned by this process. See `Log`."""

    def __init__(
        self,
        table: SessionTable,
        session: OwnedSession,
        node: Node,
        *,
        is_new: bool,
        on_close: "Callable[[DatabaseLog], None]",
    ) -> None:
        self.damage = None
        self._table = table
        self._session = session
        self._writer = BlockWriter(SessionWrites(table, session, node), self.fail)
        self._state = _State.WRITABLE if is_new else _State.UNREAD
        self._failure: LogFailed | None = None
        self._on_close = on_close

    @property
    def header(self) -> Header:
        return self._session.header

    @property
    def title(self) -> str | None:
        return self._writer.facts.title

    @title.setter
    def title(self, title: str | None) -> None:
        self._writer.facts.title = title

    @property
    def message_count(self) -> int:
        return self._writer.facts.message_count

    @message_count.setter
    def message_count(self, count: int) -> None:
        self._writer.facts.message_count = count

    @property
    def is_archived(self) -> bool:
        return self._writer.facts.is_archived

    @is_archived.setter
    def is_archived(self, is_archived: bool) -> None:
        self._writer.facts.is_archived = is_archived

    @property
    def failure(self) -> LogFailed | None:
        return self._failure

    def append(self, lines: bytes, count: int | None = None) -> None:
        self._check_writable()
        self._writer.draft().add_lines(lines, count)

    def record(self, kind: str, data: bytes) -> None:
        self._check_writable()
        self._writer.draft().add_record(kind, data)
        facts = self._writer.facts
        end = LogEnd(facts.title, facts.message_count, is_archived=facts.is_archived)
        match kind:
            case "title":
                take_title(end, data)
            case "turn":
                facts.is_prompted = True
                take_turn(end, data, titled=True)
            case "client":
                facts.is_prompted = facts.is_prompted or is_kept(data)
                end.is_archived = is_archived(data)
            case _:
                pass
        facts.title, facts.message_count, facts.is_archived = end.title, end.message_count, end.is_archived

    def flush(self) -> Written | None:
        if self._failure is not None:
            raise self._failure.with_traceback(None)
        return self._writer.write()

    async def sync(self) -> None:
        while (written := self.flush()) is not None:
            await asyncio.shield(written)
        await self._writer.list()

    def blocks(self) -> AsyncIterator[list[Block]]:
        if self._failure is not None:
            return self._read(self._writer.end.last, None)
        return self._read(self._writer.cut(), self._writer.write())

    async def close(self) -> None:
        if self._state is _State.CLOSED:
            return
        was, self._state = self._state, _State.CLOSED
        try:
            if was is _State.WRITABLE:
                await self.sync()
        finally:
            self._on_close(self)
            await finish(self._table.give_back(self._session))

    def fail(self, failure: LogFailed) -> None:
        """Take nothing any more."""
        self._failure = self._failure or failure
        self._writer.stop(self._failure)
        if self._state is not _State.CLOSED:
            self._state = _State.FAILED

    def _check_writable(self) -> None:
        if self._state is _State.WRITABLE:
            return
        if self._failure is not None:
            raise self._failure.with_traceback(None)
        if self._state is _State.UNREAD:
            raise RuntimeError(f"session {self.header.id} must be read to its end before anything is appended")
        raise RuntimeError(f"session {self.header.id} is closed")

    async def _read(self, until: int, written: Written | None) -> AsyncIterator[list[Block]]:
        if written is not None:
            await asyncio.shield(written)
        at = SessionEnd(0, 0)
        while at.last < until:
            blocks, at = await self._table.read(self._session.key, at, until)
            if not blocks:
                break
            yield blocks
        if self._state is _State.UNREAD:
            self._state = _State.WRITABLE
