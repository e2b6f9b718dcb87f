"""The calls to the operating system through which logs are written: one seam, where tests let a disk fail."""

import errno
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from dragoman.errors import LogFileFailed

READ = os.O_RDONLY | os.O_NOFOLLOW
WRITE = os.O_RDWR | os.O_NOFOLLOW
APPEND = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
"""Not for appending: the kernel would refuse to copy into it."""

_COPY_BYTES = 1 << 20
_CANNOT_COPY = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EXDEV)
_sync_data = getattr(os, "fdatasync", os.fsync)


class Disk:
    """The calls of the operating system."""

    def open(self, path: Path, flags: int) -> int:
        """Open a file; a new one is for its owner only."""
        return os.open(path, flags | os.O_CLOEXEC, 0o600)

    def write(self, fd: int, data: bytes | bytearray | memoryview) -> int:
        """Write some of this, and return how much."""
        return os.write(fd, data)

    def begin_sync(self, fd: int, start: int, end: int) -> None:
        """Let the system begin to write a part of a file to the disk, where it can, without waiting for it."""
        if hasattr(os, "posix_fadvise"):
            # On Linux that begins to write what is new; of pages that are not on the disk yet, none is dropped.
            os.posix_fadvise(fd, start, end - start, os.POSIX_FADV_DONTNEED)

    def sync(self, fd: int) -> None:
        """Wait until the written bytes survive a power cut."""
        _sync_data(fd)

    def sync_directory(self, path: Path) -> None:
        """Wait until the names in a directory survive a power cut."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def truncate(self, fd: int, size: int) -> None:
        """Cut a file."""
        os.ftruncate(fd, size)


@contextmanager
def failing(path: Path, action: str) -> Generator[None]:
    """Make the error for an operation that failed, with its log."""
    try:
        yield
    except OSError as error:
        raise LogFileFailed(str(path), error.errno or errno.EIO, action) from error


def write_all(disk: Disk, fd: int, data: bytes | bytearray) -> None:
    """Write all of it, in as many pieces as it takes."""
    written = disk.write(fd, data) if data else 0
    while written < len(data):
        written += disk.write(fd, memoryview(data)[written:])


def sync_named(disk: Disk, fd: int, directory: Path) -> None:
    """Wait until a new file and its name survive a power cut: for both at once, which takes half of the time."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as beside:
        named = beside.submit(disk.sync_directory, directory)
        disk.sync(fd)
        named.result()


def copy(disk: Disk, source: int, target: int, start: int, end: int) -> None:
    """Copy part of a file to the end of another, inside the kernel where it can."""
    at = _copy_in_kernel(source, target, start, end)
    while at < end and (block := os.pread(source, min(_COPY_BYTES, end - at), at)):
        write_all(disk, target, block)
        at += len(block)


def make_directories(disk: Disk, path: Path) -> None:
    """Make a directory and those above it, for their owner only, so that they survive a power cut."""
    if path.is_dir():
        return
    make_directories(disk, path.parent)
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    disk.sync_directory(path.parent)


def _copy_in_kernel(source: int, target: int, start: int, end: int) -> int:
    at = start
    if sys.platform == "linux":
        try:
            while at < end and (count := os.copy_file_range(source, target, end - at, offset_src=at)):
                at += count
        except OSError as error:
            if error.errno not in _CANNOT_COPY:
                raise
    return at
