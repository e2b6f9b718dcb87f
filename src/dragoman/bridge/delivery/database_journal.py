"""A journal in a database that several nodes share.

    NEW ──its row is there──▶ OPEN ──a write fails for good──▶ LOST
     │                         │                                │
     └──────── drop, delete ───┴─────────────▶ DROPPED ◀────────┘

Records are written behind, in batches that are as long as the commit before them takes. A viewer is shown a record when
it is committed, on this node and on every other; until then `end` is before it. Direct messages wait for `end` too, so
that not even the answer to `session/new` is given before its session is there.

A node owns the sessions that it writes (`store.postgresql.session_table`). A journal whose session another node took,
or whose node could not reach the database within its lease, is lost here: what was not committed was shown to nobody
and is forgotten.
"""

import asyncio
import errno
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from enum import Enum, auto
from typing import Any, Protocol

import msgspec

from dragoman.bridge.delivery.journal import Journal, JournalReader, SessionDescription, make_epoch
from dragoman.bridge.delivery.journal_file import JournalPart, runs_of
from dragoman.bridge.delivery.runs import TailBudget
from dragoman.bridge.envelope import encode
from dragoman.errors import DragomanError, LogFailed, SessionBusy
from dragoman.store.block import Draft, Header
from dragoman.store.postgresql.errors import TooMuchWaits
from dragoman.store.postgresql.node import Node
from dragoman.store.postgresql.session_table import ListedFacts, OwnedSession, SealedBlocks, SessionEnd, SessionTable
from dragoman.store.postgresql.writer import SessionWrites, seal_drafts

MAX_WAITING_BYTES = 64 * 1024 * 1024
"""Of one journal, for a database that is away: the agent is not read from long before."""

MAX_BATCH_BYTES = 2 * 1024 * 1024
"""Of one commit, so that a viewer need not wait for megabytes behind the record that it waits for."""


class JournalListener(Protocol):
    """The parts of the bridge that follow the journals of a database."""

    def journal_committed(self, journal: "DatabaseJournal") -> None:
        """Note that records can be seen."""
        ...

    def journal_told(self, journal: "DatabaseJournal", described: SessionDescription) -> None:
        """Note that lists show other facts of a session."""
        ...

    def journal_lost(self, journal: "DatabaseJournal", failure: LogFailed) -> None:
        """Note that this node does not own a session any more."""
        ...

    def waiting_changed(self, change: int) -> None:
        """Count bytes that wait for the database."""
        ...


class SharedTables(msgspec.Struct, frozen=True):
    """The tables of one agent's journals, with the node that writes them."""

    journals: SessionTable
    replays: SessionTable
    """Journals of an agent's replay, until they take the place of older ones."""
    node: Node
    listener: JournalListener
    spawn: Callable[[Coroutine[Any, Any, None]], object]


class JournalState(Enum):
    """The states of a journal in a database."""

    NEW = auto()
    OPEN = auto()
    LOST = auto()
    DROPPED = auto()


class CommitQueue:
    """The blocks of a journal on their way into the database, and the end of those that are there."""

    def __init__(self, end: SessionEnd) -> None:
        self.end = end
        self.waiting: deque[Draft] = deque()
        """Blocks for the next commits."""
        self.sending: list[Draft] = []
        """Blocks of the commit that is under way."""
        self._before: list[asyncio.Future[None]] = []
        """Work that comes before the next commit."""
        self._changes: list[asyncio.Future[None]] = []
        """Those who wait for a commit."""

    @property
    def next_end(self) -> int:
        """The last line, committed or not."""
        return self.end.last + sum(map(len, (*self.sending, *self.waiting)))

    @property
    def size(self) -> int:
        """The bytes of all lines that are not committed."""
        return sum(draft.size for draft in (*self.sending, *self.waiting))

    def wait_for(self, work: Coroutine[Any, Any, None]) -> None:
        """Commit the blocks that are added from now on behind some other work."""
        self._before.append(asyncio.ensure_future(work))

    async def take(self, clock: Callable[[], int]) -> SealedBlocks | None:
        """Return the blocks of the next commit, sealed with the time of the clock; None if there are none."""
        size = 0
        while self.waiting and size < MAX_BATCH_BYTES:
            draft = self.waiting.popleft()
            self.sending.append(draft)
            size += draft.size
        if self._before:
            before, self._before = self._before, []
            await asyncio.wait(before)
        return seal_drafts(self.sending, self.end, clock()) if self.sending else None

    def sent(self, end: SessionEnd) -> list[Draft]:
        """Note that a commit is done, and return its blocks."""
        sent, self.sending = self.sending, []
        self.end = end
        return sent

    def clear(self) -> None:
        """Forget what is not committed."""
        self.waiting.clear()
        self.sending = []

    async def change(self) -> None:
        """Wait until something is committed, or forgotten."""
        change: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._changes.append(change)
        await change

    def note_change(self) -> None:
        """Wake those that wait for a change."""
        changes, self._changes = self._changes, []
        for change in changes:
            if not change.done():
                change.set_result(None)


class ListedState:
    """The facts of a session that lists show, and whether they are still true."""

    def __init__(self) -> None:
        self.is_due = False
        self._told: ListedFacts | None = None

    def take(self, reader: JournalReader | None, updated_ms: int) -> tuple[ListedFacts, SessionDescription] | None:
        """Return the facts if they changed since the last call."""
        was_due, self.is_due = self.is_due, False
        if not was_due or reader is None:
            return None
        described = reader.describe_for_lists()
        shown = encode({key: value for key, value in described.fields.items() if key != "updatedAt"})
        facts = ListedFacts(
            described.fields["title"],
            is_prompted=described.is_prompted,
            is_archived=bool(described.fields.get("archived")),
            shown=shown,
            updated_ms=updated_ms,
        )
        if facts == self._told:
            return None
        self._told = facts
        return facts, described


class DatabaseJournal(Journal):
    """One session's journal in a database, which this node owns."""

    def __init__(
        self, tables: SharedTables, header: Header, budget: TailBudget, session: OwnedSession | None = None
    ) -> None:
        end = SessionEnd(0, 0) if session is None else session.end
        super().__init__(header, budget, make_epoch(header), end.last)
        self.updated_ms = tables.node.now_ms()
        self.session = session
        self.state = JournalState.NEW if session is None else JournalState.OPEN
        self._tables = tables
        self._queue = CommitQueue(end)
        self._listed = ListedState()
        self._is_settled = session is not None
        self._task: asyncio.Task[None] | None = None
        self._when_created: list[Callable[[], None]] = []
        if session is None:
            self.end = -1

    @property
    def place(self) -> str:
        return f"the database {self._tables.journals.database.name}"

    @property
    def next_end(self) -> int:
        return self._queue.next_end + sum(map(len, self._drafts))

    def note_change(self) -> None:
        self._listed.is_due = True

    def flush(self) -> None:
        if self.state in (JournalState.LOST, JournalState.DROPPED):
            self._drafts = [Draft()]
            return
        if self._drafts[0]:
            added, self._drafts = self._drafts, [Draft()]
            self._note_written(self._tables.node.now_ms())
            self._queue.waiting += added
            self._tables.listener.waiting_changed(sum(draft.size for draft in added))
            if self._queue.size > MAX_WAITING_BYTES:
                self.lose(TooMuchWaits(self._tables.journals.database.name, MAX_WAITING_BYTES))
                return
        if self._task is None and self._has_work():
            self._task = asyncio.create_task(self._write_all())

    def settle(self) -> None:
        """Take the place of an older journal of this session."""
        self._is_settled = True
        self.flush()

    def when_created(self, go_on: Callable[[], None]) -> None:
        """Call `go_on` now, or once its row is there."""
        if self.state is JournalState.NEW:
            self._when_created.append(go_on)
        else:
            go_on()

    def wait_for(self, work: Coroutine[Any, Any, None]) -> None:
        """Commit the records that are added from now on behind some other work."""
        self._queue.wait_for(work)

    def follow_on(self, other: Journal) -> None:
        if isinstance(other, DatabaseJournal) and other.next_end > other.end:
            self.wait_for(other.reach(other.next_end))

    async def reach(self, seq: int) -> None:
        """Wait until a record is committed, or never will be."""
        self.flush()
        while self.end < seq and self.state in (JournalState.NEW, JournalState.OPEN):
            await self._queue.change()

    async def claim(self) -> None:
        """Be the one that opens a session which has no journal yet; raises SessionBusy, LogFailed.

        Another node that opened it meanwhile has a row among the replays, or among the journals by now.
        """
        try:
            await self._create()
            if self.failure is not None:
                raise self.failure
            if await self._tables.journals.find(self.header.id) is not None:
                raise SessionBusy(self.header.id, None, None)
        except DragomanError:
            self.delete()
            raise

    async def finish(self) -> None:
        """Wait until all that was added is committed, or never will be."""
        self.flush()
        while self._task is not None:
            await asyncio.wait([self._task])

    async def read(self, after: int, until: int, *, with_cursors: bool) -> JournalPart:
        return await read_part(self._tables.journals, self._key, after, until, self.epoch if with_cursors else None)

    def lose(self, failure: LogFailed) -> None:
        """Write nothing any more: another node may own the session."""
        if self.state in (JournalState.LOST, JournalState.DROPPED):
            return
        self.failure = failure
        self._forget(JournalState.LOST)
        self._tables.listener.journal_lost(self, failure)

    def drop(self) -> None:
        self._forget(JournalState.DROPPED)
        self.tail.drop()

    def delete(self) -> None:
        self.drop()
        self._tables.spawn(self._remove())

    @property
    def _key(self) -> int:
        return 0 if self.session is None else self.session.key

    def _has_work(self) -> bool:
        is_due = self._listed.is_due and self._is_settled
        return bool(self._queue.waiting) or self.state is JournalState.NEW or is_due or self._is_apart

    @property
    def _is_apart(self) -> bool:
        """Whether its rows have to take the place of an older journal."""
        return self._is_settled and self.session is not None and self.session.scope != self._tables.journals.scope

    async def _write_all(self) -> None:
        """Commit all that is added, also meanwhile."""
        try:
            if self.state is JournalState.NEW:
                await self._create()
            while self.state is JournalState.OPEN and self._has_work():
                await self._write_batch()
                if self._is_apart and not self._queue.waiting:
                    await self._take_place()
        except LogFailed as failure:
            self.lose(failure)
        except DragomanError as error:
            self.lose(LogFailed(f"the journal of session {self.header.id} cannot be written: {error}"))
        except Exception as error:
            problem = f"the journal of session {self.header.id} cannot be written ({error}); please report this"
            self.lose(LogFailed(problem))
            raise
        finally:
            self._task = None

    async def _create(self) -> None:
        tables = self._tables
        await tables.node.ensure()
        session: OwnedSession | None = None
        if self._is_settled:
            session = await tables.journals.create(self.header, tables.node.id)
        if session is None:
            await tables.replays.delete(self.header.id, tables.node.id)
            session = await tables.replays.create(self.header, tables.node.id)
        if session is None:
            raise SessionBusy(self.header.id, None, None)
        self.session = session
        if self.state is JournalState.NEW:
            self.state = JournalState.OPEN
            self.end = 0
            self._seen()
            waiting, self._when_created = self._when_created, []
            for go_on in waiting:
                go_on()

    async def _take_place(self) -> None:
        if self.session is None:
            return
        await self._tables.replays.replace(self.session, self._tables.journals.scope, self._tables.node.id)
        self.session = msgspec.structs.replace(self.session, scope=self._tables.journals.scope)
        self._listed.is_due = True

    async def _write_batch(self) -> None:
        if self.session is None:
            return
        writes = SessionWrites(self._tables.journals, self.session, self._tables.node)
        new = await self._queue.take(writes.now_ms)
        # Lists show nothing of a replay before it has its place: the agent may not have the session at all.
        is_shown = self._is_settled and not self._is_apart
        changed = self._listed.take(self.reader, self.updated_ms) if is_shown else None
        facts = None if changed is None else changed[0]
        if new is not None:
            await writes.append(self._queue.end, new, facts)
            if self.state is JournalState.OPEN:
                self._committed(new.end)
        elif facts is not None:
            await writes.set_facts(facts)
        if changed is not None and self.state is JournalState.OPEN:
            self._tables.listener.journal_told(self, changed[1])

    def _committed(self, end: SessionEnd) -> None:
        time_ms = self._tables.node.now_ms()
        sent = self._queue.sent(end)
        self._tables.listener.waiting_changed(-sum(draft.size for draft in sent))
        self._show(sent, time_ms)
        self._seen()

    def _seen(self) -> None:
        if self.reader is not None:
            self.reader.wake_viewers()
        self._tables.listener.journal_committed(self)
        self._queue.note_change()

    async def _remove(self) -> None:
        while self._task is not None:
            await asyncio.wait([self._task])
        if self.session is not None:
            is_apart = self.session.scope == self._tables.replays.scope
            table = self._tables.replays if is_apart else self._tables.journals
            with suppress(DragomanError):  # the session of a node that lives is deleted there
                await table.delete(self.header.id, self._tables.node.id)

    def _forget(self, state: JournalState) -> None:
        self.state = state
        waiting = self._queue.size
        self._queue.clear()
        self._drafts = [Draft()]
        self._tables.listener.waiting_changed(-waiting)
        self._queue.note_change()


async def read_part(table: SessionTable, key: int, after: int, until: int, epoch: str | None) -> JournalPart:
    """Read the next messages of a journal after a record; raises OSError."""
    part = JournalPart([], after)
    mark = None if epoch is None else epoch.encode()
    try:
        while part.reached < until and not part.runs:
            blocks = await table.read_from(key, part.reached, until)
            if not blocks:
                part.reached = until
                break
            part.runs = [run for block in blocks for run in runs_of(block, after, until, mark)]
            part.reached = max(after, min(blocks[-1].last, until))
    except DragomanError as error:
        raise OSError(errno.EIO, str(error)) from error
    return part
