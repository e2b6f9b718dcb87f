"""The content of an open file, and only as much as the caller takes."""

import os

from dragoman.files.errors import NotAFile, NotText, TooLarge
from dragoman.files.kind import kind_of

READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""Opening a FIFO must not wait for its writer, nor a terminal become ours."""

_BLOCK_BYTES = 1 << 20


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
