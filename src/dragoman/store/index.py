"""The index: what lists of sessions are made of, so that no list opens every log.

It is a cache. Each process that syncs a log writes here what lists say of it; what others brought or took
away by hand shows in the times of the project directories, and only a directory that changed is listed
anew, and only a log that is unknown is opened. A missing, damaged or older index is made anew from the
logs; one that cannot be written at all is replaced by one in memory. An `Index` belongs to one thread.
"""

import os
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from dragoman.store.disk import Disk, make_directories
from dragoman.store.naming import normalise
from dragoman.store.project import Entry, list_projects, list_sessions, read_entry
from dragoman.store.record import Header

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

VERSION = 1
_SETTLED_NS = 2_000_000_000
"""A directory that changed less than this ago may change again without a newer time: the coarsest clocks tick so."""

_BUSY_TIMEOUT_S = 2.0
"""For another process to finish its write, which takes well under a millisecond."""

_SCHEMA = f"""
CREATE TABLE project (name TEXT PRIMARY KEY, seen_ns INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE session (
    id TEXT PRIMARY KEY, project TEXT NOT NULL, cwd TEXT NOT NULL, header BLOB NOT NULL,
    title TEXT, updated INTEGER NOT NULL, messages INTEGER NOT NULL);
CREATE INDEX by_time ON session (updated DESC, id DESC);
CREATE INDEX by_cwd ON session (cwd, updated DESC, id DESC);
CREATE INDEX by_project ON session (project, id);
PRAGMA user_version = {VERSION};
"""
_PUT = "INSERT OR REPLACE INTO session VALUES (?, ?, ?, ?, ?, ?, ?)"
_ADD = "INSERT OR IGNORE INTO session VALUES (?, ?, ?, ?, ?, ?, ?)"
_COLUMNS = "SELECT project, header, title, updated, messages FROM session"
_ORDER = "ORDER BY updated DESC, id DESC LIMIT ?"

_decode_header = msgspec.json.Decoder(Header).decode
_Result = TypeVar("_Result")
_Row = tuple[str, str, str, bytes, str | None, int, int]


class Index:
    """Finds sessions by time and by working directory."""

    def __init__(self, disk: Disk, home: Path) -> None:
        self._disk = disk
        self._home = home
        self._path = home / "index.db"
        self._database: sqlite3.Connection | None = None
        self._inode: int | None = None

    def put(self, entry: Entry) -> None:
        """Take what is known of a session."""
        self._do(lambda database: database.execute(_PUT, _row(entry)))

    def remove(self, session_id: str) -> None:
        """Forget a session."""
        self._do(lambda database: database.execute("DELETE FROM session WHERE id = ?", (session_id,)))

    def page(self, cwd: str | None, after: tuple[int, str] | None, limit: int) -> list[Entry]:
        """Give sessions, newest first, that come after a place in that order."""
        conditions: list[str] = []
        values: list[str | int] = []
        if cwd is not None:
            conditions.append("cwd = ?")
            values.append(normalise(cwd))
        if after is not None:
            conditions.append("(updated, id) < (?, ?)")
            values += after
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""

        def select(database: "sqlite3.Connection") -> list[Entry]:
            self._refresh(database)
            return [_entry(row) for row in database.execute(f"{_COLUMNS} {where} {_ORDER}", (*values, limit))]

        return self._do(select)

    def close(self) -> None:
        """Let go of the database."""
        database, self._database = self._database, None
        if database is not None:
            database.close()

    def _do(self, work: "Callable[[sqlite3.Connection], _Result]") -> _Result:
        """Work on the database, on a new one if this one turns out to be damaged, or on none but memory."""
        import sqlite3

        for _ in range(2):
            try:
                return work(self._open())
            except sqlite3.Error as error:
                # A busy index is not damaged: another process is slow, or was stopped in the middle of a write.
                is_busy = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY
                self.close() if is_busy else self._forget()
        return work(self._use_memory())

    def _open(self) -> "sqlite3.Connection":
        if self._database is not None and self._inode in (None, _inode(self._path)):
            return self._database
        self.close()
        try:
            make_directories(self._disk, self._home)
            # Never opened when it is there: closing it would drop the locks that SQLite holds on it in this process.
            with suppress(FileExistsError):
                os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except OSError:
            return self._use_memory()
        self._inode = _inode(self._path)
        self._database = _connect(str(self._path))
        return self._database

    def _forget(self) -> None:
        self.close()
        for suffix in ("", "-wal", "-shm", "-journal"):
            with suppress(OSError):
                self._path.with_name(self._path.name + suffix).unlink()

    def _use_memory(self) -> "sqlite3.Connection":
        self.close()
        self._inode = None
        self._database = _connect(":memory:")
        return self._database

    def _refresh(self, database: "sqlite3.Connection") -> None:
        """Find out what came and went without our knowing."""
        now = time.time_ns()
        found = list_projects(self._home)
        seen: dict[str, int] = dict(database.execute("SELECT name, seen_ns FROM project"))
        gone = [(name,) for name in seen.keys() - found.keys()]
        changed = {name: changed_ns for name, changed_ns in found.items() if seen.get(name) != changed_ns}
        if not gone and not changed:
            return
        # All reading comes first, so that other processes never wait for it.
        differences = [self._compare(database, name) for name in changed]
        with database:
            database.execute("BEGIN IMMEDIATE")
            database.executemany("DELETE FROM session WHERE project = ?", gone)
            database.executemany("DELETE FROM project WHERE name = ?", gone)
            for missing, _ in differences:
                database.executemany("DELETE FROM session WHERE id = ? AND project = ?", missing)
            for _, unknown in differences:
                database.executemany(_ADD, unknown)
            times = [(name, _settled(changed_ns, now)) for name, changed_ns in changed.items()]
            database.executemany("INSERT OR REPLACE INTO project VALUES (?, ?)", times)

    def _compare(self, database: "sqlite3.Connection", project: str) -> tuple[list[tuple[str, str]], list[_Row]]:
        """Give the sessions that a project has lost, and the rows of those it has got."""
        # The index is asked first: what another process adds to both meanwhile must not look lost.
        known = {row[0] for row in database.execute("SELECT id FROM session WHERE project = ?", (project,))}
        there = list_sessions(self._home, project)
        entries = [read_entry(self._disk, self._home, project, session_id) for session_id in there - known]
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


def _row(entry: Entry) -> _Row:
    header = entry.header
    encoded = msgspec.json.encode(header)
    cwd = normalise(header.cwd)
    return header.id, entry.project, cwd, encoded, entry.title, entry.updated_ms, entry.message_count


def _entry(row: tuple[str, bytes, str | None, int, int]) -> Entry:
    project, header, title, updated_ms, message_count = row
    return Entry(project, _decode_header(header), title, updated_ms, message_count)
