"""The files of a project by name, for a person who mentions one: listed once, then searched at every letter.

Hidden files, links and all that `.gitignore` leaves out are not listed. A listing is bounded in number and time, so
that a home directory or a slow disk costs no more than a project; it says whether it is whole.
"""

import time

import msgspec

from dragoman.files.boundary import Boundary
from dragoman.files.directory import FoundPath
from dragoman.files.errors import PathError
from dragoman.files.ignore import IgnoreRules

MAX_FILES = 50_000
"""Of one directory; some 10 MB with their names in small letters."""

MAX_LIST_S = 5.0
"""For one directory: a person has typed the path by then."""

_CHECK_EVERY = 256


class ListedFiles(msgspec.Struct, frozen=True):
    """The files of one directory, by their paths from there."""

    root: str
    paths: list[str]
    folded: list[str]
    """The same in small letters."""
    is_whole: bool
    """Whether there are no more: neither too many, nor a directory that could not be read in time."""


def list_files(root: str, *, max_files: int = MAX_FILES, timeout_s: float = MAX_LIST_S) -> ListedFiles:
    """List the files of a directory, those near its top first; raises PathError."""
    boundary = Boundary([root])
    rules = IgnoreRules(boundary)

    def is_wanted(found: FoundPath) -> bool:
        is_hidden = found.path.startswith(".") or "/." in found.path
        return not is_hidden and not rules.ignores(found.path, is_directory=found.kind == "directory")

    problems: list[PathError] = []
    paths: list[str] = []
    until = time.monotonic() + timeout_s
    for looked, found in enumerate(boundary.walk(".", enter=is_wanted, on_problem=problems.append)):
        if len(paths) >= max_files or (looked % _CHECK_EVERY == 0 and time.monotonic() > until):
            return _sorted(root, paths, is_whole=False)
        if found.kind == "file" and is_wanted(found):
            paths.append(found.path)
    return _sorted(root, paths, is_whole=not problems)


def _sorted(root: str, paths: list[str], *, is_whole: bool) -> ListedFiles:
    paths.sort(key=_nearness)
    return ListedFiles(root, paths, [path.lower() for path in paths], is_whole)


def _nearness(path: str) -> tuple[int, str]:
    return path.count("/"), path


def match_files(listed: ListedFiles, typed: str, limit: int) -> list[str]:
    """Give the paths that fit the typed text, best first: by their name, then by any part, then by letters in order."""
    wanted = typed.lower()
    if not wanted:
        return listed.paths[:limit]
    ranked: tuple[list[str], ...] = ([], [], [], [])
    for path, folded in zip(listed.paths, listed.folded, strict=True):
        rank = _rank(folded, wanted)
        if rank is not None and len(ranked[rank]) < limit:
            ranked[rank].append(path)
    return [path for each in ranked for path in each][:limit]


def _rank(path: str, wanted: str) -> int | None:
    if wanted in path:
        name = path[path.rfind("/") + 1 :]
        if name.startswith(wanted) or path.startswith(wanted):
            return 0
        return 1 if wanted in name else 2
    at = -1
    for letter in wanted:
        at = path.find(letter, at + 1)
        if at < 0:
            return None
    return 3


class FileLists:
    """The listed files of a few directories, kept for a short time; for one thread that may wait for the disk."""

    def __init__(self, *, fresh_s: float, max_kept: int) -> None:
        self._fresh_s = fresh_s
        self._max_kept = max_kept
        self._kept: dict[str, tuple[float, ListedFiles]] = {}

    def of(self, root: str) -> ListedFiles:
        """Give the files of a directory, as they were a short time ago at most; raises PathError."""
        now = time.monotonic()
        when, listed = self._kept.get(root, (0.0, None))
        if listed is not None and now - when < self._fresh_s:
            return listed
        listed = list_files(root)
        self._kept.pop(root, None)
        self._kept[root] = (time.monotonic(), listed)
        while len(self._kept) > self._max_kept:
            self._kept.pop(next(iter(self._kept)), None)
        return listed
