"""The summary of a session that its log gives, of either version: its header, and the facts at its end."""

import os
from pathlib import Path

import msgspec

from dragoman.errors import SessionUnreadable
from dragoman.store import version1
from dragoman.store.block import VERSION, Header
from dragoman.store.block_log import read_head
from dragoman.store.disk import READ, Disk
from dragoman.store.log_end import read_log_end
from dragoman.store.naming import has_aside, log_name, projects_path


class LogSummary(msgspec.Struct, frozen=True):
    """The facts about a session that an index keeps."""

    project: str
    header: Header
    title: str | None
    updated_ms: int
    message_count: int
    is_archived: bool = False
    unprompted_bytes: int | None = None
    """The size of a log in which no turn was begun yet; None once one was."""


def read_summary(disk: Disk, home: Path, project: str, session_id: str) -> LogSummary | None:
    """Read the summary of a session from the beginning and the end of its log; None when it cannot be used."""
    path = projects_path(home) / project / log_name(session_id)
    try:
        fd = disk.open(path, READ)
    except OSError:
        return None
    try:
        return _read_summary(fd, path, session_id)
    except (OSError, SessionUnreadable):
        return None  # a caller that asks for it by its id is told
    finally:
        os.close(fd)


def _read_summary(fd: int, path: Path, session_id: str) -> LogSummary | None:
    head = read_head(fd, path)
    if head is None or head.header.id != session_id:
        return None
    status = os.fstat(fd)
    read_end = read_log_end if head.version == VERSION else version1.read_log_end
    tail = read_end(fd, head.start.offset, status.st_size)
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
