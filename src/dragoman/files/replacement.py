"""Replaces the content of a file so that a reader sees the old or the new content and never a part.

The content is written to a temporary file in the same directory, which then takes over the name. The directory is held
by descriptor throughout, and no link is followed. A concurrent rename can change which file in this directory is
replaced, but nothing outside it.
"""

import errno
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from dragoman.files.content import kind_of
from dragoman.files.errors import NotAFileError

TEMPORARY = ".dragoman-"
"""The prefix of temporary files. A process that was killed can leave one behind."""

_TRIES = 10
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC


def replace(directory: int, name: str, path: str, data: bytes, *, sync: bool) -> None:
    """Write the content of a name. Raises ELOOP for a link, and NotAFileError for any other kind than a file."""
    old = _stat_replaced(directory, name, path)

    def prepare(fd: int) -> None:
        if old is not None:
            _copy_rights(fd, old)
        if sync:
            os.fsync(fd)

    _put(directory, name, data, mode=0o666 if old is None else 0o600, prepare=prepare)
    if sync:
        _sync_names(directory)


def replace_file(path: Path, data: bytes, *, mode: int, exclusive: bool = False) -> None:
    """Write a file with this content and mode so that it survives a power failure. Replace any existing file.

    Raises OSError. With `exclusive`, raises FileExistsError if the name exists.
    """

    def prepare(fd: int) -> None:
        os.fchmod(fd, mode)
        os.fsync(fd)

    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _put(directory, path.name, data, mode=0o600, prepare=prepare, exclusive=exclusive)
        os.fsync(directory)
    finally:
        os.close(directory)


def remove(directory: int, name: str, path: str) -> None:
    """Remove a name. For a link, remove the link itself."""
    status = os.lstat(name, dir_fd=directory)
    if kind_of(status) == "directory":
        raise NotAFileError(path, "directory")
    os.unlink(name, dir_fd=directory)


def _stat_replaced(directory: int, name: str, path: str) -> os.stat_result | None:
    """Return the status of the file to be replaced, if we may write it. Renaming alone would not check this."""
    try:
        status = os.lstat(name, dir_fd=directory)
    except FileNotFoundError:
        return None
    kind = kind_of(status)
    if kind == "link":
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    if kind != "file":
        raise NotAFileError(path, kind)
    _check_writable(directory, name)
    return status


def _check_writable(directory: int, name: str) -> None:
    try:
        os.close(os.open(name, _WRITE, dir_fd=directory))
    except FileNotFoundError:
        return
    except OSError as error:
        # A running program cannot be written, but another file may replace it.
        if error.errno != errno.ETXTBSY:
            raise


def _put(
    directory: int,
    name: str,
    data: bytes,
    *,
    mode: int,
    prepare: Callable[[int], None],
    exclusive: bool = False,
) -> None:
    temporary, fd = _create(directory, mode)
    try:
        try:
            _write_all(fd, data)
            prepare(fd)
        finally:
            os.close(fd)
        publish = os.link if exclusive else os.rename  # os.link fails if the name exists
        publish(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    finally:
        with suppress(OSError):  # after a rename, nothing is left to remove
            os.unlink(temporary, dir_fd=directory)


def _create(directory: int, mode: int) -> tuple[str, int]:
    for _ in range(_TRIES):
        name = TEMPORARY + secrets.token_hex(8)
        with suppress(FileExistsError):
            return name, os.open(name, _CREATE, mode, dir_fd=directory)
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))


def _write_all(fd: int, data: bytes) -> None:
    written = 0
    while written < len(data):
        written += os.write(fd, memoryview(data)[written:])


def _copy_rights(fd: int, old: os.stat_result) -> None:
    new = os.fstat(fd)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        # Only root may change the owner. For other users the file becomes their own, as with any editor.
        with suppress(PermissionError):
            os.fchown(fd, old.st_uid, old.st_gid)
    # Set-id bits are dropped, as they are when a file is written in place.
    os.fchmod(fd, old.st_mode & 0o777)


def _sync_names(directory: int) -> None:
    fd = os.open(".", os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
