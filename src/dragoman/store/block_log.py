"""Logs in files of blocks: reading the part that can be trusted, mending the rest, and copying for a fork.

`block` describes the format, `version1` the one before it. Readers of both give the same blocks.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from dragoman.errors import SessionUnreadable
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
    read_version,
    seal,
)
from dragoman.store.disk import CREATE, READ, WRITE, Disk, write_all
from dragoman.store.log_end import LogEnd, read_log_end
from dragoman.store.record import VERSION as VERSION_1
from dragoman.store.record import decode_header as decode_version1_header
from dragoman.store.sealed_log import MAX_HEADER_BYTES, Damage

READ_BYTES = 1 << 21
"""Bytes that are read at a time: the hop to a thread costs little beside them, and they stay in the CPU's cache."""

_FIRST_LOOK_BYTES = 4096
_NOT_LINES = (ValueError, msgspec.DecodeError, RecursionError)


class LogPosition(msgspec.Struct, frozen=True):
    """A place between two blocks, and all that is needed to go on from there."""

    offset: int
    last: int
    """The number of the last line before it."""
    checksum: int
    """The sum of the seal before it."""


class LogHead(msgspec.Struct, frozen=True):
    """What the beginning of a file says: whose log it is, in which format, and where its lines begin."""

    header: Header
    version: int
    start: LogPosition


def read_head(fd: int, path: Path) -> LogHead | None:
    """Read the beginning of a log; None while not even that was written whole. Raises SessionUnreadable."""
    beginning = os.pread(fd, _FIRST_LOOK_BYTES, 0)
    if len(beginning) == _FIRST_LOOK_BYTES and beginning.count(b"\n") < 2:
        beginning = os.pread(fd, MAX_HEADER_BYTES, 0)
    line_end = beginning.find(b"\n") + 1
    end = beginning.find(b"\n", line_end) + 1
    try:
        if line_end and read_version(beginning[:line_end]) == VERSION_1:
            header = decode_version1_header(beginning[:line_end])
            return LogHead(header, VERSION_1, LogPosition(line_end, 0, 0))
        if end == 0 and len(beginning) < MAX_HEADER_BYTES:
            return None
        header, checksum = decode_header(beginning[:end])
    except _NOT_LINES as error:
        raise SessionUnreadable(str(path), str(error)) from error
    return LogHead(header, 2, LogPosition(end, 0, checksum))


class LogReader(Protocol):
    """Reads the blocks of one log, of either version; made for one thread at a time."""

    unsealed: Block | None
    """The whole lines at the end that have no seal, because their writer died."""

    @property
    def position(self) -> LogPosition:
        """The place after the last block that a seal vouches for."""
        ...

    @property
    def damage(self) -> Damage | None:
        """The part that was not read, once that is known."""
        ...

    def read(self) -> list[Block]:
        """Return the next blocks; an empty list is the end."""
        ...

    def read_end(self) -> LogEnd:
        """Return the facts that the end of what was read gives."""
        ...

    def read_rest(self) -> bytes:
        """Return the bytes behind the last seal of a torn log."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


class BlockReader:
    """Reads the blocks of one file from a position on. See `LogReader`."""

    def __init__(self, disk: Disk, path: Path, start: LogPosition, end: int | None) -> None:
        self.position = start
        self.unsealed: Block | None = None
        self.damage: Damage | None = None
        self._start = start
        self._fd = disk.open(path, READ)
        self._end = os.fstat(self._fd).st_size if end is None else end

    def read(self) -> list[Block]:
        size = READ_BYTES
        while self.damage is None and self.unsealed is None:
            position = self.position
            # From the last seal on, each time: to read the part of a block twice is cheaper than to put it together.
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

    def read_end(self) -> LogEnd:
        if self.unsealed is None:
            return read_log_end(self._fd, self._start.offset, self.position.offset)
        end = read_log_end(self._fd, self._start.offset, self.position.offset + self.unsealed.end)
        end.time = self.unsealed.time
        return end

    def read_rest(self) -> bytes:
        return os.pread(self._fd, self._end - self.position.offset, self.position.offset)

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def _read_torn(self, rest: bytes) -> list[Block]:
        """Take the whole lines of a write that was cut short."""
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
    """Drop what is unfinished, seal what is whole, and return the end that the log then has.

    A crash at any moment in here leaves a torn log again.
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
    """Return the lines of a block, changed in place at most, with a seal that follows another sum, and its own sum."""
    return seal(bytearray(lines), block.first, block.last, block.time, before=before, places=block.places)


def write_sound(disk: Disk, reader: LogReader, header: Header, target: Path) -> tuple[LogPosition, LogPosition]:
    """Make a log of all lines that a reader gives, sealed anew under a header, and return its start and its end.

    A failure leaves nothing behind.
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
    """The lines of a session that a fork has: how they are renamed, and the first that it does not have."""

    rename: Rename
    before: int | None = None


def write_fork(disk: Disk, reader: LogReader, wanted: ForkedLines, header: Header, target: Path) -> None:
    """Make a log of all that a reader gives, or of the lines before one, with the session id of the fork in each line.

    A torn end or a damaged part comes along: it is found, told and mended when the fork is opened, as in the
    original. A failure leaves nothing behind.
    """
    fd = disk.open(target, CREATE)
    try:
        block, checksum = encode_header(header, now_ms())
        write_all(disk, fd, block)
        goes_on = True
        while goes_on and (read := reader.read()):
            blocks, goes_on = cut_before(read, wanted.before)
            pieces: list[bytearray] = []
            for found in blocks:
                if found is not reader.unsealed:
                    sealed, checksum = reseal(found, wanted.rename(found.lines), checksum)
                    pieces.append(sealed)
            write_all(disk, fd, b"".join(pieces))
        if goes_on and (reader.damage is not None or reader.unsealed is not None):
            write_all(disk, fd, wanted.rename(reader.read_rest()))
        disk.sync(fd)
    except BaseException:
        target.unlink()
        raise
    finally:
        os.close(fd)


async def write_blocks(disk: Disk, header: Header, source: AsyncIterator[list[Block]], target: Path) -> None:
    """Make a log of blocks that come from elsewhere, sealed anew; a failure leaves nothing behind."""
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
