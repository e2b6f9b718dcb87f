"""The directories of a session, and all file operations inside them.

A path is opened beneath a root in one of two ways, which follow the same rules.

In one call. Linux has `openat2`, with which the kernel keeps a path beneath a directory while it opens the path. The C
library has no function for it, so it is called by number (the same on every machine that Python runs on, except Alpha).
https://man7.org/linux/man-pages/man2/openat2.2.html

One directory at a time, for kernels without `openat2` and for the paths that it leaves undecided. Each step opens one
name in a directory that is held by descriptor, and never follows a link. If someone replaces a name with a link, the
step fails and cannot lead elsewhere. The link is then read, and its text is walked under the same rules:

- `..` returns to the parent directory, which is still held by descriptor. The kernel is never asked for it.
- If the text is absolute or climbs above the root, the walk continues in the root that contains the path by name.
  If no root contains it, the path leads outside: EXDEV.
- A magic link of `/proc`, which only the kernel could follow, is treated as its text.
"""

import errno
import os
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from functools import cache
from typing import BinaryIO, Protocol, TypeVar

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
from dragoman.files.errors import FileAccessError, OutsideBoundaryError, PathError, translate
from dragoman.files.path import SEARCH, Location, Parts, Root, check, is_absolute, locate, split
from dragoman.files.replacement import remove, replace

MAX_HOPS = 40
"""The most links in one path, the same as in Linux, so that loops end."""

_PERHAPS_LINK = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)
"""The errors of different systems if O_NOFOLLOW, with or without O_DIRECTORY, meets a link."""

_UNDECIDED = (errno.EXDEV, errno.EAGAIN)
"""The kernel rejects absolute links that lead back inside, and `..` during a concurrent rename."""

_OPENAT2 = 437
_NO_MAGICLINKS = 0x02
_BENEATH = 0x08
_AT_FDCWD = -100

_MISSING = (errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.E2BIG)
"""The errors of old kernels, and of filters such as container seccomp profiles."""

T = TypeVar("T")
OpenAt2 = Callable[[int, bytes, int], int]
DirectoryAction = Callable[[int, str], T]
"""An action on a name in a directory. It follows no links. For a link that it must not touch, it raises ELOOP."""


class Opener(Protocol):
    """Opens locations and acts on them."""

    def open(self, roots: Sequence[Root], location: Location, flags: int) -> int:
        """Open a file or directory and follow links. Raises OSError, with EXDEV outside the roots."""
        ...

    def act(self, roots: Sequence[Root], location: Location, action: DirectoryAction[T], *, make: bool = False) -> T:
        """Act on the last name in its parent directory. Follow links if `action` raises ELOOP."""
        ...


class WalkingOpener:
    """Walks one directory at a time. Works on every system."""

    def open(self, roots: Sequence[Root], location: Location, flags: int) -> int:
        """Open a file or directory."""

        def action(directory: int, name: str) -> int:
            return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)

        return descend(roots, location, action)

    def act(self, roots: Sequence[Root], location: Location, action: DirectoryAction[T], *, make: bool = False) -> T:
        """Act on the last name."""
        return descend(roots, location, action, make=make)


class KernelOpener:
    """Opens a path in one call if the kernel can decide, and one directory at a time otherwise."""

    def __init__(self) -> None:
        self._walking = WalkingOpener()

    def open(self, roots: Sequence[Root], location: Location, flags: int) -> int:
        """Open a file or directory."""
        try:
            return open_beneath(location.root.fd, location.relative, flags)
        except OSError as error:
            if error.errno not in _UNDECIDED:
                raise
        return self._walking.open(roots, location, flags)

    def act(self, roots: Sequence[Root], location: Location, action: DirectoryAction[T], *, make: bool = False) -> T:
        """Act on the last name."""
        directory = self._open_directory_of(location, make=make)
        if directory is None:
            return self._walking.act(roots, location, action, make=make)
        try:
            return action(directory, location.parts[-1])
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
        finally:
            os.close(directory)
        return self._walking.act(roots, location, action, make=make)

    def _open_directory_of(self, location: Location, *, make: bool) -> int | None:
        """Open the parent directory of the last name. Return None if this needs more than one call."""
        if not location.parts or location.parts[-1] in (".", ".."):
            return None
        try:
            return open_beneath(location.root.fd, "/".join(location.parts[:-1]) or ".", SEARCH)
        except OSError as error:
            if error.errno in _UNDECIDED or (make and error.errno == errno.ENOENT):
                return None
            raise


def best_opener() -> Opener:
    """Return the fastest opener that this system supports."""
    return KernelOpener() if has_openat2() else WalkingOpener()


def open_beneath(fd: int, path: str, flags: int) -> int:
    """Open a path that stays beneath a directory. Raises OSError, with EXDEV if the path would leave it."""
    return _load()(fd, os.fsencode(path), flags | os.O_CLOEXEC)


@cache
def has_openat2() -> bool:
    """Return whether this kernel has `openat2` and no filter blocks it."""
    if sys.platform != "linux":
        return False
    try:
        os.close(open_beneath(_AT_FDCWD, ".", os.O_PATH))
    except OSError as error:
        return error.errno not in _MISSING
    return True


@cache
def _load() -> OpenAt2:
    import ctypes

    class How(ctypes.Structure):
        _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))

    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(How), ctypes.c_size_t)
    syscall.restype = ctypes.c_long
    size = ctypes.sizeof(How)

    def openat2(fd: int, path: bytes, flags: int) -> int:
        how = How(flags, 0, _BENEATH | _NO_MAGICLINKS)
        while (result := syscall(_OPENAT2, fd, path, how, size)) < 0:
            if (code := ctypes.get_errno()) != errno.EINTR:
                raise OSError(code, os.strerror(code))
        return result

    return openat2


def descend(roots: Sequence[Root], location: Location, action: DirectoryAction[T], *, make: bool = False) -> T:
    """Walk to a location and act on its last name (`.` for the directory itself). With `make`, create directories."""
    descent = _Descent(roots, location, make=make)
    try:
        return descent.run(action)
    finally:
        descent.close()


class _Descent:
    def __init__(self, roots: Sequence[Root], location: Location, *, make: bool) -> None:
        self._roots = roots
        self._root = location.root
        self._ahead = list(reversed(location.parts))
        self._trail: list[int] = []
        self._make = make
        self._hops = 0

    def run(self, action: DirectoryAction[T]) -> T:
        while self._ahead:
            name = self._ahead.pop()
            if name == "..":
                self._climb()
            elif name != ".":
                try:
                    if not self._ahead:
                        return action(self._here, name)
                    self._enter(name)
                except OSError as error:
                    if error.errno not in _PERHAPS_LINK or not self._follow(name):
                        raise
        return action(self._here, ".")

    def close(self) -> None:
        while self._trail:
            os.close(self._trail.pop())

    @property
    def _here(self) -> int:
        return self._trail[-1] if self._trail else self._root.fd

    def _enter(self, name: str) -> None:
        flags = SEARCH | os.O_NOFOLLOW
        try:
            fd = os.open(name, flags, dir_fd=self._here)
        except FileNotFoundError:
            if not self._make:
                raise
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=self._here)
            fd = os.open(name, flags, dir_fd=self._here)
        self._trail.append(fd)

    def _climb(self) -> None:
        if self._trail:
            os.close(self._trail.pop())
        elif self._root.real:
            self._count_hop()
            self._jump((*self._root.real, "..", *reversed(self._ahead)))

    def _follow(self, name: str) -> bool:
        """Read a link and continue with its text. Return False if the name is not a link."""
        try:
            text = os.readlink(name, dir_fd=self._here)
        except OSError:
            return False
        self._count_hop()
        if is_absolute(text):
            self._jump((*split(text), *reversed(self._ahead)))
        else:
            self._ahead.extend(reversed(split(text)))
        return True

    def _jump(self, parts: Parts) -> None:
        location = locate(self._roots, (*(part for part in parts[:-1] if part != "."), *parts[-1:]))
        if location is None:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        self.close()
        self._root = location.root
        self._ahead = list(reversed(location.parts))

    def _count_hop(self) -> None:
        self._hops += 1
        if self._hops > MAX_HOPS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


class Boundary:
    """A set of directories that no given path can leave, even while the disk changes.

    Relative paths start at the first directory. All methods may be called from any thread. Each raises a PathError:
    InvalidPathError, OutsideBoundaryError, NotAFileError, FileTooLargeError, NotTextError or FileAccessError. The
    directories stay open while the boundary or a location in it is held.
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
        """Find the root that contains a path, without accessing the disk.

        Raises InvalidPathError and OutsideBoundaryError.
        """
        check(path)
        parts = split(path)
        if not is_absolute(path):
            base = self._roots[0]
            if ".." not in parts and len(self._roots) == 1:
                return Location(base, parts)
            parts = (*split(base.path), *parts)
        location = locate(self._roots, parts)
        if location is None:
            raise OutsideBoundaryError(path, self.roots)
        return location

    def open_read(self, path: str) -> BinaryIO:
        """Open a regular file for reading."""
        return os.fdopen(self._open_file(path), "rb")

    def read_bytes(self, path: str, max_bytes: int) -> bytes:
        """Read a whole file of at most `max_bytes` bytes."""
        return self._with_file(path, lambda fd: read_all(fd, path, max_bytes))

    def read_text(self, path: str, max_bytes: int) -> str:
        """Read a whole file as UTF-8 and keep its line ends."""
        return decode(self.read_bytes(path, max_bytes), path)

    def write_bytes(self, path: str, data: bytes, *, sync: bool = False) -> None:
        """Write a whole file, all or nothing. Create the file and its parent directories if they are missing.

        A link is kept and its target is written. With `sync`, the write survives a power failure.
        """

        def action(directory: int, name: str) -> None:
            _refuse_dot(name)
            replace(directory, name, path, data, sync=sync)

        with self._translating(path):
            self._opener.act(self._roots, self.resolve(path), action, make=True)

    def remove(self, path: str) -> None:
        """Remove a file, or a link itself, but not a directory."""

        def action(directory: int, name: str) -> None:
            _refuse_dot(name)
            remove(directory, name, path)

        with self._translating(path):
            self._opener.act(self._roots, self.resolve(path), action)

    def stat(self, path: str) -> os.stat_result:
        """Return the status of a file or directory. Follow links."""
        with self._translating(path):
            return self._opener.act(self._roots, self.resolve(path), _stat)

    def exists(self, path: str) -> bool:
        """Return whether a path exists. Follow links. Raises OutsideBoundaryError outside the boundary."""
        try:
            self.stat(path)
        except FileAccessError as problem:
            if problem.errno in (errno.ENOENT, errno.ENOTDIR):
                return False
            raise
        return True

    def identity(self, path: str, *, content: bool = False) -> FileIdentity:
        """Return the current identity of a file. With `content`, include the digest of its content."""
        return self._with_file(path, identify_content if content else identify)

    def list_directory(self, path: str) -> list[DirectoryEntry]:
        """List a directory, sorted by name."""
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
        """Yield all paths below a directory without following links. Descend into the directories that `enter` accepts.

        A directory that cannot be read is reported to `on_problem`, and the walk continues.
        """
        with self._translating(path):
            fd = self._opener.open(self._roots, self.resolve(path), LIST)

        def report(below: str, errno: int) -> None:
            on_problem(FileAccessError(f"{path.rstrip('/')}/{below}", errno))

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
    """Translates an OSError into a PathError.

    This is not a generator. Since Python 3.12, an error that passes through `contextmanager` is in a reference cycle
    with its frames. These would keep the boundary and its descriptors until the next collection.
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
