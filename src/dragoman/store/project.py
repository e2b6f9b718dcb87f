"""Project directories: which logs they hold, and what each log says of its session."""

import os
from pathlib import Path

import msgspec

from dragoman.errors import SessionUnreadable
from dragoman.store.disk import READ, Disk
from dragoman.store.naming import has_aside, log_name, projects_path, session_id_of
from dragoman.store.reader import read_header
from dragoman.store.record import Header
from dragoman.store.tail import read_tail


class Entry(msgspec.Struct, frozen=True):
    """What an index keeps of a session."""

    project: str
    header: Header
    title: str | None
    updated_ms: int
    message_count: int
    unprompted_bytes: int | None = None
    """The size of a log in which no turn was begun yet; None once one was."""


def list_projects(home: Path) -> dict[str, int]:
    """Give the name of each project directory and when it last changed, in nanoseconds."""
    try:
        with os.scandir(projects_path(home)) as entries:
            return {entry.name: entry.stat().st_mtime_ns for entry in entries if entry.is_dir()}
    except FileNotFoundError:
        return {}


def list_sessions(home: Path, project: str) -> set[str]:
    """Give the ids of the sessions whose logs are in a project directory."""
    try:
        names = os.listdir(projects_path(home) / project)  # noqa: PTH208 -- Path.iterdir makes ten thousand Paths
    except (FileNotFoundError, NotADirectoryError):
        return set()
    return {found for found in map(session_id_of, names) if found is not None}


def log_size(home: Path, project: str, session_id: str) -> int | None:
    """Give the size of a log in bytes; None when it is not there."""
    try:
        return os.stat(f"{projects_path(home)}/{project}/{log_name(session_id)}").st_size  # noqa: PTH116 -- as above
    except OSError:
        return None


def find_log(home: Path, session_id: str) -> Path | None:
    """Find the log of a session in whatever project directory it is."""
    projects = projects_path(home)
    name = log_name(session_id)
    try:
        names = os.listdir(projects)  # noqa: PTH208 -- for the same reason
    except FileNotFoundError:
        return None
    for project in names:
        if os.path.lexists(f"{projects}/{project}/{name}"):
            return projects / project / name
    return None


def read_entry(disk: Disk, home: Path, project: str, session_id: str) -> Entry | None:
    """Read what a log says of its session at its beginning and its end; None when it cannot be used."""
    path = projects_path(home) / project / log_name(session_id)
    try:
        fd = disk.open(path, READ)
    except OSError:
        return None
    try:
        return _read_entry(fd, path, session_id)
    except (OSError, SessionUnreadable):
        return None  # whoever asks for it by its id is told
    finally:
        os.close(fd)


def _read_entry(fd: int, path: Path, session_id: str) -> Entry | None:
    found = read_header(fd, path)
    if found is None or found[0].id != session_id:
        return None
    header, start = found
    status = os.fstat(fd)
    tail = read_tail(fd, start, status.st_size)
    updated_ms = tail.time if tail.time is not None else status.st_mtime_ns // 1_000_000
    unprompted_bytes = None if tail.prompted or has_aside(path) else status.st_size
    return Entry(path.parent.name, header, tail.title, updated_ms, tail.message_count, unprompted_bytes)
