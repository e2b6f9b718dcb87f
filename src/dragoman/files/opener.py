"""Opening paths beneath a root, in one of two ways that keep the same rules.

In one call. Linux has `openat2`: the kernel itself keeps a path beneath a directory while it opens it. The C library
has no function for it, so it is called by number (the same on every machine that Python runs on, Alpha aside).
https://man7.org/linux/man-pages/man2/openat2.2.html

One directory at a time, for kernels without `openat2`, and for the paths that it leaves undecided. Each step opens one
name in a directory that is held by descriptor, and never follows a link: swapping a name for a link makes a step fail,
it cannot make it go elsewhere. A link is then read, and its text is walked under the same rule:

- `..` goes back to the directory we came from, which we still hold; the kernel is never asked for it.
- A text that is absolute, or climbs above the root, goes on in the root that holds it by name;
  when there is none, it leads out: EXDEV.
- A link of `/proc` that only the kernel could follow is nothing but its text here.
"""

import errno
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import Protocol, TypeVar

from dragoman.files.path import SEARCH, Location, Parts, Root, is_absolute, locate, split

MAX_HOPS = 40
"""Links in one path, as many as Linux follows; so that loops end."""

_PERHAPS_LINK = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)
"""The errors of systems when O_NOFOLLOW, with or without O_DIRECTORY, meets a link."""

_UNDECIDED = (errno.EXDEV, errno.EAGAIN)
"""The kernel does not let a link lead back in by an absolute path, nor `..` pass while something is being renamed."""

_OPENAT2 = 437
_NO_MAGICLINKS = 0x02
_BENEATH = 0x08
_AT_FDCWD = -100

_MISSING = (errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.E2BIG)
"""The errors of old kernels, and of filters such as those of containers."""

T = TypeVar("T")
OpenAt2 = Callable[[int, bytes, int], int]
DirectoryAction = Callable[[int, str], T]
"""Something done to a name in a directory, links not followed: for one that it may not touch it raises ELOOP."""


class Opener(Protocol):
    """Reaches locations."""

    def open(self, roots: Sequence[Root], location: Location, flags: int) -> int:
        """Open a file or directory, links followed; raises OSError, EXDEV outside the roots."""
        ...

    def act(self, roots: Sequence[Root], location: Location, action: DirectoryAction[T], *, make: bool = False) -> T:
        """Do something to the last name, in the directory that holds it; links followed if `action` raises ELOOP."""
        ...


class WalkingOpener:
    """One directory at a time: for every system."""

    def open(self, roots: Sequence[Root], location: Location, flags: int) -> int:
        """Open a file or directory."""

        def action(directory: int, name: str) -> int:
            return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)

        return descend(roots, location, action)

    def act(self, roots: Sequence[Root], location: Location, action: DirectoryAction[T], *, make: bool = False) -> T:
        """Do something to the last name."""
        return descend(roots, location, action, make=make)


class KernelOpener:
    """In one call where the kernel can decide, else one directory at a time."""

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
        """Do something to the last name."""
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
        """Open the directory that holds the last name; None when that takes more than one call."""
        if not location.parts or location.parts[-1] in (".", ".."):
            return None
        try:
            return open_beneath(location.root.fd, "/".join(location.parts[:-1]) or ".", SEARCH)
        except OSError as error:
            if error.errno in _UNDECIDED or (make and error.errno == errno.ENOENT):
                return None
            raise


def best_opener() -> Opener:
    """Return the fastest opener that this system has."""
    return KernelOpener() if has_openat2() else WalkingOpener()


def open_beneath(fd: int, path: str, flags: int) -> int:
    """Open a path that stays beneath a directory, or raise OSError: EXDEV when it would leave."""
    return _load()(fd, os.fsencode(path), flags | os.O_CLOEXEC)


@cache
def has_openat2() -> bool:
    """Whether this kernel has `openat2`, and no filter keeps it from us."""
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
    """Go to a location and act on its last name (`.` for the directory itself); `make` missing directories."""
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
        """Take the text of a link as the next steps; False if it is no link."""
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
