"""A session's log in a file.

An idle log holds nothing but its lock: the file is opened by the first write after it was opened or
synced, and closed by the next sync. Everything but `append` and `flush` leaves the event loop to others.

    UNREAD ──read to its end──▶ WRITABLE ──a write or a sync fails──▶ FAILED
       │                           │                                    │
       └────────── close ──────────┴──────────────▶ CLOSED ◀────────────┘

A log that was opened is UNREAD, because only its end tells where to go on; a new one is WRITABLE at once. A FAILED log
can be read, and takes nothing more. A log without a lock, on a disk that cannot be written, becomes FAILED when read.

Each flush is one write of whole lines, and a block is the lines of several: a model that streams slowly gives each
update a write of its own, and a seal behind each would make the log larger by a half and its replay slower by far. A
block is sealed when it is large, when it is a second old and something is added, at each sync, and before anybody
reads the log. The process may die before that. Then the log ends in whole lines without a seal, which are kept and
sealed by the next to open it, as after a write that was cut short.
"""

import asyncio
import errno
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from enum import Enum, auto
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from dragoman.cancellation import finish_in_thread
from dragoman.errors import LogFailed, LogFileFailed
from dragoman.store.block import VERSION, Block, Draft, Header, now_ms
from dragoman.store.block_log import BlockReader, LogHead, LogPosition, LogReader, mend_torn
from dragoman.store.disk import Disk, failing
from dragoman.store.lock import Lock
from dragoman.store.log_end import is_kept
from dragoman.store.naming import has_aside
from dragoman.store.sealed_log import Damage, SealedWriter, set_aside
from dragoman.store.version1 import Version1Reader, convert

_Result = TypeVar("_Result")

SEALED_BYTES = 64 * 1024
"""Lines that get a seal at once: a seal is a few hundred times smaller."""

SEALED_MS = 1000
"""The age of a block at which its next lines are its last: the time in a seal is that of its lines, to a second."""


class _State(Enum):
    UNREAD = auto()
    WRITABLE = auto()
    FAILED = auto()
    CLOSED = auto()


class _ListedFacts:
    """The facts about a session that lists show, and those that the index has."""

    def __init__(self) -> None:
        self.title: str | None = None
        self.message_count = 0
        self.is_archived = False
        self.updated_ms = now_ms()
        self.is_prompted = False
        self.listed: tuple[str | None, int, bool, int] | None = None

    @property
    def now(self) -> tuple[str | None, int, bool, int]:
        """The facts as they are to be listed."""
        return self.title, self.message_count, self.is_archived, self.updated_ms


class FileLog:
    """One session's log, held by this process. See `Log`."""

    def __init__(
        self,
        disk: Disk,
        path: Path,
        head: LogHead,
        lock: Lock | None,
        *,
        written: LogPosition | None = None,
        failure: LogFailed | None = None,
        on_sync: "Callable[[FileLog], Awaitable[None]]",
        on_close: "Callable[[FileLog], None]",
    ) -> None:
        """Hold a log.

        `written` is the end of a new log; without it the log is one to be read.
        `failure` is why a log can only be read; it needs no lock then.
        """
        self.header: Header = head.header
        self.damage: Damage | None = None
        self._facts = _ListedFacts()
        self._lock = lock
        self._head = head
        self._end = written or head.start
        self._writer = SealedWriter(disk, path, size=self._end.offset)
        self._draft = Draft()
        """The block that has no seal yet."""
        self._state = _State.UNREAD if written is None else _State.WRITABLE
        self._failure = failure
        self._on_sync = on_sync
        self._on_close = on_close

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self._writer.path

    @property
    def title(self) -> str | None:
        return self._facts.title

    @title.setter
    def title(self, title: str | None) -> None:
        self._facts.title = title

    @property
    def message_count(self) -> int:
        return self._facts.message_count

    @message_count.setter
    def message_count(self, count: int) -> None:
        self._facts.message_count = count

    @property
    def is_archived(self) -> bool:
        return self._facts.is_archived

    @is_archived.setter
    def is_archived(self, is_archived: bool) -> None:
        self._facts.is_archived = is_archived

    @property
    def updated_ms(self) -> int:
        """The time of the last write."""
        return self._facts.updated_ms

    @property
    def failure(self) -> LogFailed | None:
        return self._failure

    @property
    def end_offset(self) -> int | None:
        """The offset of the end of its blocks in the file; None until it is known."""
        return None if self._state is _State.UNREAD else self._writer.size

    def seal_if_possible(self) -> None:
        """Write and seal the appended lines, unless the log has failed, which is known then."""
        if self._failure is None:
            self._seal()

    def append(self, lines: bytes, count: int | None = None) -> None:
        if self._state is not _State.WRITABLE:
            self._refuse()
        self._draft.add_lines(lines, count)

    def record(self, kind: str, data: bytes) -> None:
        if self._state is not _State.WRITABLE:
            self._refuse()
        self._draft.add_record(kind, data)
        if kind == "turn" or (kind == "client" and is_kept(data)):
            self._facts.is_prompted = True

    def flush(self) -> None:
        if self._failure is not None and self._lock is not None:
            raise self._failure
        draft = self._draft
        if draft.is_taken:
            return
        now = now_ms()
        if draft.size >= SEALED_BYTES or (draft.begun_ms is not None and now - draft.begun_ms >= SEALED_MS):
            self._seal()
        else:
            self._write(draft.take(now, self._end.checksum))
            self._facts.updated_ms = now

    async def sync(self) -> None:
        self._seal()
        fd = self._writer.detach()
        if fd >= 0:
            await finish_in_thread(lambda: self._sync(fd))
        facts = self._facts
        if facts.is_prompted and facts.now != facts.listed:
            now = facts.now
            await self._on_sync(self)
            facts.listed = now

    def blocks(self) -> AsyncIterator[list[Block]]:
        self.seal_if_possible()
        return self._read(self.end_offset)

    async def close(self) -> None:
        if self._state is _State.CLOSED:
            return
        was, self._state = self._state, _State.CLOSED
        try:
            if was is _State.WRITABLE:
                await self.sync()
        finally:
            try:
                if self._lock is not None:  # to remove its file can take as long as a sync
                    await finish_in_thread(self._lock.release)
            finally:
                self._let_go()

    def abandon(self) -> None:
        """Close without writing the rest."""
        self._state = _State.CLOSED
        self._draft = Draft()
        self._let_go()

    def _let_go(self) -> None:
        self._writer.close()
        if self._lock is not None:
            self._lock.release()
        self._on_close(self)

    def _refuse(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._state is _State.UNREAD:
            raise RuntimeError(f"session {self.header.id} must be read to its end before anything is appended")
        raise RuntimeError(f"session {self.header.id} is closed")

    def _seal(self) -> None:
        """Write the appended lines, and the seal of all since the last one."""
        if self._failure is not None and self._lock is not None:
            raise self._failure
        draft = self._draft
        if not draft:
            return
        now = now_ms()
        block, checksum = draft.seal(self._end.last + 1, now, self._end.checksum)
        self._write(block)
        self._end = LogPosition(self._writer.size, self._end.last + len(draft), checksum)
        self._facts.updated_ms = now
        self._draft = Draft()

    def _write(self, data: bytes | bytearray) -> None:
        try:
            self._writer.write(data)
        except OSError as error:
            raise self._fail(error, "write to") from error

    def _sync(self, fd: int) -> None:
        """Sync and close, in a thread; the thread itself notes a failure, because the caller may be gone by then."""
        try:
            self._writer.disk.sync(fd)
            if os.fstat(fd).st_nlink == 0:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        except OSError as error:
            raise self._fail(error, "sync") from error
        finally:
            os.close(fd)

    def _fail(self, error: OSError, action: str) -> LogFailed:
        failure = LogFileFailed(str(self.path), error.errno or errno.EIO, action)
        self._failure = failure
        if self._state is not _State.CLOSED:
            self._state = _State.FAILED
        self._draft = Draft()
        self._writer.close()
        return failure

    async def _read(self, end: int | None) -> AsyncIterator[list[Block]]:
        with failing(self.path, "read"):
            disk, path, head = self._writer.disk, self.path, self._head
            reader = await finish_in_thread(
                lambda: open_reader(disk, path, head, end), undo=lambda opened: opened.close()
            )
            reading = _in_thread(reader.read)
            try:
                while blocks := await asyncio.shield(reading):
                    reading = _in_thread(reader.read)  # ahead, while these are sent
                    yield blocks
                if self._state is _State.UNREAD:
                    reading = _in_thread(lambda: self._go_on_from(reader))
                    await asyncio.shield(reading)
                elif reader.damage is not None and self._state is _State.WRITABLE:
                    self.damage = reader.damage
                    self._fail(OSError(errno.ESTALE, ""), "go on with")
            finally:
                _close_after(reading, reader)

    def _go_on_from(self, reader: LogReader) -> None:
        """Take over the result of a first reading, mend the damage that it found, and convert a log of version 1."""
        tail = reader.read_end()
        facts = self._facts
        facts.title, facts.message_count, facts.is_archived = tail.title, tail.message_count, tail.is_archived
        facts.is_prompted = tail.prompted or has_aside(self.path)
        facts.updated_ms = tail.time or facts.updated_ms
        self._end = reader.position
        self._writer.size = self._end.offset + (0 if reader.unsealed is None else reader.unsealed.end)
        self.damage = reader.damage
        if self._state is _State.UNREAD:
            self._state = _State.WRITABLE if self._failure is None else _State.FAILED
        if self._failure is None:
            self._mend(reader)

    def _mend(self, reader: LogReader) -> None:
        damage, disk, aside = reader.damage, self._writer.disk, None
        try:
            if self._head.version != VERSION:
                self._head, self._end, aside = convert(disk, self.path, self._head, damage)
            elif reader.unsealed is not None or (damage is not None and damage.torn):
                self._end = mend_torn(disk, self.path, self._end, reader.unsealed)
            elif damage is not None:
                aside = set_aside(disk, self.path, self._end.offset)
            self._writer.size = self._end.offset
        except OSError as error:
            # The lines can still be shown: only nothing can be added.
            self._fail(error, "mend")
        if damage is not None and aside is not None:
            self.damage = msgspec.structs.replace(damage, kept_as=str(aside))


def _in_thread(work: Callable[[], _Result]) -> "asyncio.Task[_Result]":
    return asyncio.create_task(asyncio.to_thread(work))


def _close_after(reading: "asyncio.Task[Any]", reader: LogReader) -> None:
    """Close a reader when its thread no longer uses it: whoever gave up reading does not wait for that."""

    def close(done: "asyncio.Task[Any]") -> None:
        if not done.cancelled():
            done.exception()  # seen: nobody waits for it any more
        reader.close()

    close(reading) if reading.done() else reading.add_done_callback(close)


def open_reader(disk: Disk, path: Path, head: LogHead, end: int | None) -> LogReader:
    """Open a log to be read, up to an offset or to its end."""
    if head.version != VERSION:
        return Version1Reader(disk, path, head, end)
    return BlockReader(disk, path, head.start, end)
