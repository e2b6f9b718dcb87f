"""The journal of a session: every notification as it came, numbered, in a file in the format of the session log.

What the agent says of a session is added line by line, and written once for each tick of the event loop; only what was
written is shown to viewers. While the disk is full it goes on in memory, and all of that is written once there is space
again: until then cursors have an epoch of their own, for they would mean something else if the bridge were to end. A
journal that cannot be written for another reason goes on in memory alone: whoever is at its end notices nothing, but no
cursor into it can be promised to hold.
"""

import errno
import os
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from dragoman.bridge.hub.epoch import make_epoch, make_interim_epoch
from dragoman.bridge.hub.tail import Tail, TailBudget
from dragoman.errors import LogFailed
from dragoman.store.disk import APPEND, CREATE, Disk, write_all
from dragoman.store.record import KEYS, Header, encode_header, encode_write, now_ms
from dragoman.store.thread import finish

INDEX_BYTES = 256 * 1024
"""Between two places of a file that are remembered: half of what is read at a time."""

MAX_UNWRITTEN_BYTES = 64 * 1024 * 1024
"""What a journal holds back for a full disk: the rest of a long turn, for no other begins meanwhile."""

_MESSAGE = KEYS["message"]
_FULL = (errno.ENOSPC, errno.EDQUOT)


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
        self._epoch = make_epoch(header)
        self._interim_epoch: str | None = None
        self.end = end
        """The last record that viewers may see."""
        self.size = size
        """What is written, in bytes."""
        self.updated_ms = now_ms()
        self.failure: LogFailed | None = None
        self.durable_end = end
        """The last record that is in the file."""
        self.tail = Tail(budget, self._epoch.encode(), end)
        self.on_failure: Callable[[], None] | None = None
        """Is called when it fails, and when it has recovered."""
        self.config: bytes | None = None
        """The last settings that were noted in it by an earlier run."""
        self.prompts = 0
        """The user's messages that an earlier run left in it."""
        self._disk = disk
        self._places = places
        self._fd = -1
        self._unwritten: deque[tuple[bytes | bytearray, int]] = deque()
        """What waits to be written: the bytes, and their last record."""
        self._unwritten_bytes = 0
        self._path_to_be: Path | None = None
        self._unsynced = True
        self._is_named = False
        self._lines: list[bytes] = []
        self._groups: list[tuple[bytes, list[bytes]]] = []
        self._added = 0

    @classmethod
    def create(cls, disk: Disk, path: Path, header: Header, budget: TailBudget) -> "Journal":
        """Begin a journal; one that cannot even begin goes on in memory."""
        line = encode_header(header)
        journal = cls(disk, path, header, budget, places=[Place(0, len(line))], end=0, size=0)
        journal._put(line, 0)
        journal._write("create")
        journal.close()
        return journal

    @property
    def epoch(self) -> str:
        """What cursors into it begin with now."""
        return self._epoch if self._interim_epoch is None or not self.is_waiting else self._interim_epoch

    @property
    def is_waiting(self) -> bool:
        """Whether part of it waits for space on the disk."""
        return bool(self._unwritten)

    @property
    def is_lost(self) -> bool:
        """Whether it will never be written again."""
        return self.failure is not None and not self.is_waiting

    def knows(self, epoch: str) -> bool:
        """Tell whether a cursor that begins with this is one into it."""
        return epoch in (self._epoch, self._interim_epoch)

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
        if not self.is_lost:
            last = self.end + added
            self._put(encode_write(groups, self.end, self.updated_ms), last)
            self._write("write to")
        seq = self.end
        for key, payloads in groups:
            if key is _MESSAGE:
                self.tail.extend(seq + 1, payloads, self.updated_ms)
            seq += len(payloads)
        self.end += added

    def recover(self) -> bool:
        """Write what waits for space on the disk, if there is any now; tells whether nothing waits any more."""
        if self._unwritten:
            self._write("write to")
        return not self._unwritten

    async def sync(self) -> None:
        """See to it that what was added survives a power cut."""
        work = self.begin_sync()
        if work is not None:
            await finish(work)

    def begin_sync(self) -> Callable[[], None] | None:
        """Write what was added, and give what a thread has to do so that it survives a power cut, if anything."""
        self.flush()
        self.recover()
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
        self._forget_unwritten()
        self.failure = LogFailed(str(self.path), error.errno or errno.EIO, action)
        self.close()
        self._tell()

    def close(self) -> None:
        """Let go of the file."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def move(self, path: Path) -> None:
        """Give the file another name, in place of whatever has it."""
        if self.is_waiting:
            self._path_to_be = path  # what has that name is worth more than a file with nothing in it
            return
        if path.exists():
            self._sync()  # what has that name is lost with the rename, and this must not be lost to a power cut then
        if not self.is_lost:
            try:
                self.path.replace(path)
            except OSError as error:
                self.fail(error, "rename")
        self.path = path

    def let_go(self) -> None:
        """Hold nothing of it any more, neither in memory nor open."""
        self._forget_unwritten()
        self.close()
        self.tail.drop()

    def delete(self) -> None:
        """Remove the file."""
        self.let_go()
        with suppress(OSError):
            self.path.unlink()

    def _close_group(self) -> None:
        if self._lines:
            self._groups.append((_MESSAGE, self._lines))
            self._lines = []

    def _put(self, data: bytes | bytearray, last: int) -> None:
        self._unwritten.append((data, last))
        self._unwritten_bytes += len(data)

    def _write(self, action: str) -> None:
        try:
            if self._fd < 0:
                self._fd = self._open()
            while self._unwritten:
                data, last = self._unwritten[0]
                write_all(self._disk, self._fd, data)
                self._note_written(len(data), last)
        except OSError as error:
            if self._fd >= 0:
                with suppress(OSError):
                    self._disk.truncate(self._fd, self.size)
            if error.errno in _FULL and self._unwritten_bytes <= MAX_UNWRITTEN_BYTES:
                self._wait(error, action)
            else:
                self.fail(error, action)
            return
        if self.failure is not None:
            self.failure = None
            self._let_tail_go()
            self._tell()

    def _note_written(self, size: int, last: int) -> None:
        if self.size - self._places[-1].offset >= INDEX_BYTES:
            self._places.append(Place(self.durable_end, self.size))
        self._unwritten.popleft()
        self._unwritten_bytes -= size
        self.size += size
        self._unsynced = True
        self.durable_end = last
        if self._path_to_be is not None and not self._unwritten:
            self.path.replace(self._path_to_be)
            self.path, self._path_to_be = self._path_to_be, None

    def _wait(self, error: OSError, action: str) -> None:
        """Hold in memory what finds no space."""
        self.close()
        was_waiting = self.failure is not None
        self.failure = LogFailed(str(self.path), error.errno or errno.ENOSPC, action)
        if not was_waiting:
            self._interim_epoch = self._interim_epoch or make_interim_epoch()
            self.tail.hold(self._interim_epoch.encode())
            self._tell()

    def _forget_unwritten(self) -> None:
        if self._unwritten:
            self._unwritten.clear()
            self._unwritten_bytes = 0
            self._let_tail_go()

    def _let_tail_go(self) -> None:
        self.tail.let_go(self._epoch.encode())

    def _tell(self) -> None:
        if self.on_failure is not None:
            self.on_failure()

    def _open(self) -> int:
        if not self.size:
            with suppress(FileNotFoundError):
                self.path.unlink()
            return self._disk.open(self.path, CREATE)
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
