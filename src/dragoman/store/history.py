"""The history: the conversation of one session, with numbered lines, written once and read many times.

An agent's session log and a bridge's record of a session are both a `History`. It has lines of the wire, exactly as
they were sent, and records that no client receives. Both are numbered from 1 without a gap. `block.py` describes the
format. A backend stores the lines: a file (`history_file.py`), or tables of PostgreSQL (`postgresql/history.py`).

    NEW ────────the backend has its place────────▶ OPEN ◀──── space again ──── WAITING
    UNREAD ─────read to its end, and mended──────▶  │ └──────the disk is full─────▲
                                                    └──────a write fails for good──────▶ FAILED
    any ──────────────────close, drop, delete─────────────────▶ CLOSED

- A history in a database is NEW until its row exists. Lines can be added before.
- A stored history is UNREAD until `blocks` has read it to its end. Only then is it known where new lines go.
- A file is WAITING while the disk is full, if its backend waits for space. Lines are kept in memory, in order, and are
  written when there is space again.
- A FAILED history is never written again. `AfterFailure` decides what happens to new lines.

**The promise of `flush`.** `append` and `record` keep lines in memory. `flush` passes them to the backend. Flushed
lines survive the death of this process, so they may be shown. A file is written before `flush` returns. A database
commits later, so `flush` returns a future, and `end` moves with each commit. A bridge shows lines of a file even while
the file waits for space or after it failed. While it waits, cursors have an interim epoch. After a failure no cursor is
valid. A power cut can lose flushed lines. After `sync` they survive it.

**Cursors.** A cursor is an epoch and a number. The epoch is a hash of the header and of the current boot of the
machine, because after a power cut the same number can name another line. A damaged history gets a new header, and so
another epoch.

**Versions.** Records of settings name the version of ACP of the lines after them. A history starts with version 1.
"""

import asyncio
import errno
import os
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum, auto
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from dragoman.cancellation import finish_in_thread
from dragoman.errors import DragomanError, LogError, LogFileError
from dragoman.store.block import Block, Draft, Header
from dragoman.store.block_log import Damage
from dragoman.store.disk import failing
from dragoman.store.log_end import LogEnd, apply_title, apply_turn_end, is_archived, is_kept
from dragoman.store.runs import HistoryPart, Mark, Tail, TailBudget, runs_of

Version = Literal[1, 2]
"""A version of ACP."""

FIRST_VERSION: Version = 1

Written: TypeAlias = asyncio.Future[None]
"""Done when the lines are committed. Its error is the reason if they cannot be."""

MAX_BLOCK_BYTES = 256 * 1024
"""The most bytes of lines in a block, which is a few reads from an agent. A viewer gets a whole block at a time."""

EPOCH_CHARACTERS = 12

_MAX_DIGITS = 18
"""The most digits of a number that fits into 64 bits."""

_CONVERSATION_KINDS = frozenset({"permission", "title", "turn"})
"""The kinds of records that are part of the conversation."""

_CONVERSATION = re.compile(
    rb'"sessionUpdate"\s*:\s*"(?!(?:available_commands|config_option|current_mode|session_info|state|usage)_update")'
)
"""Matches updates that are part of the conversation. The others are settings, which an agent sends again whenever it is
started or gets another model."""


class Cursor(msgspec.Struct, frozen=True):
    """A place in a history and in the direct messages of one viewer."""

    epoch: str
    seq: int
    number: int | None = None
    """The number of the last direct message. None in the cursor of a stored message."""


def read_cursor(text: str | None) -> Cursor | None:
    """Parse `<epoch>.<seq>.<number>`, the id of an event, or `<epoch>.<seq>`. Return None for anything else."""
    epoch, *numbers = (text or "").split(".")
    if len(numbers) not in {1, 2} or not all(map(_is_number, numbers)):
        return None
    return Cursor(epoch, *map(int, numbers))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS


def make_header(session_id: str, cwd: str, directories: list[str], now: datetime | None = None) -> Header:
    """Return the header of a new history. Its time distinguishes it from other histories of the same session."""
    return Header(session_id, cwd, directories, _format_time(now or datetime.now(UTC)))


def renew_header(header: Header) -> Header:
    """Return a new header for a history that has lost lines."""
    return msgspec.structs.replace(header, created=_format_time(datetime.now(UTC)))


def make_epoch(header: Header, run: bytes = b"") -> str:
    """Return the epoch of a history. A cursor is only valid in the history with its epoch.

    `run` identifies the boot of the machine, for a history whose end a power cut can lose.
    """
    import hashlib

    return hashlib.sha256(msgspec.json.encode(header) + run).hexdigest()[:EPOCH_CHARACTERS]


def _format_time(time: datetime) -> str:
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z")


def encode_settings(settings: Mapping[str, object], version: Version) -> bytes:
    """Return the record of a session's settings for a version of ACP."""
    return msgspec.json.encode(settings if version == FIRST_VERSION else {"protocolVersion": version, **settings})


class _SettingsVersion(msgspec.Struct):
    protocol_version: Version = msgspec.field(default=FIRST_VERSION, name="protocolVersion")


def version_of_settings(config: bytes) -> Version:
    """Return the version of ACP in a record of settings, which is that of the lines after it."""
    try:
        return msgspec.json.decode(config, type=_SettingsVersion).protocol_version
    except msgspec.DecodeError:
        return FIRST_VERSION


class VersionRanges:
    """The version of ACP of each line, as a list of changes. Each change has the number of the line before it."""

    def __init__(self, changes: Sequence[tuple[int, Version]] = ()) -> None:
        self.changes = list(changes)

    @property
    def last(self) -> Version:
        """The version of the next lines."""
        return self.changes[-1][1] if self.changes else FIRST_VERSION

    def at(self, seq: int) -> Version:
        """Return the version of a line."""
        found: Version = FIRST_VERSION
        for after, version in self.changes:
            if after < seq:
                found = version
        return found

    def is_all_in(self, version: Version) -> bool:
        """Return whether all lines are in this version, so that a viewer with this version needs no translation."""
        begins_so = version == FIRST_VERSION or (bool(self.changes) and self.changes[0][0] == 1)
        return begins_so and all(each == version for _, each in self.changes)

    def see(self, block: Block) -> None:
        """Note the changes in the next block."""
        for each in block.records() if block.places else ():
            if each.kind == "config" and each.seq > (self.changes[-1][0] if self.changes else 0):
                version = version_of_settings(bytes(each.data))
                if version != self.last:
                    self.changes.append((each.seq, version))


class ListedFacts(msgspec.Struct):
    """The facts about a session that lists show."""

    title: str | None = None
    message_count: int = 0
    is_prompted: bool = False
    is_archived: bool = False
    shown: bytes | None = None
    """More facts that a bridge sends to its viewers, as JSON."""
    updated_ms: int | None = None
    """The time of the last change of the conversation. None means now."""


class ReadEnd(msgspec.Struct, frozen=True):
    """The end of a stored history, which was found by reading it."""

    last: int
    """The number of the last line."""
    facts: ListedFacts | None = None
    """The facts in its lines. None if they are already known."""
    damage: Damage | None = None


class AfterFailure(Enum):
    """What happens to lines that are added to a failed history."""

    REFUSE = auto()
    """`append` and `flush` raise the failure, because an agent must not do anything that it cannot save."""
    SHOW = auto()
    """They are shown from memory. Connected viewers notice nothing, but cursors are no longer valid."""
    DROP = auto()
    """They are dropped, because another node may own the session and have another history."""


class HistoryState(Enum):
    """The states of a history."""

    NEW = auto()
    UNREAD = auto()
    OPEN = auto()
    WAITING = auto()
    FAILED = auto()
    CLOSED = auto()


class HistoryReader(Protocol):
    """The methods of a bridge's session that its history calls."""

    def changed(self) -> None:
        """Handle a failure of the history, or its recovery."""
        ...

    def wake_viewers(self) -> None:
        """Send the lines that have become visible since they were flushed."""
        ...

    def listed_facts(self) -> ListedFacts:
        """Return the facts that lists of other nodes show."""
        ...


class HistoryBackend(Protocol):
    """Stores one history. It calls `History.show` after lines were written."""

    history: "History"
    """The history that is stored here. It sets itself."""

    @property
    def place(self) -> str:
        """The name of the file or database, for messages to the user."""
        ...

    @property
    def path(self) -> Path | None:
        """The path of the file, or None for a database."""
        ...

    @property
    def is_idle(self) -> bool:
        """Whether no background work is left."""
        ...

    def now_ms(self) -> int:
        """Return the current time, from the clock for its blocks."""
        ...

    def write(self, drafts: list[Draft], time_ms: int) -> Written | None:
        """Write lines that were flushed at `time_ms`, after those that wait for space, then show them.

        Return None if all are written, or else a future. Raises LogError.
        """
        ...

    def cut(self) -> Written | None:
        """End the current block, if it has lines, and return like `write`. Raises LogError."""
        ...

    async def read(self, after: int) -> list[Block]:
        """Return the next blocks after a line, or an empty list at the end. Raises OSError, LogError."""
        ...

    async def finish_reading(self) -> ReadEnd:
        """Return the end that was found by reading. The first call repairs the end. Raises LogError."""
        ...

    def begin_sync(self) -> Callable[[], None] | None:
        """Return a function that syncs all written lines and runs in a thread, or None if there is nothing to sync."""
        ...

    async def list_facts(self, facts: ListedFacts) -> None:
        """Publish the facts and the time of the last write for lists. Raises LogError."""
        ...

    def rest(self) -> None:
        """Close all files until the next write."""
        ...

    def forget(self) -> None:
        """Drop the lines that are not written, and close all files."""
        ...

    async def close(self) -> None:
        """Release the history, so that others can own it."""
        ...

    def delete(self) -> None:
        """Delete the stored history in the background."""
        ...


class ReadableHistory(ABC):
    """The part of a history that its readers need: the numbers, cursors and versions of its lines, and its tail.

    `History` also writes them. A node of a bridge reads with a `ReplicaHistory` what another node writes.
    """

    def __init__(
        self,
        header: Header,
        *,
        end: int,
        budget: TailBudget,
        run: bytes = b"",
        changes: Sequence[tuple[int, Version]] = (),
    ) -> None:
        """`changes` are the changes of the version up to `end`. The other arguments are those of `History`."""
        self.header = header
        self.end = end
        """The last line that may be shown."""
        self.versions = VersionRanges(changes)
        self.tail = Tail(budget, end)
        self._run = run
        self._lasting_epoch: str | None = None

    @property
    def next_end(self) -> int:
        """The number of the last line, including lines that are not written yet."""
        return self.end

    @property
    def epoch(self) -> str:
        """The current epoch for cursors."""
        if self._lasting_epoch is None:
            self._lasting_epoch = make_epoch(self.header, self._run)
        return self._lasting_epoch

    def has(self, cursor: Cursor) -> bool:
        """Return whether a cursor is valid in this history."""
        return cursor.epoch == self.epoch and 0 <= cursor.seq <= self.end

    def cursor(self, seq: int) -> str:
        """Return the cursor of a line of this history."""
        return f"{self.epoch}.{seq}"

    @property
    def version(self) -> Version:
        """The version of ACP of the next lines."""
        return self.versions.last

    def version_at(self, seq: int) -> Version:
        """Return the version of ACP of a line."""
        return self.versions.at(seq)

    def is_all_in(self, version: Version) -> bool:
        """Return whether all lines are in this version."""
        return self.versions.is_all_in(version)

    async def read(self, after: int, until: int, mark: Mark | None = None) -> HistoryPart:
        """Return messages that are no longer in memory, changed by `mark`. Raises OSError."""
        return await read_part(self.read_blocks, after, until, mark)

    @abstractmethod
    async def read_blocks(self, after: int) -> list[Block]:
        """Return the next blocks after a line, or an empty list at the end. Raises OSError, LogError."""


class History(ReadableHistory):
    """The conversation of one session. The module docstring describes its states and its promises."""

    def __init__(
        self,
        header: Header,
        backend: HistoryBackend,
        *,
        state: HistoryState = HistoryState.OPEN,
        end: int = 0,
        run: bytes = b"",
        budget: TailBudget | None = None,
        after_failure: AfterFailure = AfterFailure.REFUSE,
        failure: LogError | None = None,
    ) -> None:
        """Create the history. `end` is the number of its last line.

        `run` identifies the boot of the machine for which cursors are valid. `budget` limits the tail in memory.
        Without it there is no tail. `failure` is the reason why a stored history can only be read.
        """
        super().__init__(header, end=end, budget=budget or TailBudget(0, 0), run=run)
        self.end = -1 if state is HistoryState.NEW else end
        self.state = state
        self.failure = failure
        self.damage: Damage | None = None
        """The damage that was found by reading. It is reported once, because reading repairs it."""
        self.facts = ListedFacts()
        """The facts in its lines. An agent can set them."""
        self.is_listing_due = False
        """Whether a bridge has changed the facts for lists."""
        self.updated_ms = backend.now_ms()
        """The time of the last change of the conversation. Settings do not count."""
        self.reader: HistoryReader | None = None
        self.is_sync_due = False
        """Whether a sync is scheduled, which closes its file."""
        self._keeps_tail = budget is not None
        self.backend = backend
        self._after_failure = after_failure
        self._interim_epoch: str | None = None
        """The epoch while lines wait for space on the disk."""
        self._drafts = [Draft()]
        """Blocks that were not flushed. New lines are added to the last one."""
        self._last = end
        """The number of the last line that was passed to the backend."""
        self._is_conversation = False
        """Whether a part of the conversation was added since the last flush."""
        self._is_read_only = failure is not None
        backend.history = self

    @property
    def place(self) -> str:
        """The name of its file or database, for messages to the user."""
        return self.backend.place

    @property
    def path(self) -> Path | None:
        """The path of its file, or None in a database."""
        return self.backend.path

    @property
    def is_waiting(self) -> bool:
        """Whether lines wait for space on the disk."""
        return self.state is HistoryState.WAITING

    @property
    def is_lost(self) -> bool:
        """Whether it will never be written again."""
        return self.failure is not None and not self.is_waiting

    @property
    def is_complete(self) -> bool:
        """Whether all lines are written and nothing else is due, so that it can be closed."""
        is_open = self.state is HistoryState.OPEN and self.next_end == self.end
        return is_open and not self.is_sync_due and self.backend.is_idle

    @property
    def next_end(self) -> int:
        return self._last + sum(map(len, self._drafts))

    # Cursors and versions.

    @property
    def epoch(self) -> str:
        return super().epoch if self._interim_epoch is None or not self.is_waiting else self._interim_epoch

    def has(self, cursor: Cursor) -> bool:
        is_known = cursor.epoch in (super().epoch, self._interim_epoch)
        return is_known and 0 <= cursor.seq <= self.end and not self.is_lost

    def set_version(self, version: Version) -> None:
        """Set the version of ACP of the next lines. If it changes, add a record of settings."""
        if version != self.version:
            self.versions.changes.append((self.next_end + 1, version))
            self.record("config", encode_settings({}, version))

    # Writing.

    def append(self, lines: bytes, count: int | None = None, *, is_ordinary: bool = False) -> None:
        """Add whole lines of the wire in memory: the exact bytes that a client receives, and receives again on replay.

        A caller that knows the number of lines passes `count`, so that they are not counted and checked again.
        `is_ordinary` says that all viewers support these updates, so that they are not searched for others. Raises
        ValueError for anything else, and the errors of `record`.
        """
        self._check_open()
        while len(lines) > MAX_BLOCK_BYTES:
            end = lines.rfind(b"\n", 0, MAX_BLOCK_BYTES) + 1 or lines.find(b"\n") + 1
            if not 0 < end < len(lines):
                break
            self._draft_for(end).add_lines(lines[:end], is_ordinary=is_ordinary)
            lines, count = lines[end:], None
        self._draft_for(len(lines)).add_lines(lines, count, is_ordinary=is_ordinary)
        if self._keeps_tail and not self._is_conversation:  # only a bridge needs the time of the last change
            self._is_conversation = _CONVERSATION.search(lines) is not None

    def record(self, kind: str, data: bytes) -> None:
        """Add a record in memory, which is never sent to a client. `data` is one line of JSON.

        Raises ValueError for an unknown kind or several lines. Raises RuntimeError before the history was read and
        after it was closed. Raises LogError after a failure, if lines are refused then.
        """
        self._check_open()
        self._draft_for(0).add_record(kind, data)
        self._is_conversation = self._is_conversation or kind in _CONVERSATION_KINDS
        self._record_facts(kind, data)

    def flush(self) -> Written | None:
        """Write the added lines. They then survive the death of this process and may be shown.

        In a database this is true when the returned future is done. Its error is the reason if they are not committed.
        Raises LogError if lines are refused after a failure.
        """
        if self.state is HistoryState.FAILED or self.state is HistoryState.CLOSED:
            self._flush_failed()
            return None
        drafts: list[Draft] = []
        time_ms = self.backend.now_ms()
        if self._drafts[0]:
            drafts, self._drafts = self._drafts, [Draft()]
            self._last += sum(map(len, drafts))
            self._record_update(time_ms)
        return self.backend.write(drafts, time_ms)

    async def sync(self) -> None:
        """Write the added lines so that they survive a power cut, and update lists. Raises LogError."""
        self.flush()
        if self.state is not HistoryState.OPEN:
            return
        while (written := self.backend.cut()) is not None:
            await asyncio.shield(written)
        if (work := self.backend.begin_sync()) is not None:
            await finish_in_thread(work)
            if self.failure is not None:
                raise self.failure
        await self.backend.list_facts(self.facts)

    def begin_sync(self) -> Callable[[], None] | None:
        """Write the added lines. Return a function that syncs them and runs in a thread, or None if not needed."""
        self.is_sync_due = False
        self.flush()
        return None if self.failure is not None else self.backend.begin_sync()

    def recover(self) -> bool:
        """Write the lines that wait for space on the disk, if there is space now. Return whether all are written."""
        self.flush()
        return not self.is_waiting

    # Reading.

    def blocks(self) -> AsyncIterator[list[Block]]:
        """Yield all lines that were added before this call, in order, as lists of blocks.

        A stored history must be read to its end before lines can be added, because only then is its last line known.
        Raises LogError, for example if the added lines cannot be written.
        """
        if self.state is HistoryState.UNREAD or self.failure is not None:
            return self._read_all(None, None)
        self.flush()
        return self._read_all(self._last, self.backend.cut())

    async def read(self, after: int, until: int, mark: Mark | None = None) -> HistoryPart:
        """Return messages that are no longer in memory, changed by `mark`. Raises OSError.

        If the file was removed, they are left out. Viewers can still receive the rest of the history from memory.
        """
        try:
            return await super().read(after, until, mark)
        except FileNotFoundError as error:
            self.fail(LogFileError(self.place, error.errno or errno.ENOENT, "read"))
            return HistoryPart([], until)

    async def read_blocks(self, after: int) -> list[Block]:
        return await self.backend.read(after)

    # The end.

    def rest(self) -> None:
        """Close all files until the next write."""
        self.backend.rest()

    async def close(self) -> None:
        """Sync and release the history, so that others can open it. It is released even if this raises LogError."""
        if self.state is HistoryState.CLOSED:
            return
        try:
            if self.state is HistoryState.OPEN:
                await self.sync()
        finally:
            self.state = HistoryState.CLOSED
            await self.backend.close()

    def drop(self) -> None:
        """Close the history without writing the rest, and drop it from memory."""
        self.state = HistoryState.CLOSED
        self._forget_unshown()
        self.backend.forget()
        self.tail.drop()

    def delete(self) -> None:
        """Delete the stored history."""
        self.drop()
        self.backend.delete()

    # Calls from the backend.

    def created(self) -> None:
        """Change the state after the backend has created the place of a new history."""
        if self.state is HistoryState.NEW:
            self.state, self.end = HistoryState.OPEN, 0

    def show(self, drafts: Iterable[Draft], time_ms: int) -> None:
        """Make written lines visible to viewers."""
        for draft in drafts:
            for first, count, lines in draft.runs(self.end + 1) if self._keeps_tail else ():
                self.tail.extend(first, lines, time_ms, count=count, is_ordinary=draft.is_ordinary)
            self.end += len(draft)

    def wait(self, failure: LogError) -> None:
        """Keep lines in memory until there is space on the disk."""
        self.failure = failure
        if self.state is not HistoryState.WAITING:
            self.state = HistoryState.WAITING
            self._interim_epoch = self._interim_epoch or os.urandom(EPOCH_CHARACTERS // 2).hex()
            self.tail.hold()
            self._notify_reader()

    def written(self) -> None:
        """Change the state after all lines were written."""
        if self.state is HistoryState.WAITING:
            self.state, self.failure = HistoryState.OPEN, None
            self.tail.release()
            self._notify_reader()

    def fail(self, failure: LogError) -> None:
        """Stop writing. Only the first failure is kept."""
        if self.state in (HistoryState.FAILED, HistoryState.CLOSED):
            return
        if self.state is HistoryState.WAITING:
            self.tail.release()
        self.record_failure(failure)
        if self._after_failure is not AfterFailure.SHOW:
            self._forget_unshown()
        self.backend.forget()
        self._notify_reader()

    def raise_failure(self) -> None:
        """Raise the failure if lines are refused now."""
        if self._after_failure is AfterFailure.REFUSE and self.failure is not None:
            raise self.failure.with_traceback(None)

    def record_failure(self, failure: LogError) -> None:
        """Store a failure, in any thread. It takes effect with the next write."""
        self.failure = failure
        if self.state is not HistoryState.CLOSED:
            self.state = HistoryState.FAILED

    def renew(self, header: Header) -> None:
        """Replace the header after a repair. Older cursors are no longer valid."""
        self.header, self._lasting_epoch = header, None

    def _forget_unshown(self) -> None:
        self._drafts = [Draft()]
        self._last = max(self.end, 0)

    def _notify_reader(self) -> None:
        if self.reader is not None:
            self.reader.changed()

    def _check_open(self) -> None:
        if self.state is HistoryState.OPEN or self._after_failure is not AfterFailure.REFUSE:
            return
        if self.state is HistoryState.UNREAD:
            raise RuntimeError(f"session {self.header.id} must be read to its end before appending")
        if self.failure is not None:
            raise self.failure.with_traceback(None)
        raise RuntimeError(f"session {self.header.id} is closed")

    def _draft_for(self, size: int) -> Draft:
        """Return the block for the next lines. If the current block is full, start another one."""
        draft = self._drafts[-1]
        if draft and draft.size + size > MAX_BLOCK_BYTES:
            draft = Draft()
            self._drafts.append(draft)
        return draft

    def _flush_failed(self) -> None:
        drafts, self._drafts = self._drafts, [Draft()]
        if self.state is HistoryState.FAILED and self._after_failure is AfterFailure.SHOW and drafts[0]:
            self._last += sum(map(len, drafts))
            time_ms = self.backend.now_ms()
            self._record_update(time_ms)
            self.show(drafts, time_ms)
        elif not self._is_read_only:
            self.raise_failure()

    def _record_update(self, time_ms: int) -> None:
        if self._is_conversation:
            self.updated_ms, self._is_conversation = time_ms, False

    def _record_facts(self, kind: str, data: bytes) -> None:
        """Update the facts for lists from a record."""
        facts = self.facts
        end = LogEnd(facts.title, facts.message_count, is_archived=facts.is_archived)
        match kind:
            case "title":
                apply_title(end, data)
            case "turn":
                facts.is_prompted = True
                apply_turn_end(end, data, titled=True)
            case "client":
                facts.is_prompted = facts.is_prompted or is_kept(data)
                end.is_archived = is_archived(data)
            case _:
                return
        facts.title, facts.message_count, facts.is_archived = end.title, end.message_count, end.is_archived

    async def _read_all(self, until: int | None, written: Written | None) -> AsyncIterator[list[Block]]:
        if written is not None:
            await asyncio.shield(written)
        is_first = self.state is HistoryState.UNREAD
        reached = 0
        with failing(self.path or Path(self.place), "read"):
            reading = self._read_ahead(reached)
            while blocks := await asyncio.shield(reading):
                reached = blocks[-1].last
                if until is not None and reached >= until:
                    yield [block for block in blocks if block.last <= until]
                    return
                reading = self._read_ahead(reached)  # read the next blocks while the caller sends these
                if is_first:
                    for block in blocks:
                        self.versions.see(block)
                yield blocks
            await asyncio.shield(asyncio.ensure_future(self._finish_reading(is_first=is_first)))

    def _read_ahead(self, after: int) -> "asyncio.Task[list[Block]]":
        reading = asyncio.create_task(self.backend.read(after))
        reading.add_done_callback(see_error)
        return reading

    async def _finish_reading(self, *, is_first: bool) -> None:
        found = await self.backend.finish_reading()
        if self.state is HistoryState.UNREAD or (is_first and self.state is HistoryState.FAILED):
            self.damage = found.damage
            self._last = self.end = found.last
            self.tail.start = found.last
            self.facts = found.facts or self.facts
            self.state = HistoryState.OPEN if self.failure is None else HistoryState.FAILED
        elif found.damage is not None and not is_first and self.state is HistoryState.OPEN:
            self.damage = found.damage
            self.fail(LogFileError(self.place, errno.ESTALE, "continue"))


def see_error(done: "asyncio.Future[Any]") -> None:
    """Retrieve the error of a future that no caller may await, so that asyncio does not log it."""
    if not done.cancelled():
        done.exception()


async def read_part(
    read: Callable[[int], Awaitable[list[Block]]], after: int, until: int, mark: Mark | None = None
) -> HistoryPart:
    """Return the next messages between two lines, changed by `mark`. Raises OSError.

    `read` returns the next blocks after a line.
    """
    part = HistoryPart([], after)
    try:
        while part.reached < until and not part.runs:
            blocks = await read(part.reached)
            if not blocks:  # leave out unreadable blocks, because the rest is still useful
                part.reached = until
                break
            part.runs = [run for block in blocks for run in runs_of(block, after, until)]
            part.reached = max(after, min(blocks[-1].last, until))
    except DragomanError as error:
        raise OSError(errno.EIO, str(error)) from error
    if mark is not None:
        part.runs = await asyncio.to_thread(lambda: [mark(run) for run in part.runs])
    return part
