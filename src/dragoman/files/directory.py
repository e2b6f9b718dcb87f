"""The entries of a directory, at its top and all the way down."""

import errno
import os
from collections.abc import Callable, Generator

import msgspec

from dragoman.files.content import Kind, kind_of
from dragoman.files.path import shown

LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

MAX_DEPTH = 100
"""Each level of a walk holds a descriptor, and a process may have as few as 256."""

_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EMLINK)
"""The problem of a directory that was removed, or replaced, since its name was read."""


class DirectoryEntry(msgspec.Struct, frozen=True):
    """A name in a directory; a link is itself here, not its target."""

    name: str
    kind: Kind
    size: int


class FoundPath(msgspec.Struct, frozen=True):
    """Something below a directory, by its path from there."""

    path: str
    kind: Kind


Enter = Callable[[FoundPath], bool]
OnProblem = Callable[[str, int], None]


def entries(fd: int) -> list[DirectoryEntry]:
    """List an open directory, by name; entries that vanish meanwhile are left out."""
    found: list[DirectoryEntry] = []
    for item in _scan(fd):
        try:
            status = item.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
        found.append(DirectoryEntry(shown(item.name), kind_of(status), status.st_size))
    return found


def walk(fd: int, enter: Enter, on_problem: OnProblem, prefix: str = "", depth: int = 1) -> Generator[FoundPath]:
    """Go through all below an open directory, which is closed in the end, by name and depth first; follow no link."""
    try:
        for item in _scan_or_report(fd, prefix, on_problem):
            kind = _quick_kind(item)
            if kind is None:
                continue
            found = FoundPath(prefix + shown(item.name), kind)
            yield found
            if kind == "directory" and enter(found):
                below = _open_below(fd, item.name, found.path, on_problem, depth)
                if below is not None:
                    yield from walk(below, enter, on_problem, found.path + "/", depth + 1)
    finally:
        os.close(fd)


def _scan(fd: int) -> list[os.DirEntry[str]]:
    with os.scandir(fd) as items:
        return sorted(items, key=_name)


def _scan_or_report(fd: int, path: str, on_problem: OnProblem) -> list[os.DirEntry[str]]:
    try:
        return _scan(fd)
    except OSError as error:
        on_problem(path, error.errno or errno.EIO)
        return []


def _name(item: os.DirEntry[str]) -> str:
    return item.name


def _quick_kind(item: os.DirEntry[str]) -> Kind | None:
    """Return the kind of a name as the directory itself tells it, if it does; None for a name that is gone."""
    if item.is_symlink():
        return "link"
    if item.is_dir(follow_symlinks=False):
        return "directory"
    if item.is_file(follow_symlinks=False):
        return "file"
    try:
        return kind_of(item.stat(follow_symlinks=False))
    except FileNotFoundError:
        return None


def _open_below(fd: int, name: str, path: str, on_problem: OnProblem, depth: int) -> int | None:
    if depth >= MAX_DEPTH:
        on_problem(path, errno.ENAMETOOLONG)
        return None
    try:
        return os.open(name, LIST | os.O_NOFOLLOW, dir_fd=fd)
    except OSError as error:
        if error.errno not in _GONE:
            on_problem(path, error.errno or errno.EIO)
        return None
