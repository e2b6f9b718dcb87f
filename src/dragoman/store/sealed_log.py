"""Files of sealed blocks: appending to them, and setting damaged ones aside.

`block` describes the format, and `block_log` reads it. `SealedWriter` is the one writer of session logs, journals and
trajectories.
"""

import errno
import os
from contextlib import suppress
from pathlib import Path

import msgspec

from dragoman.store.disk import APPEND, CREATE, READ, Disk, copy, write_all
from dragoman.store.naming import aside_path

BEGIN_SYNC_BYTES = 1 << 20
"""Bytes after which the disk gets to work, so that the sync at the end of a long turn finds little to do."""

MAX_HEADER_BYTES = 1 << 20
"""Room for thousands of additional directories; a first line longer than that is no header."""


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
