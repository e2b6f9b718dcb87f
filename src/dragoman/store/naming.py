"""The files of a session: their paths, and the directories that hold them.

    <home>/projects/<encoded cwd>/session-<uuid>.jsonl               the log
    <home>/projects/<encoded cwd>/session-<uuid>.damaged-<n>.jsonl   a damaged original, set aside
    <home>/projects/<encoded cwd>/session-<uuid>.version1.jsonl      the original of a converted log
    <home>/locks/session-<uuid>.lock                                 there while a process holds the session
    <home>/index.db                                                  what lists are made of; may be deleted

A working directory is encoded by writing `-` for each separator, and nothing else: `/Users/me/code` is
`-Users-me-code`, and of `C:\\Users\\me`, where `:\\` is one separator, it makes `C-Users-me`. Two
directories may get one name, so the header of each log says whose it is.
"""

import os
import re
from contextlib import suppress
from pathlib import Path

MAX_NAME_BYTES = 200
"""Longest encoded name: file systems allow 255, encrypted ones less."""

_HASH_CHARACTERS = 16
_SESSION_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_LOG_NAME = re.compile(rf"session-({_SESSION_ID.pattern})\.jsonl")
_DRIVE = re.compile(r"([A-Za-z]):[\\/]")


def is_session_id(text: str) -> bool:
    """Tell whether this can name a session: only a UUID in small letters, so that no id is a path."""
    return _SESSION_ID.fullmatch(text) is not None


def check_session_id(text: str) -> None:
    """Raise ValueError for a text that cannot name a session."""
    if not is_session_id(text):
        raise ValueError(f"a session id must be a UUID in small letters, not {text!r}")


def normalise(cwd: str) -> str:
    """Make directories that are the same equal; symbolic links are not followed."""
    if _is_windows(cwd):
        import ntpath

        return ntpath.normpath(cwd)
    normal = os.path.normpath(cwd)
    return normal[1:] if normal.startswith("//") else normal


def is_same_directory(one: str, other: str) -> bool:
    """Tell whether two working directories are the same."""
    return normalise(one) == normalise(other)


def encode_cwd(cwd: str) -> str:
    """Make the name of a project directory; raises ValueError unless `cwd` is absolute."""
    if _is_windows(cwd):
        name = re.sub(r"[\\/]", "-", _DRIVE.sub(r"\1-", cwd, count=1))
    elif cwd.startswith("/"):
        name = cwd.replace("/", "-")
    else:
        raise ValueError(f"a session's cwd must be an absolute path, not {cwd!r}")
    return _shorten(name, cwd)


def projects_path(home: Path) -> Path:
    """Return the path of the project directories."""
    return home / "projects"


def log_path(home: Path, cwd: str, session_id: str) -> Path:
    """Say where a new session's log belongs; raises ValueError for a bad session id or a path that is not absolute."""
    check_session_id(session_id)
    return projects_path(home) / encode_cwd(normalise(cwd)) / log_name(session_id)


def log_name(session_id: str) -> str:
    """Name the log of a session."""
    return f"session-{session_id}.jsonl"


def session_id_of(name: str) -> str | None:
    """Return the session whose log has this name; None for another file."""
    match = _LOG_NAME.fullmatch(name)
    return match[1] if match else None


def aside_path(log: Path, number: int) -> Path:
    """Return the path for a damaged original, beside its log."""
    return log.with_name(f"{log.stem}.damaged-{number}.jsonl")


def version1_path(log: Path) -> Path:
    """Name a place for the original of a log that was converted from version 1, beside it."""
    return log.with_name(f"{log.stem}.version1.jsonl")


def list_version1(home: Path) -> list[Path]:
    """Give the originals of all logs that were converted from version 1."""
    return list(projects_path(home).glob("*/session-*.version1.jsonl"))


def list_unfinished(home: Path) -> list[Path]:
    """Return the files that were to become logs, by a fork or a conversion."""
    return list(projects_path(home).glob("*/session-*.jsonl.new"))


def has_aside(log: Path) -> bool:
    """Tell whether a damaged original of a log was set aside: then it had more in it than it has."""
    return os.path.lexists(aside_path(log, 1))


def lock_path(home: Path, session_id: str) -> Path:
    """Return the path of the lock of a session."""
    return home / "locks" / f"session-{session_id}.lock"


def list_projects(home: Path) -> dict[str, int]:
    """Return the name of each project directory and the time of its last change, in nanoseconds."""
    try:
        with os.scandir(projects_path(home)) as entries:
            return {entry.name: entry.stat().st_mtime_ns for entry in entries if entry.is_dir()}
    except FileNotFoundError:
        return {}


def list_sessions(home: Path, project: str) -> set[str]:
    """Return the ids of the sessions whose logs are in a project directory."""
    try:
        names = os.listdir(projects_path(home) / project)  # noqa: PTH208 -- Path.iterdir makes ten thousand Paths
    except (FileNotFoundError, NotADirectoryError):
        return set()
    return {found for found in map(session_id_of, names) if found is not None}


def list_logs(home: Path) -> list[tuple[int, str, str]]:
    """Return the time of the last change, in nanoseconds, the project and the id of every session."""
    projects = projects_path(home)
    found: list[tuple[int, str, str]] = []
    for project in list_projects(home):
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(projects / project) as entries:
            for entry in entries:
                session_id = session_id_of(entry.name)
                if session_id is not None:
                    with suppress(FileNotFoundError):
                        found.append((entry.stat(follow_symlinks=False).st_mtime_ns, project, session_id))
    return found


def log_size(home: Path, project: str, session_id: str) -> int | None:
    """Return the size of a log in bytes; None when it is not there."""
    try:
        return os.stat(f"{projects_path(home)}/{project}/{log_name(session_id)}").st_size  # noqa: PTH116 -- as above
    except OSError:
        return None


def find_log(home: Path, session_id: str) -> Path | None:
    """Find the log of a session in any project directory."""
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


def _is_windows(cwd: str) -> bool:
    return _DRIVE.match(cwd) is not None or cwd.startswith("\\\\")


def _shorten(name: str, cwd: str) -> str:
    encoded = os.fsencode(name)
    if len(encoded) <= MAX_NAME_BYTES:
        return name
    import hashlib

    digest = hashlib.sha256(os.fsencode(cwd)).hexdigest()[:_HASH_CHARACTERS]
    kept = encoded[: MAX_NAME_BYTES - 1 - _HASH_CHARACTERS].decode("utf-8", "ignore")
    return f"{kept}-{digest}"
