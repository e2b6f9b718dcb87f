"""Making a log whole again, so that it can be appended to and nothing is found wrong with it twice."""

import os
from contextlib import suppress
from pathlib import Path

from dragoman.store.disk import CREATE, READ, WRITE, Disk, copy, write_all
from dragoman.store.naming import aside_path
from dragoman.store.record import seal

_END_OF_RECORD = b"}\n"


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
