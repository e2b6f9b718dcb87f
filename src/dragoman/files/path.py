"""Paths as callers write them, taken apart."""

import os

from dragoman.files.errors import BadPath

MAX_PATH_BYTES = 4095
"""What Linux takes in one call, without the final NUL; macOS takes less and says so itself."""

Parts = tuple[str, ...]


def check(path: str) -> None:
    """Raise BadPath unless this can be a path."""
    if not path:
        raise BadPath(path, "is empty; name a file or a directory")
    if "\0" in path:
        raise BadPath(path, "contains a NUL byte; no file can have such a name")
    if path.startswith("~"):
        raise BadPath(path, "begins with ~, which is not expanded here; write the whole path, or ./~ for such a name")
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        raise BadPath(path, "is not valid Unicode; it cannot be written in UTF-8") from None
    if size > MAX_PATH_BYTES:
        raise BadPath(path[:80] + "…", f"is too long: {size:,} bytes, and {MAX_PATH_BYTES:,} are allowed")


def split(path: str) -> Parts:
    """Take a path apart, `..` left as it is; one that must be a directory, by its final slash, ends in `.`."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if parts and path.endswith(("/", "/.")):
        parts.append(".")
    return tuple(parts)


def is_absolute(path: str) -> bool:
    """Whether a path begins at the top."""
    return path.startswith("/")


def shown(name: str) -> str:
    """Give a name from a disk as text that can be sent: bytes that are not UTF-8 are escaped."""
    return name if name.isascii() else os.fsencode(name).decode(errors="backslashreplace")
