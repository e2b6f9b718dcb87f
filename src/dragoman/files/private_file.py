"""A small file of the person's own under the home: read whole, replaced whole, with one writer at a time.

Readers need no lock, because the file is only ever replaced. A file that others could have written, or for secrets
read, is refused.
"""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from dragoman.errors import DragomanError
from dragoman.files.replacement import replace_file

MAX_BYTES = 16 * 1024 * 1024
"""Far more than a person decides or types in a life."""

LOCK_TIMEOUT_S = 5.0
"""A holder writes one small file; if it takes longer it is stopped, or its disk is."""

_PAUSE_S = 0.01


class PrivateFileUnusable(DragomanError):
    """A private file cannot be used; each kind of file has its own class."""

    content: ClassVar[str]
    """The word for its content, in the plural if the file holds several things."""

    def __init__(self, path: Path, problem: str, remedy: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"the {self.content} in {path} cannot be used: {problem}; {remedy}")


E = TypeVar("E", bound=PrivateFileUnusable)


class Exposed(OSError):
    """The file is not its owner's alone; `by_mode` when a chmod would make it so."""

    def __init__(self, problem: str, *, by_mode: bool = False) -> None:
        self.problem = problem
        self.by_mode = by_mode
        super().__init__(0, problem)


class PrivateFile:
    """One such file; other users may neither write nor read a `secret` one. All methods raise OSError."""

    def __init__(self, path: Path, *, secret: bool = False) -> None:
        self.path = path
        self._forbidden = stat.S_IRWXG | stat.S_IRWXO if secret else stat.S_IWGRP | stat.S_IWOTH
        self._problem = "other users may read or write it" if secret else "others can write it"

    def read(self) -> bytes:
        """Return its content; raises FileNotFoundError, and Exposed."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            if self.path.is_symlink():
                raise Exposed("it is a link") from None
            raise
        try:
            self._check(os.fstat(descriptor))
            with open(descriptor, "rb", closefd=False) as file:
                return file.read(MAX_BYTES)
        finally:
            os.close(descriptor)

    def replace(self, data: bytes) -> None:
        """Put this in its place, whole or not at all, readable for its owner only."""
        replace_file(self.path, data, mode=0o600)

    @contextmanager
    def writing(self) -> Generator[None]:
        """Be the only writer, so that two processes do not lose each other's change; raises TimeoutError."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self.path.with_suffix(".lock"), flags, 0o600)
        try:
            _wait_for_lock(descriptor)
            yield
        finally:
            os.close(descriptor)

    def _check(self, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise Exposed("it is no regular file")
        if status.st_uid != os.geteuid():
            raise Exposed("it belongs to another user")
        if status.st_mode & self._forbidden:
            raise Exposed(self._problem, by_mode=True)


class PrivateJson(Generic[E]):
    """A private file of JSON, which raises one error for each failure of the system."""

    def __init__(self, file: PrivateFile, unusable: type[E], *, start_again: str, make_private: str = "") -> None:
        self._file = file
        self._unusable = unusable
        self._start_again = start_again
        self._make_private = make_private or start_again
        """The remedy for a file that only has the wrong mode."""

    def read(self) -> bytes:
        """Return its content; raises OSError, which `explain` translates unless the caller knows what it means."""
        return self._file.read()

    @contextmanager
    def writing(self) -> Generator[None]:
        """Be the only writer."""
        try:
            with self._file.writing():
                yield
        except OSError as error:
            raise self.explain(error) from None

    def write(self, value: Any) -> None:
        """Put a value in the place of the one before, in lines that a person can read; only while `writing`."""
        self._file.replace(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")

    def explain(self, error: OSError) -> E:
        """Return the error to raise for a failure of the system."""
        path = self._file.path
        if isinstance(error, TimeoutError):
            return self._unusable(path, "another process is writing them", "try again")
        if isinstance(error, Exposed):
            return self._unusable(path, error.problem, self._make_private if error.by_mode else self._start_again)
        problem = error.strerror or type(error).__name__
        return self._unusable(path, problem, next_step(error, "see that this user can read and write it"))


def next_step(error: OSError, otherwise: str) -> str:
    """Return the next step for a file that could not be written; `otherwise` unless the disk is full."""
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return "free some space on that disk, then try again" if is_full else otherwise


def _wait_for_lock(descriptor: int) -> None:
    end = time.monotonic() + LOCK_TIMEOUT_S
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise TimeoutError(0, "another process holds its lock") from None
            time.sleep(_PAUSE_S)
