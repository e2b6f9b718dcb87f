"""The store of session logs in PostgreSQL, which any number of processes can share.

`schema.py` has the tables, and `history.py` describes how lines are written.
"""

import asyncio
import os
import socket
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import suppress
from datetime import datetime
from typing import Any, TypeAlias

import msgspec

from dragoman.cancellation import finish
from dragoman.errors import DragomanError, SessionBusyError, SessionNotFoundError
from dragoman.store.block import Block, Header, Rename, cut_before
from dragoman.store.block_log import reseal
from dragoman.store.history import History, HistoryState, ListedFacts
from dragoman.store.naming import check_session_id, is_session_id, normalise
from dragoman.store.postgresql import schema
from dragoman.store.postgresql.approval_table import ApprovalTable
from dragoman.store.postgresql.database import Database
from dragoman.store.postgresql.errors import LeaseLostError, SessionExistsError
from dragoman.store.postgresql.history import DatabaseHistory
from dragoman.store.postgresql.node import LEASE_S, Node
from dragoman.store.postgresql.retention import Pruner
from dragoman.store.postgresql.session_table import (
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

Undo: TypeAlias = Callable[[History], Awaitable[None]]

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
        bridge: uuid.UUID | None = None,
    ) -> None:
        """Create the store. Nothing is connected yet. Raises InvalidStoreAddressError.

        `scope` separates the sessions of different agents. `bridge` is the node of the bridge that started this agent.
        If that node loses its lease, this store loses its sessions.
        """
        self._database = Database(address)
        self._table = SessionTable(self._database, scope)
        self._approvals = ApprovalTable(self._database, scope)
        self._node = Node(self._database, lease_s, bridge=bridge)
        self._node.on_lost = self._lose
        self._pruner = Pruner(self._database, self._node.id, retention)
        self._unprompted_kept_s = unprompted_kept_s
        self._live: dict[str, History] = {}
        self._acquiring: set[str] = set()
        self._is_checked = False
        self._next_sweep: float | None = None
        self._background = _Background()

    async def now(self) -> datetime:
        await self._check()
        await self._join()
        return self._node.now()

    async def create(self, header: Header, settings: bytes | None = None) -> History:
        check_session_id(header.id)
        return await self._own(header.id, self._create(header, settings), self._remove)

    async def open(self, session_id: str) -> History:
        return await self._own(session_id, self._open(session_id), History.close)

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
            raise SessionNotFoundError(session_id)
        live = self._live.get(session_id)
        if live is not None and live.failure is None:
            await live.sync()
        key, end, facts = await self._table.find_end(session_id)
        blocks = self._read(session_id, key, end.last)
        if not await finish(self._table.copy(header, reseal_blocks(blocks, rename, before), facts)):
            raise SessionExistsError(header.id)

    async def put(self, header: Header, blocks: AsyncIterator[list[Block]], listed: Summary | None) -> bool:
        """Add a session of another store, completely or not at all. Return whether its id was free."""
        check_session_id(header.id)
        await self._check()
        facts, updated_ms = ListedFacts(), None
        if listed is not None:
            facts = ListedFacts(listed.title, listed.message_count, is_prompted=True, is_archived=listed.is_archived)
            updated_ms = int(datetime.fromisoformat(listed.updated_at).timestamp() * 1000)
        return await finish(self._table.copy(header, reseal_blocks(blocks), facts, updated_ms))

    async def delete(self, session_id: str) -> bool:
        await self._check()
        if not is_session_id(session_id):
            return False
        if session_id in self._live or session_id in self._acquiring:
            raise SessionBusyError(session_id, os.getpid(), socket.gethostname())
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

    async def _own(self, session_id: str, acquiring: Coroutine[Any, Any, History], undo: Undo) -> History:
        """Run `acquiring` and register its log. If the caller is cancelled, undo the result in the background."""
        if session_id in self._live or session_id in self._acquiring:
            acquiring.close()
            raise SessionBusyError(session_id, os.getpid(), socket.gethostname())
        self._acquiring.add(session_id)
        task = asyncio.ensure_future(acquiring)
        try:
            log = await asyncio.shield(task)
        except asyncio.CancelledError:
            self._background.start(self._undo_later(session_id, task, undo))
            raise
        except BaseException:
            self._acquiring.discard(session_id)
            raise
        self._live[session_id] = log
        self._acquiring.discard(session_id)
        return log

    async def _undo_later(self, session_id: str, task: asyncio.Task[History], undo: Undo) -> None:
        try:
            with suppress(DragomanError):
                await undo(await task)
        finally:
            self._acquiring.discard(session_id)

    async def _create(self, header: Header, settings: bytes | None) -> History:
        await self._check()
        await self._join()
        session = await self._table.create(header, self._node.id)
        if session is None:
            raise SessionExistsError(header.id)
        log = self._log(session, is_new=True)
        if settings is not None:
            log.record("config", settings)
            await log.sync()
        return log

    async def _open(self, session_id: str) -> History:
        await self._check()
        if not is_session_id(session_id):
            raise SessionNotFoundError(session_id)
        await self._join()
        return self._log(await self._table.acquire(session_id, self._node.id), is_new=False)

    async def _remove(self, log: History) -> None:
        await log.close()
        await self._table.delete(log.header.id, self._node.id)

    def _log(self, session: OwnedSession, *, is_new: bool) -> History:
        rows = DatabaseHistory(self._table, self._node, session, on_close=self._forget)
        state = HistoryState.OPEN if is_new else HistoryState.UNREAD
        log = History(session.header, rows, state=state, end=session.end.last)
        log.facts = msgspec.structs.replace(session.facts)
        return log

    def _forget(self, log: History) -> None:
        if self._live.get(log.header.id) is log:
            del self._live[log.header.id]

    def _lose(self, failure: LeaseLostError) -> None:
        for log in list(self._live.values()):
            log.fail(failure)

    async def _read(self, session_id: str, key: int, until: int) -> AsyncIterator[list[Block]]:
        reached = 0
        while reached < until:
            blocks = await self._table.read_from(key, reached, until)
            if not blocks:  # another process has just deleted it
                raise SessionNotFoundError(session_id)
            reached = blocks[-1].last
            yield blocks

    async def _check(self) -> None:
        """Check once that the tables exist and have this version."""
        if not self._is_checked:
            await schema.check(self._database)
            self._is_checked = True

    async def _join(self) -> None:
        """Start the heartbeat of this process and the pruner."""
        await self._node.ensure()
        self._pruner.start()

    async def _sweep_if_due(self) -> None:
        now = time.monotonic()
        if self._next_sweep is None or now >= self._next_sweep:
            self._next_sweep = now + _SWEEP_INTERVAL_S
            with suppress(DragomanError):
                await self._table.sweep(self._unprompted_kept_s)


class _Background:
    """Tasks that run until they are done. Only closing the store waits for them."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self) -> None:
        if self._tasks:
            await asyncio.wait(list(self._tasks))


async def reseal_blocks(
    source: AsyncIterator[list[Block]], rename: Rename | None = None, before: int | None = None
) -> AsyncIterator[SealedBlocks]:
    """Yield the blocks with new seals, and with renamed lines if they go to another session.

    `before` is the number of the first line to leave out.
    """
    end = SessionEnd(0, 0)
    has_more = True
    async for read in source:
        if not has_more:
            continue  # exhaust the source, so that it is closed
        blocks, has_more = cut_before(read, before)
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
