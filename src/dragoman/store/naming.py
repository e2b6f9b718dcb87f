"""The paths of a session's files, and the directories that contain them.

    <home>/projects/<encoded cwd>/session-<uuid>.jsonl               the log
    <home>/projects/<encoded cwd>/session-<uuid>.damaged-<n>.jsonl   a damaged original, set aside
    <home>/locks/session-<uuid>.lock                                 the process that holds the session
    <home>/locks/held                                                the locks of all held sessions
    <home>/index.db                                                  the index for lists; may be deleted

To encode a working directory, each separator is replaced with `-`. `/Users/me/code` becomes `-Users-me-code`, and
`C:\\Users\\me` becomes `C-Users-me`, because `:\\` is one separator. Two directories can get the same name, so the
header of each log names its directory.
"""

import os
import re
from contextlib import suppress
from pathlib import Path

MAX_NAME_BYTES = 200
"""The longest encoded name. File systems allow 255 bytes, encrypted file systems fewer."""

_HASH_CHARACTERS = 16
_SESSION_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_LOG_NAME = re.compile(rf"session-({_SESSION_ID.pattern})\.jsonl")
_DRIVE = re.compile(r"([A-Za-z]):[\\/]")


def is_session_id(text: str) -> bool:
    """Return whether a text is a session id. Only a lower-case UUID is one, so an id is never a path."""
    return _SESSION_ID.fullmatch(text) is not None


def check_session_id(text: str) -> None:
    """Raise ValueError for a text that is not a session id."""
    if not is_session_id(text):
        raise ValueError(f"a session id must be a lower-case UUID, not {text!r}")


def normalise(cwd: str) -> str:
    """Return the same path for each spelling of a directory. Symbolic links are not followed."""
    if _is_windows(cwd):
        import ntpath

        return ntpath.normpath(cwd)
    normal = os.path.normpath(cwd)
    return normal[1:] if normal.startswith("//") else normal


def is_same_directory(one: str, other: str) -> bool:
    """Return whether two working directories are the same."""
    return normalise(one) == normalise(other)


def encode_cwd(cwd: str) -> str:
    """Return the name of a project directory. Raises ValueError unless `cwd` is absolute."""
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
    """Return the path for the log of a new session. Raises ValueError for a bad session id or a relative path."""
    check_session_id(session_id)
    return projects_path(home) / encode_cwd(normalise(cwd)) / log_name(session_id)


def log_name(session_id: str) -> str:
    """Return the file name of a session's log."""
    return f"session-{session_id}.jsonl"


def session_id_of(name: str) -> str | None:
    """Return the id of the session whose log has this name, or None for another file."""
    match = _LOG_NAME.fullmatch(name)
    return match[1] if match else None


def aside_path(log: Path, number: int) -> Path:
    """Return the path for a damaged original, in the directory of its log."""
    return log.with_name(f"{log.stem}.damaged-{number}.jsonl")


def link_damaged(path: Path) -> Path:
    """Link a damaged file to a second name that is free, and return it."""
    number = 1
    while True:
        aside = aside_path(path, number)
        try:
            os.link(path, aside, follow_symlinks=False)
        except FileExistsError:
            number += 1
        else:
            return aside


def list_unfinished(home: Path) -> list[Path]:
    """Return the unfinished logs of forks and repairs that were cut short."""
    return list(projects_path(home).glob("*/session-*.jsonl.new"))


def has_aside(log: Path) -> bool:
    """Return whether a damaged original of a log was set aside. If so, the log once had more lines."""
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
    """Return the size of a log in bytes, or None if it does not exist."""
    try:
        return os.stat(f"{projects_path(home)}/{project}/{log_name(session_id)}").st_size  # noqa: PTH116 -- as above
    except OSError:
        return None


def find_log(home: Path, session_id: str) -> Path | None:
    """Return the path of a session's log, from any project directory, or None if there is none."""
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
