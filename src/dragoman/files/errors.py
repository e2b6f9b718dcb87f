"""The errors of a path or of the file that it names.

PathError                   any error of a path, as the caller gave it
├── InvalidPathError        the path cannot name anything
├── OutsideBoundaryError    the path leads out of the directories of the session
├── NotAFileError           the path names a directory, FIFO, socket or device
├── FileTooLargeError       the file exceeds the size limit of the caller
├── NotTextError            the file is not UTF-8 text
└── FileAccessError         the operating system refused
"""

import errno as codes
import os
from collections.abc import Sequence

from dragoman.errors import DragomanError
from dragoman.text import visible


class PathError(DragomanError):
    """A path, or the file that it names, cannot be used."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.words = problem
        super().__init__(f"{_printable(path)} {problem}")


class InvalidPathError(PathError):
    """The path cannot name anything."""


class OutsideBoundaryError(PathError):
    """The path leads out of the roots, either as it is written or through a link."""

    def __init__(self, path: str, roots: Sequence[str], *, through_link: bool = False) -> None:
        self.roots = tuple(roots)
        self.through_link = through_link
        how = "leads outside through a link" if through_link else "is outside"
        inside = " and ".join(_printable(root) for root in self.roots)
        super().__init__(
            path, f"{how} {inside}. Use a path inside, or ask the user to add that directory to the session"
        )


class NotAFileError(PathError):
    """The path names something that has no file content to read or write."""

    def __init__(self, path: str, kind: str) -> None:
        self.kind = kind
        step = "List it, or name a file in it" if kind == "directory" else "Only regular files can be read and written"
        super().__init__(path, f"is a {kind}, not a file. {step}")


class FileTooLargeError(PathError):
    """The file exceeds the limit of the caller. `size` is None if the reported size was too small."""

    def __init__(self, path: str, size: int | None, max_bytes: int) -> None:
        self.size = size
        self.max_bytes = max_bytes
        has = f"has {size:,} bytes" if size is not None else "is larger than reported"
        super().__init__(path, f"{has}, over the limit of {max_bytes:,}. Read parts of it, or search it")


class NotTextError(PathError):
    """The file is not UTF-8 text. The first invalid byte is at `offset`."""

    def __init__(self, path: str, offset: int) -> None:
        self.offset = offset
        super().__init__(
            path, f"is not UTF-8 text (see byte {offset:,}). It may be binary. Use a command that can read it"
        )


class FileAccessError(PathError):
    """The operating system refused. `errno` is its error number."""

    def __init__(self, path: str, errno: int) -> None:
        self.errno = errno
        super().__init__(path, _PROBLEMS.get(errno) or f"cannot be used: {os.strerror(errno)}")


def translate(error: OSError, path: str, roots: Sequence[str]) -> PathError:
    """Translate an error of the operating system into a PathError."""
    errno = error.errno or codes.EIO
    if errno == codes.EXDEV:
        return OutsideBoundaryError(path, roots, through_link=True)
    if errno == codes.EISDIR:
        return NotAFileError(path, "directory")
    if errno in (codes.ENXIO, codes.ENODEV, codes.EOPNOTSUPP):
        return NotAFileError(path, "socket or device")
    return FileAccessError(path, errno)


_PROBLEMS = {
    codes.ENOENT: "does not exist. List the directory to see what is there",
    codes.ENOTDIR: "has a file where a directory should be. List the directories above it to see what is there",
    codes.EACCES: "cannot be used by this user. Change its permissions",
    codes.EPERM: "cannot be used by this user. Change its permissions",
    codes.EROFS: "is on a read-only disk. Use another place",
    codes.ENOSPC: "is on a disk that is full. Free some space on it",
    codes.EDQUOT: "is on a disk on which your quota is used up. Free some space on it",
    codes.ENAMETOOLONG: "is too long or too deep. Use a shorter path",
    codes.ELOOP: "leads through links that form a loop or cannot be followed. Use the file's real path",
    codes.EMFILE: "cannot be opened: this process has too many files open. Raise the limit (ulimit -n)",
    codes.EBUSY: "changed while it was read. Try again",
}


def _printable(path: str) -> str:
    return visible(path) or "''"
