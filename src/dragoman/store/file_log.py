"""A session's log in a file.

An idle log holds nothing but its lock: the file is opened by the first write after it was opened or
synced, and closed by the next sync. Everything but `append` and `flush` leaves the event loop to others.

    UNREAD ──read to its end──▶ WRITABLE ──a write or a sync fails──▶ FAILED
       │                           │                                    │
       └────────── close ──────────┴──────────────▶ CLOSED ◀────────────┘

A log that was opened is UNREAD, because only its end tells where to go on; a new one is WRITABLE at once. A FAILED log
can be read, and takes nothing more. A log without a lock, on a disk that cannot be written, becomes FAILED when read.
"""

import asyncio
import errno
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from enum import Enum, auto
from pathlib import Path

import msgspec

from dragoman.cancellation import finish_in_thread
from dragoman.errors import LogFailed
from dragoman.store.disk import Disk, failing
from dragoman.store.lock import Lock
from dragoman.store.log_summary import read_log_end
from dragoman.store.naming import has_aside
from dragoman.store.record import KEYS, Header, Record, encode_write, now_ms
from dragoman.store.sealed_log import Damage, Reader, SealedWriter, mend_torn, set_aside


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
        self.updated_ms = now_ms()
        self.is_prompted = False
        self.listed: tuple[str | None, int, int] | None = None

    @property
    def now(self) -> tuple[str | None, int, int]:
        """The facts as they are to be listed."""
        return self.title, self.message_count, self.updated_ms


class FileLog:
    """One session's log, held by this process. See `Log`."""

    def __init__(
        self,
        disk: Disk,
        path: Path,
        header: Header,
        lock: Lock | None,
        *,
        start: int,
        written: tuple[int, int] | None = None,
        failure: LogFailed | None = None,
        on_sync: "Callable[[FileLog], Awaitable[None]]",
        on_close: "Callable[[FileLog], None]",
    ) -> None:
        """Hold a log whose records begin at `start`.

        `written` is the content of a new log, as its size and its last record; without it the log is one to be read.
        `failure` is why a log can only be read; it needs no lock then.
        """
        self.header = header
        self.damage: Damage | None = None
        self._facts = _ListedFacts()
        self._lock = lock
        self._start = start
        size, self._seq = written or (start, 0)
        self._writer = SealedWriter(disk, path, size=size)
        self._pending: list[tuple[bytes, Sequence[bytes]]] = []
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
    def updated_ms(self) -> int:
        """The time of the last write."""
        return self._facts.updated_ms

    @property
    def failure(self) -> LogFailed | None:
        return self._failure

    @property
    def records_span(self) -> tuple[int, int | None]:
        """The offsets of its records in the file, first and last; the last is None until it is known."""
        return self._start, None if self._state is _State.UNREAD else self._writer.size

    def flush_if_possible(self) -> None:
        """Write the appended records, unless the log has failed, which is known then."""
        if self._failure is None:
            self.flush()

    def append(self, kind: str, *payloads: bytes) -> None:
        if self._state is not _State.WRITABLE:
            self._refuse()
        if kind not in KEYS or b"\n" in b"".join(payloads):
            _refuse_payload(kind)
        self._facts.is_prompted = self._facts.is_prompted or kind == "turn"
        self._pending.append((KEYS[kind], payloads))

    def flush(self) -> None:
        if self._failure is not None and self._lock is not None:
            raise self._failure
        if not self._pending:
            return
        try:
            now = now_ms()
            self._writer.write(encode_write(self._pending, self._seq, now))
        except OSError as error:
            raise self._fail(error, "write to") from error
        self._seq += sum(len(payloads) for _, payloads in self._pending)
        self._facts.updated_ms = now
        self._pending.clear()

    async def sync(self) -> None:
        self.flush()
        fd = self._writer.detach()
        if fd >= 0:
            await finish_in_thread(lambda: self._sync(fd))
        facts = self._facts
        if facts.is_prompted and facts.now != facts.listed:
            now = facts.now
            await self._on_sync(self)
            facts.listed = now

    def records(self) -> AsyncIterator[list[Record]]:
        self.flush_if_possible()
        end = None if self._state is _State.UNREAD else self._writer.size
        return self._read(end)

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
        self._pending.clear()
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
        failure = LogFailed(str(self.path), error.errno or errno.EIO, action)
        self._failure = failure
        if self._state is not _State.CLOSED:
            self._state = _State.FAILED
        self._pending.clear()
        self._writer.close()
        return failure

    async def _read(self, end: int | None) -> AsyncIterator[list[Record]]:
        with failing(self.path, "read"):
            reader = await asyncio.to_thread(Reader, self._writer.disk, self.path, self._start, end)
            try:
                while records := await asyncio.to_thread(reader.read):
                    yield records
                if self._state is _State.UNREAD:
                    await asyncio.to_thread(self._go_on_from, reader)
                elif reader.damage is not None:
                    self.damage = reader.damage
                    self._fail(OSError(errno.ESTALE, ""), "go on with")
            finally:
                reader.close()

    def _go_on_from(self, reader: Reader) -> None:
        """Take over the result of a first reading, and mend the damage that it found."""
        tail = read_log_end(reader.fd, self._start, reader.trusted)
        facts = self._facts
        facts.title, facts.message_count = tail.title, tail.message_count
        facts.is_prompted = tail.prompted or has_aside(self.path)
        facts.updated_ms = tail.time or facts.updated_ms
        self._seq, self._writer.size = reader.seq, reader.trusted
        self.damage = reader.damage
        if self._state is _State.UNREAD:
            self._state = _State.WRITABLE if self._failure is None else _State.FAILED
        if reader.damage is not None and self._failure is None:
            self._mend(reader.damage, reader.unsealed)

    def _mend(self, damage: Damage, unsealed: int) -> None:
        try:
            if damage.torn:
                self._writer.size = mend_torn(self._writer.disk, self.path, self._writer.size, unsealed)
            else:
                aside = set_aside(self._writer.disk, self.path, self._writer.size)
                self.damage = msgspec.structs.replace(damage, kept_as=str(aside))
        except OSError as error:
            # The records can still be shown: only nothing can be added.
            self._fail(error, "mend")


def _refuse_payload(kind: str) -> None:
    if kind not in KEYS:
        raise ValueError(f"a record cannot be a {kind!r}, only one of {', '.join(sorted(KEYS))}")
    raise ValueError("the payload of a record must be JSON without a newline in it")
