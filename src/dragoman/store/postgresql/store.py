"""Session logs in PostgreSQL, shared by any number of processes. `schema` has the tables, `log` the way of a line."""

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import suppress
from datetime import datetime
from typing import Any, TypeAlias

from dragoman.cancellation import finish
from dragoman.errors import DragomanError, SessionBusy, SessionUnknown
from dragoman.store.block import Block, Header, Rename, cut_before
from dragoman.store.block_log import reseal
from dragoman.store.naming import check_session_id, is_session_id, normalise
from dragoman.store.postgresql import schema
from dragoman.store.postgresql.approval_table import ApprovalTable
from dragoman.store.postgresql.database import Database
from dragoman.store.postgresql.errors import LeaseLost, SessionTaken
from dragoman.store.postgresql.log import DatabaseLog
from dragoman.store.postgresql.node import LEASE_S, Node
from dragoman.store.postgresql.retention import Pruner
from dragoman.store.postgresql.session_table import (
    ListedFacts,
    ListedSession,
    OwnedSession,
    SealedBlocks,
    SessionEnd,
    SessionTable,
)
from dragoman.store.retention import RetentionPolicy
from dragoman.store.store import (
    PAGE_SESSIONS,
    UNPROMPTED_KEPT_S,
    ArchiveFilter,
    Page,
    Summary,
    decode_cursor,
    encode_cursor,
    summarise,
)

Undo: TypeAlias = Callable[[DatabaseLog], Awaitable[None]]

_SWEEP_INTERVAL_S = 24 * 3600.0


class PostgresStore:
    """Session logs in a database. See `Store` and `SharesApprovals`."""

    def __init__(
        self,
        address: str,
        scope: str,
        *,
        lease_s: float = LEASE_S,
        unprompted_kept_s: float = UNPROMPTED_KEPT_S,
        retention: RetentionPolicy | None = None,
    ) -> None:
        """Raises BadStoreAddress; nothing is connected yet. `scope` keeps the sessions of several agents apart."""
        self._database = Database(address)
        self._table = SessionTable(self._database, scope)
        self._approvals = ApprovalTable(self._database, scope)
        self._node = Node(self._database, lease_s)
        self._node.on_lost = self._lose
        self._pruner = Pruner(self._database, self._node.id, retention)
        self._unprompted_kept_s = unprompted_kept_s
        self._live: dict[str, DatabaseLog] = {}
        self._taking: set[str] = set()
        self._is_checked = False
        self._next_sweep: float | None = None
        self._background = _Background()

    async def now(self) -> datetime:
        await self._check()
        await self._join()
        return self._node.now()

    async def create(self, header: Header, settings: bytes | None = None) -> DatabaseLog:
        check_session_id(header.id)
        return await self._own(header.id, self._create(header, settings), self._remove)

    async def open(self, session_id: str) -> DatabaseLog:
        return await self._own(session_id, self._open(session_id), DatabaseLog.close)

    async def find(self, session_id: str) -> Header | None:
        await self._check()
        return await self._table.find(session_id) if is_session_id(session_id) else None

    async def page(
        self, cwd: str | None = None, cursor: str | None = None, *, archived: ArchiveFilter = "exclude"
    ) -> Page:
        place = None if cwd is None else normalise(cwd)
        after = None if cursor is None else decode_cursor(cursor, place, archived)
        await self._check()
        found = await self._table.page(place, after, PAGE_SESSIONS + 1, archived)
        await self._sweep_if_due()
        shown, more = found[:PAGE_SESSIONS], found[PAGE_SESSIONS:]
        last = shown[-1] if more else None
        next_cursor = last and encode_cursor(last.updated_ms, last.header.id, place, archived)
        return Page([_summarise(session) for session in shown], next_cursor)

    async def fork(self, session_id: str, header: Header, rename: Rename, before: int | None = None) -> None:
        check_session_id(header.id)
        await self._check()
        if not is_session_id(session_id):
            raise SessionUnknown(session_id)
        live = self._live.get(session_id)
        if live is not None and live.failure is None:
            await live.sync()
        key, end, facts = await self._table.find_end(session_id)
        blocks = self._read(session_id, key, end.last)
        if not await finish(self._table.copy(header, seal_anew(blocks, rename, before), facts)):
            raise SessionTaken(header.id)

    async def put(self, header: Header, blocks: AsyncIterator[list[Block]], listed: Summary | None) -> bool:
        """Take a session of another store over, all or nothing; tells whether its id was free."""
        check_session_id(header.id)
        await self._check()
        facts, updated_ms = ListedFacts(), None
        if listed is not None:
            facts = ListedFacts(listed.title, listed.message_count, is_prompted=True, is_archived=listed.is_archived)
            updated_ms = int(datetime.fromisoformat(listed.updated_at).timestamp() * 1000)
        return await finish(self._table.copy(header, seal_anew(blocks), facts, updated_ms))

    async def delete(self, session_id: str) -> bool:
        await self._check()
        if not is_session_id(session_id):
            return False
        if session_id in self._live or session_id in self._taking:
            raise SessionBusy(session_id, os.getpid(), socket.gethostname())
        return await finish(self._table.delete(session_id, self._node.id))

    async def find_approval(self, cwd: str, action: bytes) -> str | None:
        await self._check()
        return await self._approvals.find(normalise(cwd), action)

    async def keep_approval(self, cwd: str, action: bytes, decision: str) -> None:
        await self._check()
        await self._approvals.keep(normalise(cwd), action, decision)

    async def close(self) -> None:
        closed = await asyncio.gather(*(log.close() for log in list(self._live.values())), return_exceptions=True)
        await self._background.finish()
        await self._pruner.stop()
        await self._node.leave()
        await self._database.close()
        for failure in closed:
            if failure is not None:
                raise failure

    async def _own(self, session_id: str, taking: Coroutine[Any, Any, DatabaseLog], undo: Undo) -> DatabaseLog:
        """Take a session; a caller that gives up meanwhile leaves it as it was."""
        if session_id in self._live or session_id in self._taking:
            taking.close()
            raise SessionBusy(session_id, os.getpid(), socket.gethostname())
        self._taking.add(session_id)
        task = asyncio.ensure_future(taking)
        try:
            log = await asyncio.shield(task)
        except asyncio.CancelledError:
            self._background.start(self._give_up(session_id, task, undo))
            raise
        except BaseException:
            self._taking.discard(session_id)
            raise
        self._live[session_id] = log
        self._taking.discard(session_id)
        return log

    async def _give_up(self, session_id: str, task: asyncio.Task[DatabaseLog], undo: Undo) -> None:
        try:
            with suppress(DragomanError):
                await undo(await task)
        finally:
            self._taking.discard(session_id)

    async def _create(self, header: Header, settings: bytes | None) -> DatabaseLog:
        await self._check()
        await self._join()
        session = await self._table.create(header, self._node.id)
        if session is None:
            raise SessionTaken(header.id)
        log = self._log(session, is_new=True)
        if settings is not None:
            log.record("config", settings)
            await log.sync()
        return log

    async def _open(self, session_id: str) -> DatabaseLog:
        await self._check()
        if not is_session_id(session_id):
            raise SessionUnknown(session_id)
        await self._join()
        return self._log(await self._table.take(session_id, self._node.id), is_new=False)

    async def _remove(self, log: DatabaseLog) -> None:
        await log.close()
        await self._table.delete(log.header.id, self._node.id)

    def _log(self, session: OwnedSession, *, is_new: bool) -> DatabaseLog:
        return DatabaseLog(self._table, session, self._node, is_new=is_new, on_close=self._forget)

    def _forget(self, log: DatabaseLog) -> None:
        if self._live.get(log.header.id) is log:
            del self._live[log.header.id]

    def _lose(self, failure: LeaseLost) -> None:
        for log in list(self._live.values()):
            log.fail(failure)

    async def _read(self, session_id: str, key: int, until: int) -> AsyncIterator[list[Block]]:
        at = SessionEnd(0, 0)
        while at.last < until:
            blocks, at = await self._table.read(key, at, until)
            if not blocks:  # another process has deleted it meanwhile
                raise SessionUnknown(session_id)
            yield blocks

    async def _check(self) -> None:
        """See once that the tables are there and of this version."""
        if not self._is_checked:
            await schema.check(self._database)
            self._is_checked = True

    async def _join(self) -> None:
        """Be one of the processes that share the database."""
        await self._node.ensure()
        self._pruner.start()

    async def _sweep_if_due(self) -> None:
        now = time.monotonic()
        if self._next_sweep is None or now >= self._next_sweep:
            self._next_sweep = now + _SWEEP_INTERVAL_S
            with suppress(DragomanError):
                await self._table.sweep(self._unprompted_kept_s)


class _Background:
    """Work that nobody waits for before the store is closed."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self) -> None:
        if self._tasks:
            await asyncio.wait(list(self._tasks))


async def seal_anew(
    source: AsyncIterator[list[Block]], rename: Rename | None = None, before: int | None = None
) -> AsyncIterator[SealedBlocks]:
    """Seal blocks anew, with renamed lines if they go to another session, up to a line if one is given."""
    end = SessionEnd(0, 0)
    goes_on = True
    async for read in source:
        if not goes_on:
            continue  # read to its end, so that it is closed
        blocks, goes_on = cut_before(read, before)
        new = SealedBlocks([], [], [], end)
        for block in blocks:
            lines = block.lines if rename is None else rename(block.lines)
            data, checksum = reseal(block, lines, new.end.checksum)
            new.add(block.first, block.last, bytes(data), checksum)
        end = new.end
        yield new


def _summarise(session: ListedSession) -> Summary:
    return summarise(
        session.header, session.title, session.message_count, session.updated_ms, is_archived=session.is_archived
    )
