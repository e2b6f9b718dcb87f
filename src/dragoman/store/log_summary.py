"""The summary of a session from its log: its header, and the facts at its end."""

import os
from pathlib import Path

import msgspec

from dragoman.errors import SessionUnreadableError
from dragoman.store.block import Header
from dragoman.store.block_log import read_head
from dragoman.store.disk import READ, Disk
from dragoman.store.log_end import read_log_end
from dragoman.store.naming import has_aside, log_name, projects_path


class LogSummary(msgspec.Struct, frozen=True):
    """The facts about a session in the index."""

    project: str
    header: Header
    title: str | None
    updated_ms: int
    message_count: int
    is_archived: bool = False
    unprompted_bytes: int | None = None
    """The size of the log while no turn was started. None after the first turn started."""


def read_summary(disk: Disk, home: Path, project: str, session_id: str) -> LogSummary | None:
    """Return the summary of a session from the start and the end of its log, or None if the log cannot be used."""
    path = projects_path(home) / project / log_name(session_id)
    try:
        fd = disk.open(path, READ)
    except OSError:
        return None
    try:
        return _read_summary(fd, path, session_id)
    except (OSError, SessionUnreadableError):
        return None  # opening the session by its id raises the error
    finally:
        os.close(fd)


def _read_summary(fd: int, path: Path, session_id: str) -> LogSummary | None:
    head = read_head(fd, path)
    if head is None or head.header.id != session_id:
        return None
    status = os.fstat(fd)
    tail = read_log_end(fd, head.start.offset, status.st_size)
    updated_ms = tail.time if tail.time is not None else status.st_mtime_ns // 1_000_000
    unprompted_bytes = None if tail.prompted or has_aside(path) else status.st_size
    return LogSummary(
        path.parent.name,
        head.header,
        tail.title,
        updated_ms,
        tail.message_count,
        tail.is_archived,
        unprompted_bytes,
    )
