"""The directories of a session, and all that may be done in them."""

import errno
import os
from collections.abc import Callable, Generator, Sequence
from typing import BinaryIO, TypeVar

from dragoman.files.content import (
    READ,
    FileIdentity,
    check_regular,
    decode,
    identify,
    identify_content,
    kind_of,
    read_all,
)
from dragoman.files.directory import LIST, DirectoryEntry, FoundPath, entries, walk
from dragoman.files.errors import FileProblem, OutsideBoundary, PathError, translate
from dragoman.files.opener import Opener, best_opener
from dragoman.files.path import Location, Root, check, is_absolute, locate, split
from dragoman.files.replacement import remove, replace

T = TypeVar("T")


class Boundary:
    """Some directories that no path given here can leave, also while the disk changes.

    The first is the base of relative paths. All methods may be called from any thread, and each raises
    a PathError: BadPath, OutsideBoundary, NotAFile, TooLarge, NotText or FileProblem.
    The directories stay open for as long as the boundary, or a location in it, is held.
    """

    def __init__(self, roots: Sequence[str], *, opener: Opener | None = None) -> None:
        if not roots:
            raise ValueError("a boundary needs at least one directory")
        self._roots = tuple(Root(root) for root in roots)
        self._opener = opener or best_opener()

    @property
    def roots(self) -> tuple[str, ...]:
        """The directories, as they were given."""
        return tuple(root.path for root in self._roots)

    def resolve(self, path: str) -> Location:
        """Find the root that a path names, without a look at the disk; raises BadPath, OutsideBoundary."""
        check(path)
        parts = split(path)
        if not is_absolute(path):
            base = self._roots[0]
            if ".." not in parts and len(self._roots) == 1:
                return Location(base, parts)
            parts = (*split(base.path), *parts)
        location = locate(self._roots, parts)
        if location is None:
            raise OutsideBoundary(path, self.roots)
        return location

    def open_read(self, path: str) -> BinaryIO:
        """Open a regular file for reading."""
        return os.fdopen(self._open_file(path), "rb")

    def read_bytes(self, path: str, max_bytes: int) -> bytes:
        """Read a whole file, if it has no more than this many bytes."""
        return self._with_file(path, lambda fd: read_all(fd, path, max_bytes))

    def read_text(self, path: str, max_bytes: int) -> str:
        """Read a whole file as UTF-8, its line ends as they are."""
        return decode(self.read_bytes(path, max_bytes), path)

    def write_bytes(self, path: str, data: bytes, *, sync: bool = False) -> None:
        """Write a whole file, all or nothing; make it, and directories above it, where they are missing.

        A link stays, and its target is written. With `sync`, it then survives a power cut.
        """

        def action(directory: int, name: str) -> None:
            _refuse_dot(name)
            replace(directory, name, path, data, sync=sync)

        with self._translating(path):
            self._opener.act(self._roots, self.resolve(path), action, make=True)

    def remove(self, path: str) -> None:
        """Remove a file, or a link itself; not a directory."""

        def action(directory: int, name: str) -> None:
            _refuse_dot(name)
            remove(directory, name, path)

        with self._translating(path):
            self._opener.act(self._roots, self.resolve(path), action)

    def stat(self, path: str) -> os.stat_result:
        """Return the system's facts about a file or directory, links followed."""
        with self._translating(path):
            return self._opener.act(self._roots, self.resolve(path), _stat)

    def exists(self, path: str) -> bool:
        """Whether there is something, links followed; outside the boundary that is not told."""
        try:
            self.stat(path)
        except FileProblem as problem:
            if problem.errno in (errno.ENOENT, errno.ENOTDIR):
                return False
            raise
        return True

    def identity(self, path: str, *, content: bool = False) -> FileIdentity:
        """Return the identity of the file as it is now; with `content`, with the digest of its content."""
        return self._with_file(path, identify_content if content else identify)

    def list_directory(self, path: str) -> list[DirectoryEntry]:
        """List a directory, by name."""
        with self._translating(path):
            fd = self._opener.open(self._roots, self.resolve(path), LIST)
            try:
                return entries(fd)
            finally:
                os.close(fd)

    def walk(
        self,
        path: str,
        *,
        enter: Callable[[FoundPath], bool] = lambda _: True,
        on_problem: Callable[[PathError], None] = lambda _: None,
    ) -> Generator[FoundPath]:
        """Go through all below a directory, no link followed, into those directories that `enter` lets.

        A directory that cannot be read is told to `on_problem`, and the walk continues.
        """
        with self._translating(path):
            fd = self._opener.open(self._roots, self.resolve(path), LIST)

        def report(below: str, errno: int) -> None:
            on_problem(FileProblem(f"{path.rstrip('/')}/{below}", errno))

        yield from walk(fd, enter, report)

    def _with_file(self, path: str, work: Callable[[int], T]) -> T:
        fd = self._open_file(path)
        try:
            with self._translating(path):
                return work(fd)
        finally:
            os.close(fd)

    def _open_file(self, path: str) -> int:
        with self._translating(path):
            fd = self._opener.open(self._roots, self.resolve(path), READ)
            check_regular(fd, path)
            return fd

    def _translating(self, path: str) -> "_Translating":
        return _Translating(path, self.roots)


class _Translating:
    """Makes ours of an OSError.

    It is no generator: since Python 3.12 an error that passes one through `contextmanager` is in a cycle with its
    frames, and these would keep the boundary and its descriptors until the next collection.
    """

    def __init__(self, path: str, roots: Sequence[str]) -> None:
        self._path = path
        self._roots = roots

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, OSError):
            raise translate(error, self._path, self._roots) from error


def _stat(directory: int, name: str) -> os.stat_result:
    status = os.lstat(name, dir_fd=directory)
    if kind_of(status) == "link":
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return status


def _refuse_dot(name: str) -> None:
    if name == ".":
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
