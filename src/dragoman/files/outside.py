"""Reading where no boundary holds: only for what a person allowed, path by path."""

import os
from typing import BinaryIO

from dragoman.files.content import READ, check_regular, read_all
from dragoman.files.errors import BadPath, translate
from dragoman.files.path import check, is_absolute


def open_outside(path: str) -> BinaryIO:
    """Open any regular file for reading, by its absolute path, links followed.

    Raises BadPath, NotAFile, FileProblem.
    """
    return os.fdopen(_open(path), "rb")


def read_outside(path: str, max_bytes: int) -> bytes:
    """Read any regular file, by its absolute path, links followed.

    Raises BadPath, NotAFile, TooLarge, FileProblem.
    """
    fd = _open(path)
    try:
        return read_all(fd, path, max_bytes)
    except OSError as error:
        raise translate(error, path, ()) from error
    finally:
        os.close(fd)


def _open(path: str) -> int:
    check(path)
    if not is_absolute(path):
        raise BadPath(path, "is not absolute; a path outside the session is given whole")
    try:
        fd = os.open(path, READ)
        check_regular(fd, path)
    except OSError as error:
        raise translate(error, path, ()) from error
    return fd
