"""The errors of a path or of the file that it names.

PathError                  about one path, as the caller gave it
├── BadPath                it cannot name anything
├── OutsideBoundary        it leads out of the directories of the session
├── NotAFile               it names a directory, or a FIFO, a socket, a device
├── TooLarge               the file has more bytes than the caller takes
├── NotText                the file is not UTF-8 text
└── FileProblem            the operating system said no
"""

import errno as codes
import os
from collections.abc import Sequence

from dragoman.errors import DragomanError
from dragoman.text import visible


class PathError(DragomanError):
    """Something is wrong with this path, or with its file."""

    def __init__(self, path: str, words: str) -> None:
        self.path = path
        self.words = words
        super().__init__(f"{_printable(path)} {words}")


class BadPath(PathError):
    """The path cannot name anything."""


class OutsideBoundary(PathError):
    """The path leads out of the roots: by its own words, or through a link that is on its way."""

    def __init__(self, path: str, roots: Sequence[str], *, through_link: bool = False) -> None:
        self.roots = tuple(roots)
        self.through_link = through_link
        how = "leads through a link to a place outside" if through_link else "is outside"
        inside = " and ".join(_printable(root) for root in self.roots)
        super().__init__(
            path, f"{how} {inside}; use a path inside, or ask the person to add that directory to the session"
        )


class NotAFile(PathError):
    """The path names something whose content cannot be read or written as a file's."""

    def __init__(self, path: str, kind: str) -> None:
        self.kind = kind
        step = "list it, or name a file in it" if kind == "directory" else "only regular files are read and written"
        super().__init__(path, f"is a {kind}, not a file; {step}")


class TooLarge(PathError):
    """The file has more bytes than the caller takes; `size` is None when only that much is known."""

    def __init__(self, path: str, size: int | None, max_bytes: int) -> None:
        self.size = size
        self.max_bytes = max_bytes
        has = f"has {size:,} bytes" if size is not None else "has more bytes than it said"
        super().__init__(path, f"{has}; the limit is {max_bytes:,}; read a part of it, or search in it")


class NotText(PathError):
    """The file is not UTF-8 text: the first byte that is not lies at `offset`."""

    def __init__(self, path: str, offset: int) -> None:
        self.offset = offset
        super().__init__(
            path, f"is not UTF-8 text (see byte {offset:,}); it may be binary: use a command that reads it"
        )


class FileProblem(PathError):
    """The operating system refused; `errno` has the reason."""

    def __init__(self, path: str, errno: int) -> None:
        self.errno = errno
        super().__init__(path, _PROBLEMS.get(errno) or f"cannot be used: {os.strerror(errno)}")


def translate(error: OSError, path: str, roots: Sequence[str]) -> PathError:
    """Make our error of the operating system's about a path."""
    errno = error.errno or codes.EIO
    if errno == codes.EXDEV:
        return OutsideBoundary(path, roots, through_link=True)
    if errno == codes.EISDIR:
        return NotAFile(path, "directory")
    if errno in (codes.ENXIO, codes.ENODEV, codes.EOPNOTSUPP):
        return NotAFile(path, "socket or device")
    return FileProblem(path, errno)


_PROBLEMS = {
    codes.ENOENT: "does not exist; list the directory to see what is there",
    codes.ENOTDIR: "has a file where a directory should be; list the directories above it to see what is there",
    codes.EACCES: "may not be used so by this user; change its permissions, or leave it",
    codes.EPERM: "may not be used so by this user; change its permissions, or leave it",
    codes.EROFS: "is on a disk that cannot be written; use another place",
    codes.ENOSPC: "is on a disk that is full; free some space on it",
    codes.EDQUOT: "is on a disk where your quota is used up; free some space on it",
    codes.ENAMETOOLONG: "is too long, or too deep, to be opened; use a shorter one, or start further down",
    codes.ELOOP: "leads through links that never end, or that only the kernel can follow; name the file itself",
    codes.EMFILE: "cannot be opened: this process has too many files open; raise the limit (ulimit -n)",
    codes.EBUSY: "is being changed while it is read; try again when that is over",
}


def _printable(path: str) -> str:
    return visible(path) or "''"
