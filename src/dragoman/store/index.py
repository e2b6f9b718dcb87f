"""The index for listing sessions without opening every log.

The index is a cache. Each process that syncs a log writes the facts that lists show into it. Files that were added or
removed in another way change the time of their project directory. Only a changed directory is listed again, and only
an unknown log is opened. A missing, damaged or older index is rebuilt from the logs. If the index cannot be written, on
a full disk or in a read-only home, an index in memory replaces it until it can. An `Index` belongs to one thread.

After the index was lost, reading every log would delay the first list. That list is made from the logs that changed
last, and the index is rebuilt afterwards (`is_behind`). A file is at least as new as the last seal in it. If its time
was set back, the session can be missing from that one list. A list of one directory, or one that continues from a
cursor, needs the whole index.

Sessions that were never prompted are in the index, with the size of their log, but not in lists. Their process may end
before it syncs the first turn. So each list compares the sizes of these logs, and reads a log that has grown.
"""

import os
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from dragoman.store.block import Header
from dragoman.store.disk import Disk, make_directories
from dragoman.store.log_summary import LogSummary, read_summary
from dragoman.store.naming import (
    list_logs,
    list_projects,
    list_sessions,
    log_name,
    log_size,
    normalise,
    projects_path,
)
from dragoman.store.store import ArchiveFilter

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

VERSION = 3
_SETTLED_NS = 2_000_000_000
"""A directory that changed less than this time ago can change again without a newer time, because of coarse clocks."""

MANY_UNKNOWN = 500
"""The first list waits for reading this many logs that are not in the index, which takes about 30 ms, but not more."""

_BUSY_TIMEOUT_S = 2.0
"""The time that another process has to finish its write, which usually takes well under a millisecond."""

_SCHEMA = f"""
CREATE TABLE project (name TEXT PRIMARY KEY, seen_ns INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE session (
    id TEXT PRIMARY KEY, project TEXT NOT NULL, cwd TEXT NOT NULL, header BLOB NOT NULL,
    title TEXT, updated INTEGER NOT NULL, messages INTEGER NOT NULL,
    archived INTEGER NOT NULL, unprompted_bytes INTEGER);
CREATE INDEX by_time ON session (updated DESC, id DESC) WHERE unprompted_bytes IS NULL;
CREATE INDEX by_cwd ON session (cwd, updated DESC, id DESC) WHERE unprompted_bytes IS NULL;
CREATE INDEX by_project ON session (project, id);
CREATE INDEX unprompted ON session (updated) WHERE unprompted_bytes IS NOT NULL;
PRAGMA user_version = {VERSION};
"""
_PUT = "INSERT OR REPLACE INTO session VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ADD = "INSERT OR IGNORE INTO session VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_UNPROMPTED = "SELECT id, project, unprompted_bytes FROM session WHERE unprompted_bytes IS NOT NULL"
_COLUMNS = "SELECT project, header, title, updated, messages, archived FROM session"
_ORDER = "ORDER BY updated DESC, id DESC LIMIT ?"

_decode_header = msgspec.json.Decoder(Header).decode
_Result = TypeVar("_Result")
_Row = tuple[str, str, str, bytes, str | None, int, int, bool, int | None]


class _Changes(msgspec.Struct, frozen=True):
    """The project directories that changed since the index last looked at them."""

    looked_ns: int
    gone: list[tuple[str]]
    changed: dict[str, int]
    """The time of the last change per directory name."""


class Index:
    """Finds sessions by time and by working directory."""

    def __init__(self, disk: Disk, home: Path) -> None:
        self._disk = disk
        self._home = home
        self._path = home / "index.db"
        self._file: sqlite3.Connection | None = None
        self._memory: sqlite3.Connection | None = None
        """The database that is used while the file cannot be."""
        self._inode: int | None = None
        self.is_behind = False
        """Whether the last list was made without the index, so that the index should be refreshed."""

    def put(self, entry: LogSummary) -> None:
        """Insert or replace the entry of a session."""
        self._do(lambda database: database.execute(_PUT, _row(entry)))

    def remove(self, session_id: str) -> None:
        """Remove the entry of a session."""
        self._do(lambda database: database.execute("DELETE FROM session WHERE id = ?", (session_id,)))

    def page(
        self, cwd: str | None, after: tuple[int, str] | None, limit: int, archived: ArchiveFilter = "exclude"
    ) -> list[LogSummary]:
        """Return sessions that were prompted, newest first, starting after the session `after`."""
        conditions = ["unprompted_bytes IS NULL"]
        values: list[str | int] = []
        if archived != "include":
            conditions.append("archived = ?")
            values.append(archived == "only")
        if cwd is not None:
            conditions.append("cwd = ?")
            values.append(normalise(cwd))
        if after is not None:
            conditions.append("(updated, id) < (?, ?)")
            values += after
        query = f"{_COLUMNS} WHERE {' AND '.join(conditions)} {_ORDER}"
        is_first = cwd is None and after is None

        def select(database: "sqlite3.Connection") -> list[LogSummary]:
            changes = self._find_changes(database)
            self.is_behind = is_first and self._lacks_many(database, changes)
            if self.is_behind:
                return self._read_newest(limit, archived)
            self._refresh(database, changes)
            return [_entry(row) for row in database.execute(query, (*values, limit))]

        return self._do(select)

    def refresh(self) -> None:
        """Update the index with the logs that were added and removed since the last look."""
        self._do(lambda database: self._refresh(database, self._find_changes(database)))
        self.is_behind = False

    def find_unprompted(self, before_ms: int, limit: int) -> list[str]:
        """Return the ids of sessions that were never prompted and not written to since a time, oldest first."""

        def select(database: "sqlite3.Connection") -> list[str]:
            self._refresh(database, self._find_changes(database))
            query = f"{_UNPROMPTED} AND updated < ? ORDER BY updated LIMIT ?"
            return [row[0] for row in database.execute(query, (before_ms, limit))]

        return self._do(select)

    def find_unusable(self) -> list[Path]:
        """Return the files with the name of a log that cannot be listed."""

        def select(database: "sqlite3.Connection") -> list[Path]:
            self._refresh(database, self._find_changes(database))
            known: set[tuple[str, str]] = set(database.execute("SELECT project, id FROM session"))
            return [
                projects_path(self._home) / project / log_name(session_id)
                for project in list_projects(self._home)
                for session_id in list_sessions(self._home, project)
                if (project, session_id) not in known
            ]

        return self._do(select)

    def close(self) -> None:
        """Close the database."""
        self._close_file()
        self._close_memory()

    def _do(self, work: "Callable[[sqlite3.Connection], _Result]") -> _Result:
        """Run `work` on the database file.

        If the file is damaged, delete it and run `work` on a new one. If that fails, use a database in memory.
        """
        import sqlite3

        for _ in range(2):
            try:
                database = self._open_file()
                if database is None:
                    break
                result = work(database)
            except sqlite3.Error as error:
                # A busy index is not damaged. Another process is slow, or was stopped in the middle of a write.
                is_busy = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY
                self._close_file() if is_busy else self._forget_file()
            else:
                self._close_memory()
                return result
        if self._memory is None:
            self._memory = _connect(":memory:")
        return work(self._memory)

    def _open_file(self) -> "sqlite3.Connection | None":
        """Return the database on the disk, or None if no file can be created."""
        if self._file is not None and self._inode == _inode(self._path):
            return self._file
        self._close_file()
        try:
            make_directories(self._disk, self._home)
            # O_EXCL, because closing an existing file would drop the locks that SQLite holds on it in this process.
            with suppress(FileExistsError):
                os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except OSError:
            return None
        self._inode = _inode(self._path)
        self._file = _connect(str(self._path))
        return self._file

    def _close_file(self) -> None:
        database, self._file = self._file, None
        if database is not None:
            database.close()

    def _close_memory(self) -> None:
        database, self._memory = self._memory, None
        if database is not None:
            database.close()

    def _forget_file(self) -> None:
        self._close_file()
        for suffix in ("", "-wal", "-shm", "-journal"):
            with suppress(OSError):
                self._path.with_name(self._path.name + suffix).unlink()

    def _find_changes(self, database: "sqlite3.Connection") -> "_Changes":
        now = time.time_ns()
        found = list_projects(self._home)
        seen: dict[str, int] = dict(database.execute("SELECT name, seen_ns FROM project"))
        changed = {name: changed_ns for name, changed_ns in found.items() if seen.get(name) != changed_ns}
        return _Changes(now, [(name,) for name in seen.keys() - found.keys()], changed)

    def _lacks_many(self, database: "sqlite3.Connection", changes: "_Changes") -> bool:
        lacking = 0
        for project in changes.changed:
            known: int = database.execute("SELECT count(*) FROM session WHERE project = ?", (project,)).fetchone()[0]
            lacking += max(len(list_sessions(self._home, project)) - known, 0)
            if lacking > MANY_UNKNOWN:
                return True
        return False

    def _read_newest(self, limit: int, archived: ArchiveFilter) -> list[LogSummary]:
        """Return the sessions with the newest writes, newest first.

        Logs are read in the order of their files' times, until no other log can be among the first `limit`.
        """
        logs = list_logs(self._home)
        logs.sort(reverse=True)
        found: list[LogSummary] = []
        for begin in range(0, len(logs), limit):
            if len(found) >= limit:
                found.sort(key=lambda entry: (entry.updated_ms, entry.header.id), reverse=True)
                if found[limit - 1].updated_ms > (logs[begin][0] + _SETTLED_NS) // 1_000_000:
                    break
            for _, project, session_id in logs[begin : begin + limit]:
                entry = read_summary(self._disk, self._home, project, session_id)
                if entry is not None and entry.unprompted_bytes is None and _is_wanted(entry, archived):
                    found.append(entry)
        found.sort(key=lambda entry: (entry.updated_ms, entry.header.id), reverse=True)
        return found[:limit]

    def _refresh(self, database: "sqlite3.Connection", changes: "_Changes") -> None:
        """Apply the changes, and read the logs of unprompted sessions that have grown."""
        now, gone, changed = changes.looked_ns, changes.gone, changes.changed
        grown = [
            (session_id, project)
            for session_id, project, size in database.execute(_UNPROMPTED)
            if log_size(self._home, project, session_id) != size
        ]
        if not gone and not changed and not grown:
            return
        # All logs are read before the transaction, so other processes never wait for reading.
        differences = [self._compare(database, name) for name in changed]
        prompted = [read_summary(self._disk, self._home, project, session_id) for session_id, project in grown]
        with database:
            database.execute("BEGIN IMMEDIATE")
            database.executemany("DELETE FROM session WHERE project = ?", gone)
            database.executemany("DELETE FROM project WHERE name = ?", gone)
            for missing, _ in differences:
                database.executemany("DELETE FROM session WHERE id = ? AND project = ?", missing)
            # Entries that another process has written since are newer, so they are kept (_ADD ignores conflicts).
            database.executemany(
                "DELETE FROM session WHERE id = ? AND unprompted_bytes IS NOT NULL", ((row[0],) for row in grown)
            )
            for _, unknown in differences:
                database.executemany(_ADD, unknown)
            database.executemany(_ADD, [_row(entry) for entry in prompted if entry])
            times = [(name, _settled(changed_ns, now)) for name, changed_ns in changed.items()]
            database.executemany("INSERT OR REPLACE INTO project VALUES (?, ?)", times)

    def _compare(self, database: "sqlite3.Connection", project: str) -> tuple[list[tuple[str, str]], list[_Row]]:
        """Return the sessions that are gone from a project, and the rows of its new sessions."""
        # The index is read before the directory, so a log that another process adds to both is not taken for lost.
        known = {row[0] for row in database.execute("SELECT id FROM session WHERE project = ?", (project,))}
        there = list_sessions(self._home, project)
        entries = [read_summary(self._disk, self._home, project, session_id) for session_id in there - known]
        return [(session_id, project) for session_id in known - there], [_row(entry) for entry in entries if entry]


def _connect(path: str) -> "sqlite3.Connection":
    import sqlite3

    database = sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S, isolation_level=None)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = OFF")
        with database:
            database.execute("BEGIN IMMEDIATE")
            _prepare(database)
    except sqlite3.Error:
        database.close()
        raise
    return database


def _prepare(database: "sqlite3.Connection") -> None:
    with closing(database.execute("PRAGMA user_version")) as cursor:
        version: int = cursor.fetchone()[0]
    if version == VERSION:
        return
    for table in ("session", "project"):
        database.execute(f"DROP TABLE IF EXISTS {table}")
    for statement in _SCHEMA.split(";"):
        database.execute(statement)


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return -1


def _settled(changed_ns: int, now_ns: int) -> int:
    return changed_ns if now_ns - changed_ns > _SETTLED_NS else -1


def _row(entry: LogSummary) -> _Row:
    header = entry.header
    encoded = msgspec.json.encode(header)
    cwd = normalise(header.cwd)
    facts = entry.title, entry.updated_ms, entry.message_count, entry.is_archived
    return header.id, entry.project, cwd, encoded, *facts, entry.unprompted_bytes


def _entry(row: tuple[str, bytes, str | None, int, int, int]) -> LogSummary:
    project, header, title, updated_ms, message_count, is_archived = row
    return LogSummary(project, _decode_header(header), title, updated_ms, message_count, bool(is_archived))


def _is_wanted(entry: LogSummary, archived: ArchiveFilter) -> bool:
    return archived == "include" or entry.is_archived == (archived == "only")
