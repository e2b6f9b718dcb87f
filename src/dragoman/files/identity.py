"""What a file was at one moment, so that one can see later whether it still is."""

import errno
import hashlib
import os

import msgspec

_TRIES = 3
_BLOCK_BYTES = 1 << 20


class FileIdentity(msgspec.Struct, frozen=True):
    """A file at one moment; `sha256` is None unless it was asked for.

    Times can be set and inodes are used again: only equal digests prove equal content.
    """

    device: int
    inode: int
    size: int
    mtime_ns: int
    sha256: str | None = None


def identify(fd: int) -> FileIdentity:
    """Say which file this is."""
    status = os.fstat(fd)
    return FileIdentity(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def identify_content(fd: int) -> FileIdentity:
    """Say which file this is and what it holds; raises EBUSY when it changes while it is read, again and again."""
    for _ in range(_TRIES):
        before = identify(fd)
        digest = _digest(fd)
        if identify(fd) == before:
            return msgspec.structs.replace(before, sha256=digest)
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))


def _digest(fd: int) -> str:
    digest = hashlib.sha256()
    at = 0
    while block := os.pread(fd, _BLOCK_BYTES, at):
        digest.update(block)
        at += len(block)
    return digest.hexdigest()
