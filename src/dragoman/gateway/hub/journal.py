"""The journal of a session: every notification as it came, numbered, in a file in the format of the session log.

What the agent says of a session is added line by line, and written once for each tick of the event loop; only what was
written is shown to viewers. A journal that cannot be written any more goes on in memory alone: whoever is at its end
notices nothing, but no cursor into it can be promised to hold.
"""

import errno
import hashlib
import os
import time
from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from dragoman.errors import LogFailed
from dragoman.gateway.hub.tail import Tail, TailBudget
from dragoman.store.disk import APPEND, CREATE, Disk, write_all
from dragoman.store.record import KEYS, Header, encode_header, encode_write
from dragoman.store.thread import finish

INDEX_BYTES = 256 * 1024
"""Between two places of a file that are remembered: half of what is read at a time."""

_MESSAGE = KEYS["message"]


class Place:
    """Where in the file the records after a sequence number begin."""

    __slots__ = ("offset", "seq")

    def __init__(self, seq: int, offset: int) -> None:
        self.seq = seq
        self.offset = offset


class Journal:
    """One session's journal, open for more."""

    def __init__(
        self, disk: Disk, path: Path, header: Header, budget: TailBudget, *, places: list[Place], end: int, size: int
    ) -> None:
        self.path = path
        self.header = header
        self.epoch = make_epoch(header)
        self.end = end
        """The last record that viewers may see."""
        self.size = size
        """What is written, in bytes."""
        self.updated_ms = now_ms()
        self.failure: LogFailed | None = None
        self.durable_end = end
        """The last record that is in the file."""
        self.tail = Tail(budget, self.epoch.encode(), end)
        self.on_failure: Callable[[LogFailed], None] | None = None
        self._disk = disk
        self._places = places
        self._fd = -1
        self._unsynced = True
        self._is_named = False
        self._lines: list[bytes] = []
        self._groups: list[tuple[bytes, list[bytes]]] = []
        self._added = 0

    @classmethod
    def create(cls, disk: Disk, path: Path, header: Header, budget: TailBudget) -> "Journal":
        """Begin a journal; one that cannot even begin goes on in memory."""
        line = encode_header(header)
        journal = cls(disk, path, header, budget, places=[Place(0, len(line))], end=0, size=len(line))
        try:
            with suppress(FileNotFoundError):
                path.unlink()
            fd = disk.open(path, CREATE)
            try:
                write_all(disk, fd, line)
            finally:
                os.close(fd)
        except OSError as error:
            journal.fail(error, "create")
        return journal

    @property
    def next_end(self) -> int:
        """The last record, written or about to be."""
        return self.end + self._added

    def add(self, line: bytes) -> None:
        """Take a notification, which is one JSON object without a newline."""
        self._lines.append(line)
        self._added += 1

    def note(self, kind: str, payload: bytes) -> None:
        """Take a record that viewers do not get."""
        self._close_group()
        self._groups.append((KEYS[kind], [payload]))
        self._added += 1

    def flush(self) -> None:
        """Write what was added, and show it to viewers."""
        if not self._added:
            return
        self._close_group()
        groups, self._groups, added, self._added = self._groups, [], self._added, 0
        self.updated_ms = now_ms()
        if self.failure is None:
            self._write(groups)
        seq = self.end
        for key, payloads in groups:
            if key is _MESSAGE:
                self.tail.extend(seq + 1, payloads, self.updated_ms)
            seq += len(payloads)
        self.end += added

    async def sync(self) -> None:
        """See to it that what was added survives a power cut."""
        work = self.begin_sync()
        if work is not None:
            await finish(work)

    def begin_sync(self) -> Callable[[], None] | None:
        """Write what was added, and give what a thread has to do so that it survives a power cut, if anything."""
        self.flush()
        if self.failure is not None or not self._unsynced:
            return None
        self._unsynced = False
        self.close()
        return self._sync

    def place_before(self, seq: int) -> Place:
        """Give the last remembered place that is not after a record."""
        return self._places[bisect_right(self._places, seq, key=lambda place: place.seq) - 1]

    def fail(self, error: OSError, action: str) -> None:
        """Go on in memory alone."""
        self.failure = LogFailed(str(self.path), error.errno or errno.EIO, action)
        self.close()
        if self.on_failure is not None:
            self.on_failure(self.failure)

    def close(self) -> None:
        """Let go of the file."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def move(self, path: Path) -> None:
        """Give the file another name, in place of whatever has it."""
        if self.failure is None:
            try:
                self.path.replace(path)
            except OSError as error:
                self.fail(error, "rename")
        self.path = path

    def delete(self) -> None:
        """Remove the file."""
        self.close()
        self.tail.drop()
        with suppress(OSError):
            self.path.unlink()

    def _close_group(self) -> None:
        if self._lines:
            self._groups.append((_MESSAGE, self._lines))
            self._lines = []

    def _write(self, groups: list[tuple[bytes, list[bytes]]]) -> None:
        try:
            data = encode_write(groups, self.end, self.updated_ms)
            if self._fd < 0:
                self._fd = self._open()
            write_all(self._disk, self._fd, data)
        except OSError as error:
            if self._fd >= 0:
                with suppress(OSError):
                    self._disk.truncate(self._fd, self.size)
            self.fail(error, "write to")
            return
        if self.size - self._places[-1].offset >= INDEX_BYTES:
            self._places.append(Place(self.end, self.size))
        self.size += len(data)
        self._unsynced = True
        self.durable_end = self.end + sum(len(payloads) for _, payloads in groups)

    def _open(self) -> int:
        fd = self._disk.open(self.path, APPEND)
        if os.fstat(fd).st_size != self.size:
            os.close(fd)
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return fd

    def _sync(self) -> None:
        """Sync, in a thread; what it finds wrong counts from the next write on."""
        try:
            fd = self._disk.open(self.path, APPEND)
            try:
                self._disk.sync(fd)
            finally:
                os.close(fd)
            if not self._is_named:
                self._disk.sync_directory(self.path.parent)
                self._is_named = True
        except FileNotFoundError:
            return  # it was deleted meanwhile; the next write would say so
        except OSError as error:
            self.failure = LogFailed(str(self.path), error.errno or errno.EIO, "sync")


def make_header(session_id: str, cwd: str, directories: list[str]) -> Header:
    """Say whose journal this is; the time tells it from others of the same session."""
    created = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return Header(session_id, cwd, directories, created)


def make_epoch(header: Header) -> str:
    """Name a journal, so that a cursor into one does not fit another."""
    return hashlib.sha256(encode_header(header)).hexdigest()[:12]


def now_ms() -> int:
    """Give the time as records have it."""
    return time.time_ns() // 1_000_000
