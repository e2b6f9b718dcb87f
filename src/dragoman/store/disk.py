"""The calls to the operating system that write logs. Tests replace them to simulate a failing disk."""

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from dragoman.errors import LogFileError

READ = os.O_RDONLY | os.O_NOFOLLOW
WRITE = os.O_RDWR | os.O_NOFOLLOW
APPEND = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
"""Without O_APPEND, because the kernel refuses to copy into a file opened for appending."""

_sync_data = getattr(os, "fdatasync", os.fsync)


class Disk:
    """The calls of the operating system."""

    def open(self, path: Path, flags: int) -> int:
        """Open a file. Only its owner can read and write a new file."""
        return os.open(path, flags | os.O_CLOEXEC, 0o600)

    def write(self, fd: int, data: bytes | bytearray | memoryview) -> int:
        """Write some of the bytes, and return how many."""
        return os.write(fd, data)

    def begin_sync(self, fd: int, start: int, end: int) -> None:
        """Start writing part of a file to the disk without waiting, if the system supports it."""
        if hasattr(os, "posix_fadvise"):
            # On Linux this starts writing the changed pages. It does not drop pages that are not on the disk yet.
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
        """Cut a file to a size."""
        os.ftruncate(fd, size)


@contextmanager
def failing(path: Path, action: str) -> Generator[None]:
    """Raise LogFileError, with the path of the log, for an OSError in the block."""
    try:
        yield
    except OSError as error:
        raise LogFileError(str(path), error.errno or errno.EIO, action) from error


def write_all(disk: Disk, fd: int, data: bytes | bytearray) -> None:
    """Write all of the data, with as many writes as necessary."""
    written = disk.write(fd, data) if data else 0
    while written < len(data):
        written += disk.write(fd, memoryview(data)[written:])


def sync_named(disk: Disk, fd: int, directory: Path) -> None:
    """Wait until a new file and its name survive a power cut. Syncing both at the same time halves the wait."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        named = pool.submit(disk.sync_directory, directory)
        disk.sync(fd)
        named.result()


def make_directories(disk: Disk, path: Path) -> None:
    """Create a directory and its parents, for their owner only, and wait until they survive a power cut."""
    if path.is_dir():
        return
    make_directories(disk, path.parent)
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    disk.sync_directory(path.parent)
