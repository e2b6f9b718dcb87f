"""Two ways to open what lies beneath a root; both keep the same rules."""

import errno
import os
from collections.abc import Sequence
from typing import Protocol

from dragoman.files import kernel
from dragoman.files.descent import Action, T, descend
from dragoman.files.root import SEARCH, Place, Root

_UNDECIDED = (errno.EXDEV, errno.EAGAIN)
"""The kernel does not let a link lead back in by an absolute path, nor `..` pass while something is being renamed."""


class Opener(Protocol):
    """How places are reached."""

    def open(self, roots: Sequence[Root], place: Place, flags: int) -> int:
        """Open what is there, links followed; raises OSError, EXDEV for what lies outside."""
        ...

    def act(self, roots: Sequence[Root], place: Place, action: Action[T], *, make: bool = False) -> T:
        """Do something to the last name, in the directory that holds it; links followed if `action` raises ELOOP."""
        ...


class WalkingOpener:
    """One directory at a time: for every system."""

    def open(self, roots: Sequence[Root], place: Place, flags: int) -> int:
        """Open what is there."""

        def action(directory: int, name: str) -> int:
            return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)

        return descend(roots, place, action)

    def act(self, roots: Sequence[Root], place: Place, action: Action[T], *, make: bool = False) -> T:
        """Do something to the last name."""
        return descend(roots, place, action, make=make)


class KernelOpener:
    """In one call where the kernel can decide, else one directory at a time."""

    def __init__(self) -> None:
        self._walking = WalkingOpener()

    def open(self, roots: Sequence[Root], place: Place, flags: int) -> int:
        """Open what is there."""
        try:
            return kernel.open_beneath(place.root.fd, place.relative, flags)
        except OSError as error:
            if error.errno not in _UNDECIDED:
                raise
        return self._walking.open(roots, place, flags)

    def act(self, roots: Sequence[Root], place: Place, action: Action[T], *, make: bool = False) -> T:
        """Do something to the last name."""
        directory = self._open_directory_of(place, make=make)
        if directory is None:
            return self._walking.act(roots, place, action, make=make)
        try:
            return action(directory, place.parts[-1])
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
        finally:
            os.close(directory)
        return self._walking.act(roots, place, action, make=make)

    def _open_directory_of(self, place: Place, *, make: bool) -> int | None:
        """Open the directory that holds the last name; None when that takes more than one call."""
        if not place.parts or place.parts[-1] in (".", ".."):
            return None
        try:
            return kernel.open_beneath(place.root.fd, "/".join(place.parts[:-1]) or ".", SEARCH)
        except OSError as error:
            if error.errno in _UNDECIDED or (make and error.errno == errno.ENOENT):
                return None
            raise


def best_opener() -> Opener:
    """Give the fastest that this system has."""
    return KernelOpener() if kernel.is_available() else WalkingOpener()
