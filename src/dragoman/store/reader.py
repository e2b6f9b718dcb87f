"""Reading a log: blocks in, trusted records out, and what was found wrong."""

import os
from pathlib import Path

import msgspec

from dragoman.errors import SessionUnreadable
from dragoman.store.damage import Damage
from dragoman.store.disk import READ, Disk
from dragoman.store.record import Header, Record, decode_header, decode_records, decode_unsealed, sealed_end

BLOCK_BYTES = 1 << 19
"""Two thousand records a time: the hop to a thread costs little beside them, and they stay in the CPU's cache."""

MAX_HEADER_BYTES = 1 << 20
"""Room for thousands of additional directories; a first line longer than that is no header."""

_NOT_RECORDS = (ValueError, msgspec.DecodeError, RecursionError)


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
