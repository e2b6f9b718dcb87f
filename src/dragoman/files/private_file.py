"""A small private file in the home directory: read whole, replaced whole, with one writer at a time.

Readers need no lock, because the file is only ever replaced. A file that other users can write is refused, and so is
a secret file that other users can read.
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
"""Far more than a user enters in a lifetime."""

LOCK_TIMEOUT_S = 5.0
"""How long to wait for the lock. Its holder writes one small file, so a longer wait means a stopped process or disk."""

_PAUSE_S = 0.01


class PrivateFileError(DragomanError):
    """A private file cannot be used. Each kind of file has a subclass."""

    content: ClassVar[str]
    """The noun for its content, in the plural if the file has several entries."""

    def __init__(self, path: Path, problem: str, remedy: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"the {self.content} in {path} cannot be used: {problem}; {remedy}")


E = TypeVar("E", bound=PrivateFileError)


class ExposedFileError(OSError):
    """Other users can access the file. `by_mode` says whether a chmod would fix it."""

    def __init__(self, problem: str, *, by_mode: bool = False) -> None:
        self.problem = problem
        self.by_mode = by_mode
        super().__init__(0, problem)


class PrivateFile:
    """A private file. Other users must not write it, and must not read it if it is `secret`. Methods raise OSError."""

    def __init__(self, path: Path, *, secret: bool = False) -> None:
        self.path = path
        self._forbidden = stat.S_IRWXG | stat.S_IRWXO if secret else stat.S_IWGRP | stat.S_IWOTH
        self._problem = "other users may read or write it" if secret else "other users can write it"
        self._is_secret = secret

    def read(self) -> bytes:
        """Return the content of the file. Raises FileNotFoundError and ExposedFileError."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            if self.path.is_symlink():
                raise ExposedFileError("it is a link") from None
            raise
        try:
            self._check(os.fstat(descriptor))
            with open(descriptor, "rb", closefd=False) as file:
                return file.read(MAX_BYTES)
        finally:
            os.close(descriptor)

    def replace(self, data: bytes) -> None:
        """Replace the content of the file, all or nothing. Only its owner can read it."""
        replace_file(self.path, data, mode=0o600)

    @contextmanager
    def writing(self) -> Generator[None]:
        """Hold the write lock, so that two processes do not lose each other's change. Raises TimeoutError."""
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
            raise ExposedFileError("it is not a regular file")
        if status.st_uid != os.geteuid():
            raise ExposedFileError("it belongs to another user")
        if self._is_secret and status.st_nlink > 1:
            raise ExposedFileError("it has another hard link, which other users may access")
        if status.st_mode & self._forbidden:
            raise ExposedFileError(self._problem, by_mode=True)


class PrivateJson(Generic[E]):
    """A private file of JSON. It raises one class of error for every failure of the system."""

    def __init__(self, file: PrivateFile, unusable: type[E], *, start_again: str, make_private: str = "") -> None:
        self._file = file
        self._unusable = unusable
        self._start_again = start_again
        self._make_private = make_private or start_again
        """The fix for a file with the wrong mode only."""

    def read(self) -> bytes:
        """Return the content of the file. Raises OSError, which `explain` translates unless the caller handles it."""
        return self._file.read()

    @contextmanager
    def writing(self) -> Generator[None]:
        """Hold the write lock. Raises the error of this file."""
        try:
            with self._file.writing():
                yield
        except OSError as error:
            raise self.explain(error) from None

    def write(self, value: Any) -> None:
        """Replace the content with a value as indented JSON. Call it only while `writing`."""
        self._file.replace(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")

    def explain(self, error: OSError) -> E:
        """Return the error to raise for an OSError."""
        path = self._file.path
        if isinstance(error, TimeoutError):
            return self._unusable(path, "another process is writing them", "try again")
        if isinstance(error, ExposedFileError):
            return self._unusable(path, error.problem, self._make_private if error.by_mode else self._start_again)
        problem = error.strerror or type(error).__name__
        return self._unusable(path, problem, next_step(error, "check that this user can read and write it"))


def next_step(error: OSError, otherwise: str) -> str:
    """Return the fix for a file that could not be written. It is `otherwise` unless the disk is full."""
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
