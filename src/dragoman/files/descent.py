"""The way down from a root, one directory at a time: for kernels without `openat2`, and for what it leaves open.

Each step opens one name in a directory that is held by descriptor, and never follows a link:
swapping a name for a link makes a step fail, it cannot make it go elsewhere. A link is then read,
and its text is walked under the same rule:

- `..` goes back to the directory we came from, which we still hold; the kernel is never asked for it.
- A text that is absolute, or climbs above the root, goes on in the root that holds it by name;
  when there is none, it leads out: EXDEV.
- A link of `/proc` that only the kernel could follow is nothing but its text here.
"""

import errno
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from dragoman.files.path import Parts, is_absolute, split
from dragoman.files.root import SEARCH, Place, Root, locate

MAX_HOPS = 40
"""Links in one path, as many as Linux follows; so that loops end."""

_PERHAPS_LINK = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)
"""What systems say when O_NOFOLLOW, with or without O_DIRECTORY, meets a link."""

T = TypeVar("T")
Action = Callable[[int, str], T]
"""Something done to a name in a directory, links not followed: for one that it may not touch it raises ELOOP."""


def descend(roots: Sequence[Root], place: Place, action: Action[T], *, make: bool = False) -> T:
    """Go to a place and act on its last name (`.` if that is where we stand); `make` directories that are missing."""
    descent = _Descent(roots, place, make=make)
    try:
        return descent.run(action)
    finally:
        descent.close()


class _Descent:
    def __init__(self, roots: Sequence[Root], place: Place, *, make: bool) -> None:
        self._roots = roots
        self._root = place.root
        self._ahead = list(reversed(place.parts))
        self._trail: list[int] = []
        self._make = make
        self._hops = 0

    def run(self, action: Action[T]) -> T:
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
        """Take the text of a link as the next steps; False for what is no link."""
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
        place = locate(self._roots, (*(part for part in parts[:-1] if part != "."), *parts[-1:]))
        if place is None:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        self.close()
        self._root = place.root
        self._ahead = list(reversed(place.parts))

    def _count_hop(self) -> None:
        self._hops += 1
        if self._hops > MAX_HOPS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
