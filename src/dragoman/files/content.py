"""Open files: their kind, their content, and which file one is, so that a later look sees whether it still is."""

import errno
import hashlib
import os
import stat
from typing import Literal

import msgspec

from dragoman.files.errors import NotAFile, NotText, TooLarge

READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""Opening a FIFO must not wait for its writer, nor a terminal become ours."""

Kind = Literal["file", "directory", "link", "FIFO", "socket", "device"]
"""A name in a directory stands for one of these."""

_KINDS: dict[int, Kind] = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "FIFO",
    stat.S_IFSOCK: "socket",
}

_BLOCK_BYTES = 1 << 20
_DIGEST_TRIES = 3


class FileIdentity(msgspec.Struct, frozen=True):
    """A file at one moment; `sha256` is None unless it was asked for.

    Times can be set and inodes are used again: only equal digests prove equal content.
    """

    device: int
    inode: int
    size: int
    mtime_ns: int
    sha256: str | None = None


def kind_of(status: os.stat_result) -> Kind:
    """Return the kind of a file; an unusual kind is a device."""
    return _KINDS.get(stat.S_IFMT(status.st_mode), "device")


def check_regular(fd: int, path: str) -> os.stat_result:
    """Raise NotAFile, and close it, unless this is a regular file."""
    status = os.fstat(fd)
    kind = kind_of(status)
    if kind != "file":
        os.close(fd)
        raise NotAFile(path, kind)
    return status


def read_all(fd: int, path: str, max_bytes: int) -> bytes:
    """Read an open regular file to its end, or raise TooLarge; it may say less than it has, as those of /proc do."""
    size = os.fstat(fd).st_size
    if size > max_bytes:
        raise TooLarge(path, size, max_bytes)
    blocks: list[bytes] = []
    left = max_bytes + 1
    ask = size + 1
    while left > 0 and (block := os.read(fd, min(left, ask))):
        blocks.append(block)
        left -= len(block)
        ask = _BLOCK_BYTES
    if left <= 0:
        raise TooLarge(path, None, max_bytes)
    return blocks[0] if len(blocks) == 1 else b"".join(blocks)


def decode(data: bytes, path: str) -> str:
    """Decode UTF-8, or raise NotText; a NUL is valid UTF-8, and no text has one."""
    nul = data.find(b"\0")
    if nul >= 0:
        raise NotText(path, nul)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise NotText(path, error.start) from None


def identify(fd: int) -> FileIdentity:
    """Return the identity of an open file."""
    status = os.fstat(fd)
    return FileIdentity(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def identify_content(fd: int) -> FileIdentity:
    """Return the identity and the content of a file; raises EBUSY when it changes while it is read, again and again."""
    for _ in range(_DIGEST_TRIES):
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
