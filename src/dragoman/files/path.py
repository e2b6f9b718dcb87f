"""Paths as callers write them, and the roots of a boundary that contain them."""

import errno
import os
import weakref
from collections.abc import Sequence
from pathlib import Path

import msgspec

from dragoman.files.errors import FileAccessError, InvalidPathError
from dragoman.text.excerpt import shorten

MAX_PATH_BYTES = 4095
"""The longest path that Linux accepts in one call, without the final NUL. macOS accepts less and reports it itself."""

SEARCH = int(getattr(os, "O_PATH", getattr(os, "O_SEARCH", os.O_RDONLY))) | os.O_DIRECTORY | os.O_CLOEXEC
"""Opens a directory as a starting point. If the system supports it, this needs no permission to list the directory."""

Parts = tuple[str, ...]


def check(path: str) -> None:
    """Raise InvalidPathError if a path cannot be valid."""
    if not path:
        raise InvalidPathError(path, "is empty. Name a file or a directory")
    if "\0" in path:
        raise InvalidPathError(path, "contains a NUL byte. No file can have such a name")
    if path.startswith("~"):
        raise InvalidPathError(
            path, "begins with ~, which is not expanded here. Write the absolute path, or ./~ for such a name"
        )
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        raise InvalidPathError(path, "is not valid Unicode. It cannot be written in UTF-8") from None
    if size > MAX_PATH_BYTES:
        raise InvalidPathError(shorten(path, 81), f"is too long: {size:,} bytes, the limit is {MAX_PATH_BYTES:,}")


def split(path: str) -> Parts:
    """Split a path and keep its `..`. A path with a final slash must be a directory, so its parts end in `.`."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if parts and path.endswith(("/", "/.")):
        parts.append(".")
    return tuple(parts)


def is_absolute(path: str) -> bool:
    """Return whether a path is absolute."""
    return path.startswith("/")


def escape_name(name: str) -> str:
    """Return a name from a disk as text that can be sent. Escape bytes that are not UTF-8."""
    return name if name.isascii() else os.fsencode(name).decode(errors="backslashreplace")


def show_from(cwd: str, path: str) -> str:
    """Return an absolute path relative to `cwd` if it is inside, and unchanged otherwise."""
    return "." if path == cwd else path.removeprefix(cwd.rstrip("/") + "/")


class Root:
    """A directory that was opened once. It stays the same directory even if its name is given to another one.

    The descriptor lives as long as the object, so that a thread which still uses it never finds another directory
    under its number.
    """

    def __init__(self, path: str) -> None:
        check(path)
        if not is_absolute(path):
            raise InvalidPathError(path, "is not an absolute path. Session directories must be absolute")
        self.path = "/" + os.path.normpath(path).lstrip("/")
        try:
            self.fd = os.open(self.path, SEARCH)
            weakref.finalize(self, os.close, self.fd)
            self.real = split(str(Path(self.path).resolve()))
        except OSError as error:
            raise FileAccessError(path, error.errno or errno.EIO) from error
        self.spellings = tuple(dict.fromkeys((split(self.path), self.real)))
        """Its paths: as given, and with links resolved, as commands print it. They locate it but grant no access."""


class Location(msgspec.Struct, frozen=True):
    """The target of a path before links are followed: a root and the names below it."""

    root: Root
    parts: Parts

    @property
    def relative(self) -> str:
        """The path relative to the root, as the kernel accepts it."""
        return "/".join(self.parts) or "."

    @property
    def path(self) -> str:
        """The absolute path."""
        return os.path.join(self.root.path, *self.parts)  # noqa: PTH118 -- a Path would lose the final dot


def locate(roots: Sequence[Root], parts: Parts) -> Location | None:
    """Find the innermost root that contains an absolute path, compared part by part. Return None if no root does.

    The relative path keeps its `..` for the kernel. Only a `..` that leaves the root is resolved as text.
    """
    locations = [
        Location(root, rest)
        for root in roots
        for spelling in root.spellings
        if (rest := _relative_parts(spelling, parts)) is not None
    ]
    return min(locations, key=lambda location: len(location.parts), default=None)


def _relative_parts(root: Parts, parts: Parts) -> Parts | None:
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
