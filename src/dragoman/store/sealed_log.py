"""Files of sealed records: reading the part that can be trusted, and mending the rest.

`record` describes the format. This is the one reader of session logs, journals and trajectories.
"""

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from dragoman.errors import SessionUnreadable
from dragoman.store.disk import CREATE, READ, WRITE, Disk, copy, write_all
from dragoman.store.naming import aside_path
from dragoman.store.record import Header, Record, decode_header, decode_records, decode_unsealed, seal, sealed_end

BLOCK_BYTES = 1 << 19
"""Two thousand records a time: the hop to a thread costs little beside them, and they stay in the CPU's cache."""

MAX_HEADER_BYTES = 1 << 20
"""Room for thousands of additional directories; a first line longer than that is no header."""

_NOT_RECORDS = (ValueError, msgspec.DecodeError, RecursionError)
_END_OF_RECORD = b"}\n"


class Damage(msgspec.Struct, frozen=True):
    """What a log has lost: its torn end, or everything from a damaged place on."""

    torn: bool
    """True when only the last write was incomplete, as after a crash; False for damage inside."""
    after: int
    """The last record that was kept; 0 when none was."""
    at_byte: int
    """Where in the file the part begins that was not kept."""
    lost_bytes: int
    kept_as: str | None = None
    """The file that holds the damaged original, once it was set aside."""

    def __str__(self) -> str:
        kept = f"everything up to record {self.after} is kept" if self.after else "nothing before it was recorded"
        if self.torn:
            dropped = f" and {self.lost_bytes} bytes of an unfinished record were dropped" if self.lost_bytes else ""
            return f"the last write to this session was cut short, as a crash does it{dropped}; {kept}"
        original = f"; the damaged original is {self.kept_as}" if self.kept_as else ""
        return (
            f"the log of this session is damaged at byte {self.at_byte}: the {self.lost_bytes} bytes from there on "
            f"cannot be trusted and were left out; {kept}{original}"
        )


def read_header(fd: int, path: Path) -> tuple[Header, int] | None:
    """Read whose log this is and where its records begin; None while not even the header was written whole.

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


class Reader:
    """Reads the records of one log between two places; made for one thread at a time."""

    def __init__(self, disk: Disk, path: Path, start: int, end: int | None) -> None:
        self._fd = disk.open(path, READ)
        self._end = os.fstat(self._fd).st_size if end is None else end
        self._held = b""
        self.seq = 0
        """The last record that was read."""
        self.trusted = start
        """Where the part ends that can be trusted."""
        self.unsealed = 0
        """How much of its end came from a torn write."""
        self.damage: Damage | None = None

    @property
    def fd(self) -> int:
        """What it reads from."""
        return self._fd

    def close(self) -> None:
        """Let go of the file."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def read(self) -> list[Record]:
        """Give the next records; an empty list is the end."""
        while self.damage is None:
            # Twice as much each time, or a write of many blocks would be searched once for each of them.
            block = self._read_block(max(BLOCK_BYTES, len(self._held)))
            if not block:
                return self._read_tail() if self._held else []
            self._held += block
            if records := self._read_sealed():
                return records
        return []

    def _read_block(self, size: int) -> bytes:
        at = self.trusted + len(self._held)
        return os.pread(self._fd, min(size, self._end - at), at) if at < self._end else b""

    def _read_sealed(self) -> list[Record]:
        end, damaged = sealed_end(self._held)
        try:
            records = decode_records(self._held[:end], self.seq)
        except _NOT_RECORDS:
            self._note(torn=False)
            return []
        self._trust(records, end)
        if damaged:
            self._note(torn=False)
        return records

    def _read_tail(self) -> list[Record]:
        """Take the whole lines of a write that was cut short."""
        end = self._held.rfind(b"\n") + 1
        try:
            records = decode_unsealed(self._held[:end], self.seq)
        except _NOT_RECORDS:
            self._note(torn=False)
            return []
        self._trust(records, end)
        self.unsealed = end
        self._note(torn=True)
        return records

    def _trust(self, records: list[Record], size: int) -> None:
        self.seq += len(records)
        self.trusted += size
        self._held = self._held[size:]

    def _note(self, *, torn: bool) -> None:
        self.damage = Damage(torn, self.seq, self.trusted, self._end - self.trusted)
        self._held = b""


def mend_torn(disk: Disk, path: Path, trusted: int, unsealed: int) -> int:
    """Drop what is unfinished, seal what is whole, and give the size that the log then has.

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
    aside = _keep(path)
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


def _keep(path: Path) -> Path:
    number = 1
    while True:
        aside = aside_path(path, number)
        try:
            os.link(path, aside, follow_symlinks=False)
        except FileExistsError:
            number += 1
        else:
            return aside
