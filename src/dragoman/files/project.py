"""The file names of a project, for a user who mentions one: listed once, then searched at every keystroke.

Hidden files, links and files that `.gitignore` excludes are not listed. A listing is bounded in number and time, so
that a home directory or a slow disk costs no more than a project. It says whether it is complete.
"""

import time

import msgspec

from dragoman.files.boundary import Boundary
from dragoman.files.directory import FoundPath
from dragoman.files.errors import PathError
from dragoman.files.ignore import IgnoreRules

MAX_FILES = 50_000
"""The most files listed per directory: about 10 MB, with their lower-case names."""

MAX_LIST_S = 5.0
"""The time limit per directory. By then, a user has typed the path."""

_CHECK_EVERY = 256


class ListedFiles(msgspec.Struct, frozen=True):
    """The files of one directory, by their relative paths."""

    root: str
    paths: list[str]
    folded: list[str]
    """The same paths in lower case."""
    is_whole: bool
    """Whether the list is complete: not too many files, and all directories could be read in time."""


def list_files(root: str, *, max_files: int = MAX_FILES, timeout_s: float = MAX_LIST_S) -> ListedFiles:
    """List the files of a directory, those near its top first. Raises PathError."""
    boundary = Boundary([root])
    rules = IgnoreRules(boundary)

    def is_wanted(found: FoundPath) -> bool:
        is_hidden = found.path.startswith(".") or "/." in found.path
        return not is_hidden and not rules.ignores(found.path, is_directory=found.kind == "directory")

    problems: list[PathError] = []
    paths: list[str] = []
    until = time.monotonic() + timeout_s
    for seen, found in enumerate(boundary.walk(".", enter=is_wanted, on_problem=problems.append)):
        if len(paths) >= max_files or (seen % _CHECK_EVERY == 0 and time.monotonic() > until):
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
    """Return the paths that match the typed text: by name first, then by any part, then by letters in order."""
    lowered = typed.lower()
    if not lowered:
        return listed.paths[:limit]
    ranked: tuple[list[str], ...] = ([], [], [], [])
    for path, folded in zip(listed.paths, listed.folded, strict=True):
        rank = _rank(folded, lowered)
        if rank is not None and len(ranked[rank]) < limit:
            ranked[rank].append(path)
    return [path for each in ranked for path in each][:limit]


def _rank(path: str, lowered: str) -> int | None:
    if lowered in path:
        name = path[path.rfind("/") + 1 :]
        if name.startswith(lowered) or path.startswith(lowered):
            return 0
        return 1 if lowered in name else 2
    at = -1
    for letter in lowered:
        at = path.find(letter, at + 1)
        if at < 0:
            return None
    return 3


class FileLists:
    """The listed files of a few directories, cached for a short time. For one thread that may block on the disk."""

    def __init__(self, *, fresh_s: float, max_kept: int) -> None:
        self._fresh_s = fresh_s
        self._max_kept = max_kept
        self._kept: dict[str, tuple[float, ListedFiles]] = {}

    def get(self, root: str) -> ListedFiles:
        """Return the files of a directory, at most `fresh_s` seconds old. Raises PathError."""
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
