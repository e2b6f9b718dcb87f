"""Log files made of blocks: writing them, reading their sound part, repairing a torn end, and copying them for a fork.

`block.py` describes the format. All writes to such files go through `SealedWriter`.
"""

import asyncio
import errno
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from dragoman.errors import SessionUnreadableError
from dragoman.store.block import (
    Block,
    Header,
    Rename,
    cut_before,
    decode_header,
    encode_header,
    find_blocks,
    now_ms,
    read_torn,
    seal,
)
from dragoman.store.disk import APPEND, CREATE, READ, WRITE, Disk, write_all
from dragoman.store.log_end import LogEnd, read_log_end

READ_BYTES = 1 << 21
"""Bytes per read. The cost of switching to a thread is small for this size, and the bytes stay in the CPU's cache."""

BEGIN_SYNC_BYTES = 1 << 20
"""After this many bytes the disk starts writing, so the sync at the end of a long turn has little left to do."""

MAX_HEADER_BYTES = 1 << 20
"""Enough for thousands of additional directories. A longer first line is not a header."""

_FIRST_LOOK_BYTES = 4096
_NOT_LINES = (ValueError, msgspec.DecodeError, RecursionError)


class Damage(msgspec.Struct, frozen=True):
    """The part of a log that was lost: its torn end, or everything after a damaged place."""

    torn: bool
    """True if only the last write was incomplete, as after a crash. False for damage inside the log."""
    after: int
    """The number of the last line that was kept, or 0 if there is none."""
    at_byte: int
    """The offset of the part that was not kept."""
    lost_bytes: int
    kept_as: str | None = None
    """The file with the damaged original, if it was set aside."""

    def __str__(self) -> str:
        kept = f"everything up to line {self.after} is kept" if self.after else "nothing before it was recorded"
        if self.torn:
            dropped = f" and {self.lost_bytes} bytes of an unfinished line were dropped" if self.lost_bytes else ""
            return f"the last write to this session was cut short, probably by a crash{dropped}; {kept}"
        original = f"; the damaged original is {self.kept_as}" if self.kept_as else ""
        return (
            f"the log of this session is damaged at byte {self.at_byte}: the {self.lost_bytes} bytes from there on "
            f"are not usable and were skipped; {kept}{original}"
        )


class SealedWriter:
    """Appends to one file, which can be closed between writes. A failed write leaves the file as it was."""

    def __init__(self, disk: Disk, path: Path, *, size: int = 0) -> None:
        self._path = str(path)  # a Path takes several times as much
        self.size = size
        """The size of the file. If it is 0, the first write creates the file."""
        self.disk = disk
        self._fd = -1
        self._begun = size
        """The end of the part that the system has started writing to the disk."""

    @property
    def path(self) -> Path:
        """The path of the file. It can be changed when the file was renamed."""
        return Path(self._path)

    @path.setter
    def path(self, path: Path) -> None:
        self._path = str(path)

    def write(self, data: bytes | bytearray) -> None:
        """Append data. Raises OSError after restoring the file."""
        try:
            if self._fd < 0:
                self._fd = self._open()
            write_all(self.disk, self._fd, data)
        except OSError:
            self._undo()
            raise
        self.size += len(data)
        if self.size - self._begun >= BEGIN_SYNC_BYTES:
            self.disk.begin_sync(self._fd, self._begun, self.size)
            self._begun = self.size

    def detach(self) -> int:
        """Return the descriptor of the open file, which the caller must close, or -1 if it is not open."""
        fd, self._fd = self._fd, -1
        return fd

    def close(self) -> None:
        """Close the file until the next write."""
        fd = self.detach()
        if fd >= 0:
            os.close(fd)

    def _undo(self) -> None:
        if self._fd >= 0:
            with suppress(OSError):
                self.disk.truncate(self._fd, self.size)
            self.close()

    def _open(self) -> int:
        self._begun = self.size
        if not self.size:
            return self.disk.open(self.path, CREATE)
        fd = self.disk.open(self.path, APPEND)
        if os.fstat(fd).st_size != self.size:
            # Another process has written to the file, so our block would not follow the last block in it.
            os.close(fd)
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return fd


class LogPosition(msgspec.Struct, frozen=True):
    """A place between two blocks, with everything needed to continue from there."""

    offset: int
    last: int
    """The number of the last line before it."""
    checksum: int
    """The sum of the seal before it."""


class LogHead(msgspec.Struct, frozen=True):
    """The start of a log: its header, and the position of its first line."""

    header: Header
    start: LogPosition


def read_head(fd: int, path: Path) -> LogHead | None:
    """Read the header of a log. Return None if it was not completely written. Raises SessionUnreadableError."""
    beginning = os.pread(fd, _FIRST_LOOK_BYTES, 0)
    if len(beginning) == _FIRST_LOOK_BYTES and beginning.count(b"\n") < 2:
        beginning = os.pread(fd, MAX_HEADER_BYTES, 0)
    end = beginning.find(b"\n", beginning.find(b"\n") + 1) + 1
    try:
        if end == 0 and len(beginning) < MAX_HEADER_BYTES:
            return None
        header, checksum = decode_header(beginning[:end])
    except _NOT_LINES as error:
        raise SessionUnreadableError(str(path), str(error)) from error
    return LogHead(header, LogPosition(end, 0, checksum))


class BlockReader:
    """Reads the blocks of one file, from a position to an offset or to the end of the file. Not thread-safe."""

    def __init__(self, disk: Disk, path: Path, start: LogPosition, end: int | None = None) -> None:
        self.position = start
        """The place after the last sealed block."""
        self.unsealed: Block | None = None
        """The whole lines at the end without a seal, because their writer died."""
        self.damage: Damage | None = None
        """The part that was not read. None until it was found."""
        self._fd = disk.open(path, READ)
        self._end = os.fstat(self._fd).st_size if end is None else end

    def read(self) -> list[Block]:
        """Return the next blocks, or an empty list at the end."""
        size = READ_BYTES
        while self.damage is None and self.unsealed is None:
            position = self.position
            # Each read starts at the last seal. Reading part of a block twice is cheaper than joining two parts.
            buffer = os.pread(self._fd, min(size, self._end - position.offset), position.offset)
            found, damaged = find_blocks(buffer, position.last + 1, position.checksum)
            if found.blocks:
                self.position = LogPosition(position.offset + found.end, found.blocks[-1].last, found.checksum)
            if damaged:
                self._stop(0, torn=False)
            if found.blocks or not buffer:
                return found.blocks
            if position.offset + len(buffer) >= self._end and not damaged:
                return self._read_torn(buffer)
            size *= 2
        return []

    def read_end(self, begin: int) -> LogEnd:
        """Return the facts in the last lines. `begin` is the offset of the first line."""
        if self.unsealed is None:
            return read_log_end(self._fd, begin, self.position.offset)
        end = read_log_end(self._fd, begin, self.position.offset + self.unsealed.end)
        end.time = self.unsealed.time
        return end

    def read_rest(self) -> bytes:
        """Return the bytes after the last seal of a torn log."""
        return os.pread(self._fd, self._end - self.position.offset, self.position.offset)

    def close(self) -> None:
        """Close the file."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def _read_torn(self, rest: bytes) -> list[Block]:
        """Return the whole lines of a write that was cut short, and note the bytes that are dropped."""
        end = rest.rfind(b"\n") + 1
        time = os.fstat(self._fd).st_mtime_ns // 1_000_000
        try:
            block = read_torn(rest[:end], self.position.last + 1, time)
        except _NOT_LINES:
            self._stop(0, torn=False)
            return []
        self.unsealed = block
        if block is None or end < len(rest):
            self._stop(end, torn=True)
        return [] if block is None else [block]

    def _stop(self, kept_bytes: int, *, torn: bool) -> None:
        last = self.position.last if self.unsealed is None else self.unsealed.last
        at_byte = self.position.offset + kept_bytes
        self.damage = Damage(torn, last, at_byte, self._end - at_byte)


def mend_torn(disk: Disk, path: Path, position: LogPosition, unsealed: Block | None) -> LogPosition:
    """Drop the unfinished line of a torn log, seal the whole lines, and return the new end of the log.

    If the process dies in here, the log is torn again, and the next call repairs it.
    """
    fd = disk.open(path, WRITE)
    try:
        if unsealed is None:
            disk.truncate(fd, position.offset)
        else:
            disk.truncate(fd, position.offset + unsealed.end)
            block, checksum = reseal(unsealed, unsealed.lines, position.checksum)
            os.pwrite(fd, block[unsealed.end :], position.offset + unsealed.end)
            position = LogPosition(position.offset + len(block), unsealed.last, checksum)
        disk.sync(fd)
    finally:
        os.close(fd)
    return position


def reseal(block: Block, lines: bytes, before: int) -> tuple[bytearray, int]:
    """Return the lines with a seal for a new place in a chain of sums, and the sum of that seal.

    `lines` are those of the block, or changed without a change of length. `before` is the sum of the previous seal.
    """
    return seal(bytearray(lines), block.first, block.last, block.time, before=before, places=block.places)


def write_sound(disk: Disk, reader: BlockReader, header: Header, target: Path) -> tuple[LogPosition, LogPosition]:
    """Write a new log with a header and all lines of a reader, with new seals. Return its start and its end.

    The new file is removed after a failure.
    """
    fd = disk.open(target, CREATE)
    try:
        blocks = reader.read()
        block, checksum = encode_header(header, blocks[0].time if blocks else now_ms())
        write_all(disk, fd, block)
        start = LogPosition(len(block), 0, checksum)
        size, last = len(block), 0
        while blocks:
            for found in blocks:
                sealed, checksum = reseal(found, found.lines, checksum)
                write_all(disk, fd, sealed)
                size, last = size + len(sealed), found.last
            blocks = reader.read()
        disk.sync(fd)
    except BaseException:
        target.unlink()
        raise
    finally:
        os.close(fd)
    return start, LogPosition(size, last, checksum)


class ForkedLines(NamedTuple):
    """The lines of a session that a fork copies."""

    rename: Rename
    before: int | None = None
    """The number of the first line that is not copied. None copies all."""


def write_fork(disk: Disk, reader: BlockReader, wanted: ForkedLines, header: Header, target: Path) -> None:
    """Write the log of a fork: all lines of a reader, or those before one, with the fork's session id in each line.

    A torn end or a damaged part is copied. Opening the fork finds, reports and repairs it, as in the original. The new
    file is removed after a failure.
    """
    fd = disk.open(target, CREATE)
    try:
        block, checksum = encode_header(header, now_ms())
        write_all(disk, fd, block)
        # Sealed blocks get new seals. Unsealed lines and damage are copied as bytes afterwards.
        has_more = True
        while has_more and (read := reader.read()):
            blocks, has_more = cut_before(read, wanted.before)
            pieces: list[bytearray] = []
            for found in blocks:
                if found is not reader.unsealed:
                    sealed, checksum = reseal(found, wanted.rename(found.lines), checksum)
                    pieces.append(sealed)
            write_all(disk, fd, b"".join(pieces))
        if has_more and (reader.damage is not None or reader.unsealed is not None):
            write_all(disk, fd, wanted.rename(reader.read_rest()))
        disk.sync(fd)
    except BaseException:
        target.unlink()
        raise
    finally:
        os.close(fd)


async def write_blocks(disk: Disk, header: Header, source: AsyncIterator[list[Block]], target: Path) -> None:
    """Write a log of blocks from another store, with new seals. The new file is removed after a failure."""
    fd = disk.open(target, CREATE)
    try:
        block, checksum = encode_header(header, now_ms())
        await asyncio.to_thread(write_all, disk, fd, block)
        async for blocks in source:
            pieces: list[bytearray] = []
            for found in blocks:
                sealed, checksum = reseal(found, found.lines, checksum)
                pieces.append(sealed)
            await asyncio.to_thread(write_all, disk, fd, b"".join(pieces))
        await asyncio.to_thread(disk.sync, fd)
    except BaseException:
        target.unlink()  # noqa: ASYNC240 -- at once, whatever happens
        raise
    finally:
        os.close(fd)
