"""Open files: their kind, their content, and their identity, with which a later check detects changes."""

import errno
import hashlib
import os
import stat
from typing import Literal

import msgspec

from dragoman.files.errors import FileTooLargeError, NotAFileError, NotTextError

READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""Opening a FIFO must not wait for its writer, and a terminal must not become our controlling terminal."""

Kind = Literal["file", "directory", "link", "FIFO", "socket", "device"]
"""The kinds of directory entries."""

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
    """The identity of a file at one moment. `sha256` is None unless requested.

    Times can be set and inodes are reused, so only equal digests prove equal content.
    """

    device: int
    inode: int
    size: int
    mtime_ns: int
    sha256: str | None = None


def kind_of(status: os.stat_result) -> Kind:
    """Return the kind of a file. Every unusual kind is a device."""
    return _KINDS.get(stat.S_IFMT(status.st_mode), "device")


def check_regular(fd: int, path: str) -> os.stat_result:
    """Return the status of a regular file. For any other kind, close `fd` and raise NotAFileError."""
    status = os.fstat(fd)
    kind = kind_of(status)
    if kind != "file":
        os.close(fd)
        raise NotAFileError(path, kind)
    return status


def read_all(fd: int, path: str, max_bytes: int) -> bytes:
    """Read an open regular file to its end. Raises FileTooLargeError.

    The reported size may be too small, as for files in /proc.
    """
    size = os.fstat(fd).st_size
    if size > max_bytes:
        raise FileTooLargeError(path, size, max_bytes)
    blocks: list[bytes] = []
    left = max_bytes + 1
    request = size + 1
    while left > 0 and (block := os.read(fd, min(left, request))):
        blocks.append(block)
        left -= len(block)
        request = _BLOCK_BYTES
    if left <= 0:
        raise FileTooLargeError(path, None, max_bytes)
    return blocks[0] if len(blocks) == 1 else b"".join(blocks)


def decode(data: bytes, path: str) -> str:
    """Decode UTF-8 text. Raises NotTextError. A NUL raises it as well, because no text contains one."""
    nul = data.find(b"\0")
    if nul >= 0:
        raise NotTextError(path, nul)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise NotTextError(path, error.start) from None


def identify(fd: int) -> FileIdentity:
    """Return the identity of an open file."""
    status = os.fstat(fd)
    return FileIdentity(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def identify_content(fd: int) -> FileIdentity:
    """Return the identity of a file with its digest. Raises EBUSY if the file keeps changing during the read."""
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
