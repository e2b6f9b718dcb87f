"""The entries of a directory, and a walk through all directories below it."""

import errno
import os
from collections.abc import Callable, Generator

import msgspec

from dragoman.files.content import Kind, kind_of
from dragoman.files.path import escape_name

LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

MAX_DEPTH = 100
"""The deepest level of a walk. Each level holds a descriptor, and a process may have as few as 256."""

_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EMLINK)
"""The errors for a directory that was removed or replaced after its name was read."""


class DirectoryEntry(msgspec.Struct, frozen=True):
    """A name in a directory. A link is listed as a link and not as its target."""

    name: str
    kind: Kind
    size: int


class FoundPath(msgspec.Struct, frozen=True):
    """A path below a directory, relative to it."""

    path: str
    kind: Kind


Enter = Callable[[FoundPath], bool]
OnProblem = Callable[[str, int], None]


def entries(fd: int) -> list[DirectoryEntry]:
    """List an open directory, sorted by name. Omit entries that vanish during the listing."""
    found: list[DirectoryEntry] = []
    for item in _scan(fd):
        try:
            status = item.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
        found.append(DirectoryEntry(escape_name(item.name), kind_of(status), status.st_size))
    return found


def walk(fd: int, enter: Enter, on_problem: OnProblem, prefix: str = "", depth: int = 1) -> Generator[FoundPath]:
    """Yield all paths below an open directory, depth first, by name. Follow no links. Close `fd` at the end."""
    try:
        for item in _scan_or_report(fd, prefix, on_problem):
            kind = _quick_kind(item)
            if kind is None:
                continue
            found = FoundPath(prefix + escape_name(item.name), kind)
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
    """Return the kind of an entry, from the directory itself if possible. Return None if the entry is gone."""
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
