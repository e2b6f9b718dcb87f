"""The file of one journal, in blocks as a session log has them: appended to, read in runs, synced.

Bytes that find no space on the disk wait in memory, in order, until there is space again.
"""

import os
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from dragoman.bridge.delivery.runs import MessageRun
from dragoman.store.block import Block, Draft
from dragoman.store.block_log import BlockReader, LogPosition, LogReader
from dragoman.store.disk import APPEND, Disk
from dragoman.store.sealed_log import SealedWriter

INDEX_BYTES = 256 * 1024
"""Between two remembered positions of a file: half of what is read at a time."""


class JournalPart(msgspec.Struct):
    """Runs that follow each other, with the record up to which nothing is left out."""

    runs: list[MessageRun]
    reached: int


class JournalFile:
    """Writes and reads one journal; it knows blocks and sequence numbers, and nothing of viewers."""

    def __init__(
        self,
        disk: Disk,
        path: Path,
        *,
        positions: list[LogPosition],
        end: LogPosition,
        open_reader: Callable[[], LogReader] | None = None,
    ) -> None:
        """Take a file that ends in `end`; `open_reader` is for one that is not in blocks, and only read."""
        self._disk = disk
        self._writer = SealedWriter(disk, path, size=end.offset)
        self._positions = positions
        self._end = end
        self._open_reader = open_reader
        self._unwritten: deque[tuple[bytes | bytearray, LogPosition]] = deque()
        """Blocks that wait to be written, each with its end."""
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

    @property
    def durable_end(self) -> int:
        """The last record that is in the file."""
        return self._end.last

    def put_header(self, block: bytes, checksum: int) -> None:
        """Add the header of a new journal, to be written."""
        self._put(block, LogPosition(len(block), 0, checksum))
        self._positions = [LogPosition(len(block), 0, checksum)]

    def put(self, draft: Draft, time_ms: int) -> None:
        """Add a block to be written."""
        before = self._unwritten[-1][1] if self._unwritten else self._end
        block, checksum = draft.seal(before.last + 1, time_ms, before.checksum)
        self._put(block, LogPosition(before.offset + len(block), before.last + len(draft), checksum))

    def write(self) -> None:
        """Write all that waits; raises OSError, and the file ends with a whole block then."""
        if self._unwritten and not self.size:
            self.path.unlink(missing_ok=True)
        while self._unwritten:
            block, end = self._unwritten[0]
            self._writer.write(block)
            self._note_written(len(block), end)

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

    def read(self, after: int, until: int, epoch: bytes | None) -> JournalPart:
        """Read the next messages after a record, some hundred kilobytes, for a thread; raises OSError.

        With an epoch, each message has its cursor.
        """
        start = self._positions[bisect_right(self._positions, after, key=lambda position: position.last) - 1]
        reader = self._open(start)
        part = JournalPart([], after)
        try:
            while part.reached < until and not part.runs:
                blocks = reader.read()
                if not blocks:
                    part.reached = until  # unreadable blocks are left out: the rest is worth more than the gap
                    break
                part.runs = [run for block in blocks for run in runs_of(block, after, until, epoch)]
                part.reached = max(after, min(blocks[-1].last, until))
        finally:
            reader.close()
        return part

    def _open(self, start: LogPosition) -> LogReader:
        if self._open_reader is not None:
            return self._open_reader()
        return BlockReader(self._disk, self.path, start, self.size)

    def _put(self, block: bytes | bytearray, end: LogPosition) -> None:
        self._unwritten.append((block, end))
        self._unwritten_bytes += len(block)

    def _note_written(self, size: int, end: LogPosition) -> None:
        if self._end.offset - self._positions[-1].offset >= INDEX_BYTES:
            self._positions.append(self._end)
        self._unwritten.popleft()
        self._unwritten_bytes -= size
        self._unsynced = True
        self._end = end
        if self._next_path is not None and not self._unwritten:
            self.path.replace(self._next_path)
            self.path, self._next_path = self._next_path, None


def runs_of(block: Block, after: int, until: int, epoch: bytes | None) -> Iterator[MessageRun]:
    """Return the messages of a block between two records; with an epoch, each with its cursor."""
    if block.last <= after or block.first > until:
        return
    for first, count, lines in block.runs():
        run = MessageRun(lines, first, block.time, count=count)
        if run.last > after and run.first <= until:
            part = run.part(after, until)
            yield part if epoch is None else part.with_cursors(epoch)
