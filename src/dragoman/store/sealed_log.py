"""Files of sealed records: appending to them, reading the part that can be trusted, and mending the rest.

`record` describes the format. This is the one reader and the one writer of journals and trajectories, and the reader of
session logs of version 1; `SealedWriter` appends to session logs of the present version too (see `block_log`).
`SealedDecoder` takes bytes from anywhere, `Reader` reads a file with it, and `SealedWriter` appends to a file.
"""

import errno
import os
from contextlib import suppress
from pathlib import Path

import msgspec

from dragoman.errors import SessionUnreadable
from dragoman.store.block import Header, Record
from dragoman.store.disk import APPEND, CREATE, READ, WRITE, Disk, copy, write_all
from dragoman.store.naming import aside_path
from dragoman.store.record import (
    KINDS,
    decode_header,
    decode_records,
    decode_unsealed,
    seal,
    sealed_end,
)

BLOCK_BYTES = 1 << 19
"""Two thousand records a time: the hop to a thread costs little beside them, and they stay in the CPU's cache."""

BEGIN_SYNC_BYTES = 1 << 20
"""Bytes after which the disk gets to work, so that the sync at the end of a long turn finds little to do."""

MAX_HEADER_BYTES = 1 << 20
"""Room for thousands of additional directories; a first line longer than that is no header."""

_NOT_RECORDS = (ValueError, msgspec.DecodeError, RecursionError)
_END_OF_RECORD = b"}\n"


class Damage(msgspec.Struct, frozen=True):
    """The loss of a log: its torn end, or everything from a damaged place on."""

    torn: bool
    """True when only the last write was incomplete, as after a crash; False for damage inside."""
    after: int
    """The last line that was kept; 0 when none was."""
    at_byte: int
    """The offset of the part that was not kept."""
    lost_bytes: int
    kept_as: str | None = None
    """The file that holds the damaged original, once it was set aside."""

    def __str__(self) -> str:
        kept = f"everything up to line {self.after} is kept" if self.after else "nothing before it was recorded"
        if self.torn:
            dropped = f" and {self.lost_bytes} bytes of an unfinished line were dropped" if self.lost_bytes else ""
            return f"the last write to this session was cut short, as a crash does it{dropped}; {kept}"
        original = f"; the damaged original is {self.kept_as}" if self.kept_as else ""
        return (
            f"the log of this session is damaged at byte {self.at_byte}: the {self.lost_bytes} bytes from there on "
            f"cannot be trusted and were left out; {kept}{original}"
        )


def read_header(fd: int, path: Path) -> tuple[Header, int] | None:
    """Read the header and the offset of the first record; None while not even the header was written whole.

    Raises SessionUnreadable.
    """
    line = os.pread(fd, 4096, 0)
    if b"\n" not in line and len(line) == 4096:
        line = os.pread(fd, MAX_HEADER_BYTES, 0)
    end = line.find(b"\n") + 1
    if end == 0 and len(line) < MAX_HEADER_BYTES:
        return None
    try:
        return decode_header(line[:end]), end
    except _NOT_RECORDS as error:
        raise SessionUnreadable(str(path), str(error)) from error


class SealedDecoder:
    """Makes records of the bytes of a file, in blocks of any size, and trusts only records below a good seal."""

    def __init__(self, last_seq: int = 0, kinds: frozenset[str] = KINDS) -> None:
        self.seq = last_seq
        """The last record that was read."""
        self.size = 0
        """The number of bytes that can be trusted."""
        self.unsealed = 0
        """The number of these, at the end, that came from a torn write."""
        self.torn: bool | None = None
        """Why there will be no more records: True for a torn end, False for damage; None while all is well."""
        self.problem = ""
        """The damage."""
        self._kinds = kinds
        self._held = b""

    @property
    def held_bytes(self) -> int:
        """The number of bytes that wait for their seal."""
        return len(self._held)

    def feed(self, block: bytes) -> list[Record]:
        """Take the next bytes, and return the records of the writes that they complete."""
        self._held += block
        end, damaged = sealed_end(self._held)
        try:
            records = decode_records(self._held[:end], self.seq, self._kinds)
        except _NOT_RECORDS as error:
            self._stop(str(error), torn=False)
            return []
        self._trust(records, end)
        if damaged:
            self._stop("a seal does not fit", torn=False)
        return records

    def finish(self) -> list[Record]:
        """Return the records in whole lines of a write that was cut short: no more bytes come."""
        if not self._held:
            return []
        end = self._held.rfind(b"\n") + 1
        try:
            records = decode_unsealed(self._held[:end], self.seq, self._kinds)
        except _NOT_RECORDS as error:
            self._stop(str(error), torn=False)
            return []
        self._trust(records, end)
        self.unsealed = end
        self._stop("", torn=True)
        return records

    def _trust(self, records: list[Record], size: int) -> None:
        self.seq += len(records)
        self.size += size
        self._held = self._held[size:]

    def _stop(self, problem: str, *, torn: bool) -> None:
        self.torn = torn
        self.problem = problem
        self._held = b""


class Reader:
    """Reads the records of one file between two offsets; made for one thread at a time."""

    def __init__(self, disk: Disk, path: Path, start: int, end: int | None, *, last_seq: int = 0) -> None:
        self.fd = disk.open(path, READ)
        self._start = start
        self._end = os.fstat(self.fd).st_size if end is None else end
        self._decoder = SealedDecoder(last_seq)

    @property
    def seq(self) -> int:
        """The last record that was read."""
        return self._decoder.seq

    @property
    def trusted(self) -> int:
        """The end of the part that can be trusted."""
        return self._start + self._decoder.size

    @property
    def unsealed(self) -> int:
        """The number of bytes at its end that came from a torn write."""
        return self._decoder.unsealed

    @property
    def damage(self) -> Damage | None:
        """The part that was not read, once that is known."""
        if self._decoder.torn is None:
            return None
        return Damage(self._decoder.torn, self.seq, self.trusted, self._end - self.trusted)

    def close(self) -> None:
        """Close the file."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def read(self) -> list[Record]:
        """Return the next records; an empty list is the end."""
        decoder = self._decoder
        while decoder.torn is None:
            at = self.trusted + decoder.held_bytes
            # Twice as much each time, or a write of many blocks would be searched once for each of them.
            size = min(max(BLOCK_BYTES, decoder.held_bytes), self._end - at)
            block = os.pread(self.fd, size, at) if size > 0 else b""
            if not block:
                return decoder.finish()
            if records := decoder.feed(block):
                return records
        return []


class SealedWriter:
    """Appends to one file, which is closed between writes that are far apart: a write is in it whole, or not at all."""

    def __init__(self, disk: Disk, path: Path, *, size: int = 0) -> None:
        self.path = path
        self.size = size
        """The size of the file; a file without any is made by the first write."""
        self.disk = disk
        self._fd = -1
        self._begun = size
        """The end of the part that the system was told to write to the disk."""

    def write(self, data: bytes | bytearray) -> None:
        """Append a sealed write; raises OSError, and the file is as before then."""
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
        """Return the open file, if there is one, for the caller to sync and close; -1 if there is none."""
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
            # Another process has written to it: our records would not follow the last one that we know.
            os.close(fd)
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return fd


def mend_torn(disk: Disk, path: Path, trusted: int, unsealed: int) -> int:
    """Drop an unfinished record, seal the whole ones, and return the size that the log then has.

    A crash at any moment in here leaves a torn log again.
    """
    fd = disk.open(path, WRITE)
    try:
        disk.truncate(fd, trusted)
        if unsealed:
            body = os.pread(fd, unsealed, trusted - unsealed).removesuffix(_END_OF_RECORD)
            end = seal(body)[len(body) :]
            os.pwrite(fd, end, trusted - len(_END_OF_RECORD))
            trusted += len(end) - len(_END_OF_RECORD)
        disk.sync(fd)
    finally:
        os.close(fd)
    return trusted


def set_aside(disk: Disk, path: Path, trusted: int) -> Path:
    """Keep the damaged file under another name, and put the trusted part of it in its place."""
    aside = keep_aside(path)
    fresh = path.with_suffix(".jsonl.new")
    with suppress(FileNotFoundError):
        fresh.unlink()
    copy_file(disk, path, fresh, 0, trusted)
    fresh.replace(path)
    disk.sync_directory(path.parent)
    return aside


def copy_file(disk: Disk, source: Path, target: Path, start: int, end: int | None, *, before: bytes = b"") -> None:
    """Make a new file of `before` and part of another file; a failure leaves nothing behind."""
    source_fd = disk.open(source, READ)
    try:
        target_fd = disk.open(target, CREATE)
        try:
            write_all(disk, target_fd, before)
            copy(disk, source_fd, target_fd, start, os.fstat(source_fd).st_size if end is None else end)
            disk.sync(target_fd)
        except BaseException:
            target.unlink()
            raise
        finally:
            os.close(target_fd)
    finally:
        os.close(source_fd)


def keep_aside(path: Path) -> Path:
    """Give a damaged file a second name, which no later one takes."""
    number = 1
    while True:
        aside = aside_path(path, number)
        try:
            os.link(path, aside, follow_symlinks=False)
        except FileExistsError:
            number += 1
        else:
            return aside
