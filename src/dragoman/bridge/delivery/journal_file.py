"""The file of one journal, in the format of the session log: appended to, read in blocks, synced.

Bytes that find no space on the disk wait in memory, in order, until there is space again.
"""

import os
from bisect import bisect_right
from collections import deque
from contextlib import suppress
from pathlib import Path

import msgspec

from dragoman.bridge.delivery.tail import StreamEvent
from dragoman.bridge.envelope import add_cursor
from dragoman.store.disk import APPEND, Disk
from dragoman.store.sealed_log import Reader, SealedWriter

INDEX_BYTES = 256 * 1024
"""Between two remembered offsets of a file: half of a block."""


class RecordOffset(msgspec.Struct, frozen=True, gc=False):
    """The offset in the file of the records after a sequence number."""

    seq: int
    offset: int


class JournalBlock(msgspec.Struct):
    """Messages that follow each other, with the record up to which nothing is left out."""

    seqs: list[int]
    events: list[StreamEvent]
    reached: int


class JournalFile:
    """Writes and reads one journal; it knows bytes and sequence numbers, and nothing of viewers."""

    def __init__(self, disk: Disk, path: Path, *, offsets: list[RecordOffset], end: int, size: int) -> None:
        self.durable_end = end
        """The last record that is in the file."""
        self._disk = disk
        self._writer = SealedWriter(disk, path, size=size)
        self._offsets = offsets
        self._unwritten: deque[tuple[bytes | bytearray, int]] = deque()
        """Bytes that wait to be written, each with its last record."""
        self._unwritten_bytes = 0
        self._next_path: Path | None = None
        self._unsynced = True
        self._is_named = False

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self._writer.path

    @path.setter
    def path(self, path: Path) -> None:
        self._writer.path = path

    @property
    def size(self) -> int:
        """Bytes that are written."""
        return self._writer.size

    @property
    def is_waiting(self) -> bool:
        """Whether bytes wait for space on the disk."""
        return bool(self._unwritten)

    @property
    def unwritten_bytes(self) -> int:
        """Bytes that wait to be written."""
        return self._unwritten_bytes

    def put(self, data: bytes | bytearray, last: int) -> None:
        """Add bytes to be written, whose last record is this."""
        self._unwritten.append((data, last))
        self._unwritten_bytes += len(data)

    def write(self) -> None:
        """Write all that waits; raises OSError, and the file ends with a whole record then."""
        if self._unwritten and not self.size:
            self.path.unlink(missing_ok=True)
        while self._unwritten:
            data, last = self._unwritten[0]
            before = self.size
            self._writer.write(data)
            self._note_written(before, len(data), last)

    def forget_unwritten(self) -> bool:
        """Drop the bytes that wait to be written; tells whether there were any."""
        had_any = bool(self._unwritten)
        self._unwritten.clear()
        self._unwritten_bytes = 0
        return had_any

    def close(self) -> None:
        """Close the file until the next write."""
        self._writer.close()

    def rename_later(self, path: Path) -> None:
        """Take this name once all is written: the file that has it now is worth more than an empty one."""
        self._next_path = path

    def take_unsynced(self) -> bool:
        """Tell whether anything was written since the last call."""
        unsynced, self._unsynced = self._unsynced, False
        return unsynced

    def sync(self) -> None:
        """Bring the written bytes to the disk, for a thread; raises OSError."""
        with suppress(FileNotFoundError):  # it was deleted meanwhile; the next write would say so
            fd = self._disk.open(self.path, APPEND)
            try:
                self._disk.sync(fd)
            finally:
                os.close(fd)
            if not self._is_named:
                self._disk.sync_directory(self.path.parent)
                self._is_named = True

    def read_block(self, after: int, until: int, epoch: bytes | None) -> JournalBlock:
        """Read the next messages after a record, some hundred kilobytes, for a thread; raises OSError.

        With an epoch, each message has its cursor.
        """
        start = self._offsets[bisect_right(self._offsets, after, key=lambda place: place.seq) - 1]
        reader = Reader(self._disk, self.path, start.offset, self.size, last_seq=start.seq)
        block = JournalBlock([], [], after)
        try:
            while block.reached < until and not block.events:
                records = reader.read()
                if not records:
                    block.reached = until  # unreadable records are left out: the rest is worth more than the gap
                    break
                for record in records:
                    if record.kind == "message" and after < record.seq <= until:
                        line = bytes(record.data)
                        if epoch is not None:
                            line = add_cursor(line, b"%b.%d" % (epoch, record.seq), record.time)
                        block.seqs.append(record.seq)
                        block.events.append(StreamEvent(line))
                block.reached = min(records[-1].seq, until)
        finally:
            reader.close()
        return block

    def _note_written(self, offset: int, size: int, last: int) -> None:
        if offset - self._offsets[-1].offset >= INDEX_BYTES:
            self._offsets.append(RecordOffset(self.durable_end, offset))
        self._unwritten.popleft()
        self._unwritten_bytes -= size
        self._unsynced = True
        self.durable_end = last
        if self._next_path is not None and not self._unwritten:
            self.path.replace(self._next_path)
            self.path, self._next_path = self._next_path, None
