"""A history in a database that several nodes can share.

Lines are written in the background. A batch is the lines that were added during the previous commit. When a line is
committed, this node and all others may show it. The lines of several flushes that wait at the same time become one
block.

A node owns the histories that it writes (`session_table.py`). While the database is unavailable, lines wait in memory
as long as this process certainly owns the session. Then the history fails. Lines that were not committed are dropped.
They were never shown.

The other nodes read a history through a `ReplicaHistory`, which follows the commits of the owner.

A bridge can start a history before its row exists (NEW). It can also write a history to a separate scope until it
replaces an older one. It does so for the replay of an agent, which is first compared with the older history.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import msgspec

from dragoman.cancellation import finish
from dragoman.errors import DragomanError, LogError, SessionBusyError
from dragoman.store.block import Block, Draft, Header
from dragoman.store.history import (
    History,
    HistoryState,
    ListedFacts,
    ReadableHistory,
    ReadEnd,
    Version,
    Written,
    see_error,
)
from dragoman.store.postgresql.errors import DatabaseUnavailableError, WriteQueueFullError
from dragoman.store.postgresql.node import Node
from dragoman.store.postgresql.session_table import OwnedSession, SealedBlocks, SessionEnd, SessionTable
from dragoman.store.runs import TailBudget

MAX_WAITING_BYTES = 64 * 1024 * 1024
"""The most bytes of one history that wait for the database: more than a turn writes during a lease."""

MAX_BATCH_BYTES = 2 * 1024 * 1024
"""The size of a commit, so that viewers do not wait for megabytes after the line that they need."""

BLOCK_BYTES = 64 * 1024
"""The most bytes of several flushes that become one block. A block is always read completely."""

_RETRY_S = 0.2


class HistoryListener(Protocol):
    """The part of a bridge that follows its histories in a database."""

    def history_committed(self, history: History) -> None:
        """Handle lines that were committed and are visible now."""
        ...

    def history_listed(self, history: History) -> None:
        """Handle new facts of a session in lists."""
        ...

    def history_lost(self, history: History, failure: LogError) -> None:
        """Handle the loss of a session that this node no longer owns."""
        ...

    def waiting_changed(self, change: int) -> None:
        """Add `change` to the number of bytes that wait for the database."""
        ...


class BridgePart(msgspec.Struct, frozen=True):
    """The objects that only a bridge needs for its histories in a database."""

    replays: SessionTable
    """The table for replays of an agent, until they replace older histories."""
    listener: HistoryListener
    spawn: Callable[[Coroutine[Any, Any, None]], object]


class DatabaseHistory:
    """The rows of one history. See `HistoryBackend`."""

    history: History

    def __init__(
        self,
        table: SessionTable,
        node: Node,
        session: OwnedSession | None,
        *,
        bridge: BridgePart | None = None,
        on_close: Callable[[History], None] | None = None,
    ) -> None:
        """Create the backend of a session that this node owns. Without a session, the first write creates it."""
        self.session = session
        self._table = table
        self._node = node
        self._bridge = bridge
        self._on_close = on_close
        self._end = SessionEnd(0, 0) if session is None else session.end
        """The end of the committed lines."""
        self._waiting: deque[Draft] = deque()
        """The blocks for the next commits."""
        self._sending: list[Draft] = []
        """The blocks of the commit in progress."""
        self._is_cut = True
        """Whether the next lines start a block."""
        self._written: deque[tuple[int, Written]] = deque()
        """Futures, each with the number of the line whose commit it waits for."""
        self._before: list[asyncio.Future[None]] = []
        """Work that must be done before the next commit."""
        self._when_created: list[Callable[[], None]] = []
        self._listed: ListedFacts | None = None if session is None else msgspec.structs.replace(session.facts)
        """The facts that lists show now."""
        self._is_listed = True
        """Whether lists show the time of the last write."""
        self._is_settled = session is not None
        self._task: asyncio.Task[None] | None = None

    @property
    def place(self) -> str:
        return f"the database {self._table.database.name}"

    @property
    def path(self) -> Path | None:
        return None

    @property
    def is_idle(self) -> bool:
        return self._task is None and not self._has_work()

    @property
    def is_open(self) -> bool:
        """Whether this node writes it."""
        return self.history.state in (HistoryState.NEW, HistoryState.UNREAD, HistoryState.OPEN)

    def now_ms(self) -> int:
        return self._node.now_ms()

    def write(self, drafts: list[Draft], time_ms: int) -> Written | None:
        del time_ms  # blocks have the time of their commit
        size = sum(draft.size for draft in drafts)
        for draft in drafts:
            if self._is_cut or not self._waiting or self._waiting[-1].size + draft.size > BLOCK_BYTES:
                self._waiting.append(draft)
            else:
                self._waiting[-1].add_draft(draft)
            self._is_cut = False
        if size:
            self._count(size)
            if self._size() > MAX_WAITING_BYTES:
                self.lose(WriteQueueFullError(self._table.database.name, MAX_WAITING_BYTES))
                self.history.raise_failure()
                return None
        if self._task is None and self._has_work():
            self._task = asyncio.create_task(self._write_all())
        return self._until(self._next_end())

    def cut(self) -> Written | None:
        self._is_cut = True
        return self._until(self._next_end())

    async def read(self, after: int) -> list[Block]:
        if self.session is None or after >= self._end.last:
            return []
        return await self._table.read_from(self.session.key, after, self._end.last)

    async def finish_reading(self) -> ReadEnd:
        return ReadEnd(self._end.last)

    def begin_sync(self) -> None:
        return None

    async def list_facts(self, facts: ListedFacts) -> None:
        if self.session is None or (self._is_listed and facts == self._listed):
            return
        session, listed = self.session, msgspec.structs.replace(facts)
        try:
            await finish(self._try(lambda: self._table.set_facts(session, listed)))
        except LogError as failure:
            self.lose(failure)
            raise
        self._listed, self._is_listed = listed, True

    def rest(self) -> None:
        pass

    def forget(self) -> None:
        size = self._size()
        self._waiting.clear()
        self._sending = []
        self._count(-size)
        waiting, self._written = self._written, deque()
        for _, written in waiting:
            if self.history.failure is not None:
                written.set_exception(self.history.failure)
            else:
                written.cancel()

    async def close(self) -> None:
        if self._on_close is not None:
            self._on_close(self.history)
        if self.session is not None:
            await finish(self._table.release(self.session))

    def delete(self) -> None:
        if self._bridge is not None:
            self._bridge.spawn(self._remove(self._bridge))

    # Only a bridge calls these methods.

    def replica(self, budget: TailBudget) -> "ReplicaHistory | None":
        """Return the committed lines as this node reads them after it lost the session. None without a row."""
        history, session = self.history, self.session
        if session is None:
            return None
        changes = [each for each in history.versions.changes if each[0] <= history.end]
        return ReplicaHistory(self._table, session.key, history.header, end=history.end, changes=changes, budget=budget)

    def settle(self) -> None:
        """Replace the older history of this session."""
        self._is_settled = True
        self.history.flush()

    def when_created(self, callback: Callable[[], None]) -> None:
        """Call `callback` when the row exists, or now if it does."""
        if self.session is None:
            self._when_created.append(callback)
        else:
            callback()

    def wait_for(self, work: Coroutine[Any, Any, None]) -> None:
        """Commit the lines that are added from now on only after `work` is done."""
        self._before.append(asyncio.ensure_future(work))
        self._is_cut = True

    async def reach(self, seq: int) -> None:
        """Wait until a line is committed or the history has failed."""
        self.history.flush()
        if (written := self._until(seq)) is not None:
            await asyncio.wait([written])

    async def finish(self) -> None:
        """Wait until all added lines are committed or the history has failed."""
        self.history.flush()
        while self._task is not None:
            await asyncio.wait([self._task])

    async def claim(self) -> None:
        """Reserve a session without a history for this node. Raises SessionBusyError, LogError.

        If another node has opened the session at the same time, it has a row in the replays or in the histories.
        """
        try:
            await self._create()
            if self.history.failure is not None:
                raise self.history.failure
            if await self._table.find(self.history.header.id) is not None:
                raise SessionBusyError(self.history.header.id, None, None)
        except DragomanError:
            self.history.delete()
            raise

    def lose(self, failure: LogError) -> None:
        """Stop writing, because another node may own the session."""
        if self.is_open:
            self.history.fail(failure)
            if self._bridge is not None:
                self._bridge.listener.history_lost(self.history, failure)

    # Writing.

    def _size(self) -> int:
        return sum(draft.size for draft in (*self._sending, *self._waiting))

    def _next_end(self) -> int:
        return self._end.last + sum(map(len, (*self._sending, *self._waiting)))

    def _count(self, change: int) -> None:
        if self._bridge is not None and change:
            self._bridge.listener.waiting_changed(change)

    def _until(self, seq: int) -> Written | None:
        """Return a future that is done when a line is committed, or None if it already is."""
        if seq <= self._end.last or not self.is_open:
            return None
        if not self._written or self._written[-1][0] < seq:
            written: Written = asyncio.get_running_loop().create_future()
            written.add_done_callback(see_error)
            self._written.append((seq, written))
        return next(written for last, written in self._written if last >= seq)

    def _has_work(self) -> bool:
        if not self.is_open:
            return False
        is_due = self.history.is_listing_due and self._is_settled
        return bool(self._waiting) or self.session is None or is_due or self._is_apart

    @property
    def _is_apart(self) -> bool:
        """Whether its rows still have to replace an older history."""
        return self._is_settled and self.session is not None and self.session.scope != self._table.scope

    async def _write_all(self) -> None:
        """Commit all lines, including lines that are added during a commit."""
        session_id = self.history.header.id
        try:
            if self.session is None:
                await self._create()
            while self._has_work():
                await self._write_batch()
                if self._is_apart and not self._waiting:
                    await self._replace_older()
        except LogError as failure:
            self.lose(failure)
        except DragomanError as error:
            self.lose(LogError(f"session {session_id} cannot be written: {error}"))
        except Exception as error:
            self.lose(LogError(f"session {session_id} cannot be written ({error}); please report this"))
            raise
        finally:
            self._task = None

    async def _create(self) -> None:
        header, node, bridge = self.history.header, self._node, self._bridge
        if bridge is None:
            raise RuntimeError("an agent creates a session before its history")
        await node.ensure()
        session: OwnedSession | None = None
        if self._is_settled:
            session = await self._table.create(header, node.id)
        if session is None:
            await bridge.replays.delete(header.id, node.id)
            session = await bridge.replays.create(header, node.id)
        if session is None:
            raise SessionBusyError(header.id, None, None)
        self.session = session
        if self.history.state is HistoryState.NEW:
            self.history.created()
            self._seen()
            waiting, self._when_created = self._when_created, []
            for callback in waiting:
                callback()

    async def _replace_older(self) -> None:
        if self.session is not None and self._bridge is not None:
            await self._bridge.replays.replace(self.session, self._table.scope, self._node.id)
            self.session = msgspec.structs.replace(self.session, scope=self._table.scope)
            self.history.is_listing_due = True

    async def _write_batch(self) -> None:
        session = self.session
        if session is None:
            return
        # Take lines up to the limit first. Lines that are added while this waits go into the next batch.
        size = 0
        while self._waiting and size < MAX_BATCH_BYTES:
            draft = self._waiting.popleft()
            self._sending.append(draft)
            size += draft.size
        if self._before:
            before, self._before = self._before, []
            await asyncio.wait(before)
        facts, end, time_ms = self._changed_facts(), self._end, self.now_ms()
        if self._sending:
            new = seal_drafts(self._sending, end, time_ms)
            await self._try(lambda: self._table.append(session, end, new, facts))
            if self.is_open:
                self._committed(new.end, time_ms, is_listed=facts is not None)
        elif facts is not None:
            await self._try(lambda: self._table.set_facts(session, facts))
        if facts is not None and self.is_open:
            self._listed = facts
            if self._bridge is not None:
                self._bridge.listener.history_listed(self.history)

    def _changed_facts(self) -> ListedFacts | None:
        """Return the facts for lists if they changed, or else None."""
        if self._bridge is None:
            facts: ListedFacts | None = msgspec.structs.replace(self.history.facts)
        elif self.history.is_listing_due and self._is_settled and not self._is_apart:
            # A replay is only listed after it has replaced the older history. The agent may not have the session.
            self.history.is_listing_due = False
            reader = self.history.reader
            facts = None if reader is None else reader.listed_facts()
        else:
            facts = None
        return None if facts == self._listed else facts

    def _committed(self, end: SessionEnd, time_ms: int, *, is_listed: bool) -> None:
        sent, self._sending = self._sending, []
        self._end, self._is_listed = end, is_listed
        self._count(-sum(draft.size for draft in sent))
        self.history.show(sent, time_ms)
        while self._written and self._written[0][0] <= end.last:
            self._written.popleft()[1].set_result(None)
        self._seen()

    def _seen(self) -> None:
        if self._bridge is not None:
            if self.history.reader is not None:
                self.history.reader.wake_viewers()
            self._bridge.listener.history_committed(self.history)

    async def _try(self, work: Callable[[], Awaitable[None]]) -> None:
        """Retry a write until the lease ends, or for the duration of one lease. Raises LogError.

        The second limit is for a full disk that accepts heartbeats but no blocks, so the lease never ends.
        """
        deadline = time.monotonic() + self._node.lease_s
        while True:
            try:
                async with asyncio.timeout(self._node.left_s):
                    return await work()
            except TimeoutError:
                failure = self._node.lost()
            except DatabaseUnavailableError as error:
                failure = error
            if not self._node.is_alive:
                raise self._node.lost() from None
            if time.monotonic() > deadline:
                raise failure
            await asyncio.sleep(_RETRY_S)
            if not self.is_open:  # the history has failed, so these lines must never be written
                raise failure

    async def _remove(self, bridge: BridgePart) -> None:
        while self._task is not None:
            await asyncio.wait([self._task])
        if self.session is not None:
            table = bridge.replays if self.session.scope == bridge.replays.scope else self._table
            with suppress(DragomanError):  # a living node that owns the session deletes it
                await table.delete(self.history.header.id, self._node.id)


class ReplicaHistory(ReadableHistory):
    """A history that another node writes, or no node. It has the committed lines."""

    def __init__(
        self,
        table: SessionTable,
        key: int,
        header: Header,
        *,
        end: int,
        changes: Sequence[tuple[int, Version]],
        budget: TailBudget,
    ) -> None:
        super().__init__(header, end=end, budget=budget, changes=changes)
        self.key = key
        self._table = table

    async def read_blocks(self, after: int) -> list[Block]:
        return await self._table.read_from(self.key, after, self.end) if after < self.end else []

    async def follow(self, last: int) -> bool:
        """Read the lines up to this one. Return whether there were any. Raises DragomanError."""
        before = self.end
        while self.end < last and (blocks := await self._table.read_from(self.key, self.end, last)):
            for block in blocks:
                self.versions.see(block)
                for first, count, lines in block.runs():
                    self.tail.extend(first, lines, block.time, count=count)
                self.end = block.last
        return self.end > before


def seal_drafts(drafts: list[Draft], end: SessionEnd, time_ms: int) -> SealedBlocks:
    """Return the sealed blocks that follow the end."""
    new = SealedBlocks([], [], [], end)
    for draft in drafts:
        first = new.end.last + 1
        block, checksum = draft.seal(first, time_ms, new.end.checksum)
        new.add(first, first + len(draft) - 1, block, checksum)
    return new
