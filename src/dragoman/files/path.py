"""Paths as callers write them, and the roots of a boundary that they lead into."""

import errno
import os
import weakref
from collections.abc import Sequence
from pathlib import Path

import msgspec

from dragoman.files.errors import BadPath, FileProblem
from dragoman.text.excerpt import shorten

MAX_PATH_BYTES = 4095
"""The longest path of Linux in one call, without the final NUL; macOS takes less and says so itself."""

SEARCH = int(getattr(os, "O_PATH", getattr(os, "O_SEARCH", os.O_RDONLY))) | os.O_DIRECTORY | os.O_CLOEXEC
"""To hold a directory as a starting point; where the system can, without the right to list it."""

Parts = tuple[str, ...]


def check(path: str) -> None:
    """Raise BadPath unless this can be a path."""
    if not path:
        raise BadPath(path, "is empty; name a file or a directory")
    if "\0" in path:
        raise BadPath(path, "contains a NUL byte; no file can have such a name")
    if path.startswith("~"):
        raise BadPath(path, "begins with ~, which is not expanded here; write the whole path, or ./~ for such a name")
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        raise BadPath(path, "is not valid Unicode; it cannot be written in UTF-8") from None
    if size > MAX_PATH_BYTES:
        raise BadPath(shorten(path, 81), f"is too long: {size:,} bytes, and {MAX_PATH_BYTES:,} are allowed")


def split(path: str) -> Parts:
    """Take a path apart, `..` left as it is; one that must be a directory, by its final slash, ends in `.`."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if parts and path.endswith(("/", "/.")):
        parts.append(".")
    return tuple(parts)


def is_absolute(path: str) -> bool:
    """Whether a path begins at the top."""
    return path.startswith("/")


def shown(name: str) -> str:
    """Return a name from a disk as text that can be sent: bytes that are not UTF-8 are escaped."""
    return name if name.isascii() else os.fsencode(name).decode(errors="backslashreplace")


class Root:
    """A directory that was opened once: it stays the admitted one when another gets its name.

    The descriptor lives as long as the object does, so a thread that still works with it never
    finds another directory under its number.
    """

    def __init__(self, path: str) -> None:
        check(path)
        if not is_absolute(path):
            raise BadPath(path, "is not absolute; a directory of a session is given by its whole path")
        self.path = "/" + os.path.normpath(path).lstrip("/")
        try:
            self.fd = os.open(self.path, SEARCH)
            weakref.finalize(self, os.close, self.fd)
            self.real = split(str(Path(self.path).resolve()))
        except OSError as error:
            raise FileProblem(path, error.errno or errno.EIO) from error
        self.spellings = tuple(dict.fromkeys((split(self.path), self.real)))
        """Its names: as given, and without links, which is how commands print it. They only find it, never admit."""


class Location(msgspec.Struct, frozen=True):
    """The target of a path before any link is followed: a root, and the names below it."""

    root: Root
    parts: Parts

    @property
    def relative(self) -> str:
        """The way down, as the kernel takes it."""
        return "/".join(self.parts) or "."

    @property
    def path(self) -> str:
        """The whole path."""
        return os.path.join(self.root.path, *self.parts)  # noqa: PTH118 -- a Path would lose the final dot


def locate(roots: Sequence[Root], parts: Parts) -> Location | None:
    """Find the innermost root that holds an absolute path, compared part by part; None if there is none.

    The way down keeps its `..` for the kernel. Only a `..` that leaves the root is taken by its words.
    """
    locations = [
        Location(root, rest)
        for root in roots
        for spelling in root.spellings
        if (rest := _way_down(spelling, parts)) is not None
    ]
    return min(locations, key=lambda location: len(location.parts), default=None)


def _way_down(root: Parts, parts: Parts) -> Parts | None:
    depth = len(root)
    if ".." not in parts:
        return parts[depth:] if parts[:depth] == root else None
    stack: list[str] = []
    start: int | None = None if root else 0
    for index, part in enumerate(parts, 1):
        if part != "..":
            stack.append(part)
        elif stack:
            stack.pop()
        if tuple(stack[:depth]) != root:
            start = None
        elif start is None:
            start = index
    return None if start is None else parts[start:]
