"""The index for searching the messages of one agent's sessions: `<home>/bridge/<agent>/search.db`.

It is an SQLite database with full-text search (FTS5) over all sequences of three letters, so it finds parts of words
as well. It is a cache: a missing, damaged or older file is built again from the histories, and a search reads the
histories that are not in it yet. Without FTS5 in the system's SQLite, or with little space on the disk, there is no
index, and each search reads all histories.

Rows of a session that has changed are written again. So the row numbers are in the order of the last change, and the
newest results can be read first without sorting. Only the last part of a large history is read and written again.

All methods but the constructor run in the one thread of the index, which `run` provides.
"""

import asyncio
import errno
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from dragoman.bridge.delivery.message_text import MessageText, MessageTexts, Role
from dragoman.errors import DragomanError
from dragoman.store.block_log import BlockReader, LogPosition, read_head
from dragoman.store.disk import READ, Disk
from dragoman.store.runs import MessageRun

if TYPE_CHECKING:
    import sqlite3  # loaded with the first use of the index

MIN_INDEXED_CHARS = 3
"""Shorter words are not in the index. A search for nothing else reads the texts in the database."""

_MIN_FREE_BYTES = 64 * 1024 * 1024
"""Space that the index leaves on the disk, so that a cache never takes the last space of a conversation."""

_VERSION = 1
_SCHEMA = f"""
CREATE TABLE session (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, size INTEGER NOT NULL,
    begin_sum INTEGER NOT NULL, offset INTEGER NOT NULL, last INTEGER NOT NULL, sum INTEGER NOT NULL);
CREATE TABLE message (number INTEGER PRIMARY KEY, session INTEGER NOT NULL, seq INTEGER NOT NULL, role TEXT NOT NULL);
CREATE INDEX by_session ON message (session, seq);
CREATE VIRTUAL TABLE content USING fts5(text, tokenize = 'trigram', detail = none);
PRAGMA user_version = {_VERSION};
"""
_SETTINGS = ("journal_mode = WAL", "synchronous = OFF", "secure_delete = ON", "cache_size = -16384")

_FOUND = """SELECT content.rowid, session.id, message.seq, message.role FROM content
CROSS JOIN message ON message.number = content.rowid CROSS JOIN session ON session.number = message.session"""
_REMOVE = "DELETE FROM content WHERE rowid IN (SELECT number FROM message WHERE session = ? AND seq > ?)"

_Result = TypeVar("_Result")


class IndexedFile(NamedTuple):
    """The file of a session's history."""

    session_id: str
    path: str
    start: LogPosition | None = None
    """The position of its first line. None if it has to be read from the file."""


class IndexedMessage(NamedTuple):
    """A message in the index that may have the searched words."""

    number: int
    session_id: str
    seq: int
    role: Role


class SearchIndexError(DragomanError):
    """The index cannot be used now. It was removed, and is built again if that is possible."""


class MessageIndex:
    """Finds messages by words. See the module."""

    def __init__(self, disk: Disk, path: Path) -> None:
        self.sizes: dict[str, int] = {}
        """The size of each history when it was added. Histories with another size have changed."""
        self._disk = disk
        self._path = path
        self._database: sqlite3.Connection | None = None
        self._is_unusable = False
        self._thread: ThreadPoolExecutor | None = None

    async def run(self, work: Callable[[], _Result]) -> _Result:
        """Run a method of the index in its thread. Raises SearchIndexError."""
        return await asyncio.get_running_loop().run_in_executor(self._start(), work)

    def submit(self, work: Callable[[], None]) -> None:
        """Run a method of the index later. If it fails, the index is removed, and the next search notices that."""

        def run() -> None:
            with suppress(SearchIndexError):
                work()

        self._start().submit(run)

    def _start(self) -> ThreadPoolExecutor:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="search-index")
        return self._thread

    def close(self) -> None:
        """Close the database after the running work."""
        if self._thread is not None:
            self._thread.submit(self._close_database)
            self._thread.shutdown(wait=True)
            self._thread = None

    def keep_only(self, session_ids: Iterable[str]) -> None:
        """Remove all sessions except these."""
        kept = set(session_ids)

        def remove(database: "sqlite3.Connection") -> None:
            for session_id in self.sizes.keys() - kept:
                self._remove(database, session_id)

        self._write(remove)

    def remove(self, session_id: str) -> None:
        """Remove a session."""
        self._write(lambda database: self._remove(database, session_id))

    def update(self, files: Sequence[IndexedFile]) -> None:
        """Add the messages of histories, as far as they are new."""

        def add(database: "sqlite3.Connection") -> None:
            for file in files:
                try:
                    size = os.stat(file.path).st_size  # noqa: PTH116 -- of thousands of files
                except OSError:
                    self._remove(database, file.session_id)
                    continue
                if size != self.sizes.get(file.session_id):
                    self._add(database, file, size)

        self._write(add)

    def find(self, words: Sequence[str], before: int | None, limit: int) -> list[IndexedMessage]:
        """Return messages that may have all words, the latest first, after the message with the number `before`.

        They have all parts of the words, in any order.
        """
        parts = dict.fromkeys(part for word in words for part in _parts(word))
        values: list[str | int] = [" AND ".join(parts)] if parts else [_make_pattern(word) for word in words]
        conditions = ["content MATCH ?"] if parts else ["text LIKE ? ESCAPE '\\'"] * len(words)
        if before is not None:
            conditions.append("content.rowid < ?")
            values.append(before)
        query = f"{_FOUND} WHERE {' AND '.join(conditions)} ORDER BY content.rowid DESC LIMIT ?"
        return self._do(lambda database: [IndexedMessage(*row) for row in database.execute(query, (*values, limit))])

    def read(self, numbers: Sequence[int]) -> list[str]:
        """Return the texts of messages."""
        query = "SELECT text FROM content WHERE rowid = ?"
        return self._do(lambda database: [database.execute(query, (number,)).fetchone()[0] for number in numbers])

    def _add(self, database: "sqlite3.Connection", file: IndexedFile, size: int) -> None:
        query = "SELECT number, begin_sum, offset, last, sum FROM session WHERE id = ?"
        known = database.execute(query, (file.session_id,)).fetchone()
        start = file.start or self._read_start(Path(file.path))
        if start is None:
            self._remove(database, file.session_id)
            return
        if known is not None and known[1] == start.checksum and known[2] <= size:
            position = LogPosition(*known[2:])
        else:
            position = start
        messages, position = self._read_messages(Path(file.path), start, position)
        number = None if known is None else known[0]
        if number is not None:
            self._remove_messages(database, number, position.last)
        row = (number, file.session_id, size, start.checksum, position.offset, position.last, position.checksum)
        number = database.execute("INSERT OR REPLACE INTO session VALUES (?, ?, ?, ?, ?, ?, ?)", row).lastrowid
        for message in messages:
            if not message.text:
                continue
            values = number, message.seq, message.role
            at = database.execute("INSERT INTO message VALUES (NULL, ?, ?, ?)", values).lastrowid
            database.execute("INSERT INTO content (rowid, text) VALUES (?, ?)", (at, message.text))
        self.sizes[file.session_id] = size

    def _read_start(self, path: Path) -> LogPosition | None:
        """Return the position of the first line of a history, or None if it cannot be read."""
        try:
            fd = self._disk.open(path, READ)
        except OSError:
            return None
        try:
            head = read_head(fd, path)
        except (OSError, DragomanError):
            return None
        finally:
            os.close(fd)
        return None if head is None else head.start

    def _read_messages(
        self, path: Path, start: LogPosition, position: LogPosition
    ) -> tuple[list[MessageText], LogPosition]:
        """Return the messages after a position, or all if the file was replaced, and the position of the last read."""
        try:
            reader = BlockReader(self._disk, path, position)
        except OSError:
            return [], start
        try:
            texts, messages, before = MessageTexts(), list[MessageText](), position
            while blocks := reader.read():
                before, position = position, reader.position
                runs = [MessageRun(lines, first, 0, count=n) for block in blocks for first, n, lines in block.runs()]
                messages += texts.feed(runs)
            is_replaced = reader.damage is not None and not reader.damage.torn and not messages
        except (OSError, DragomanError):
            return [], start
        finally:
            reader.close()
        if is_replaced and before != start:
            return self._read_messages(path, start, start)
        return [*messages, *texts.finish()], before

    def _remove(self, database: "sqlite3.Connection", session_id: str) -> None:
        found = database.execute("SELECT number FROM session WHERE id = ?", (session_id,)).fetchone()
        if found is not None:
            self._remove_messages(database, found[0], -1)
            database.execute("DELETE FROM session WHERE number = ?", found)
        self.sizes.pop(session_id, None)

    def _remove_messages(self, database: "sqlite3.Connection", session: int, after: int) -> None:
        database.execute(_REMOVE, (session, after))
        database.execute("DELETE FROM message WHERE session = ? AND seq > ?", (session, after))

    def _write(self, work: "Callable[[sqlite3.Connection], None]") -> None:
        def transact(database: "sqlite3.Connection") -> None:
            self._check_space()
            database.execute("BEGIN IMMEDIATE")
            with database:
                work(database)

        self._do(transact)

    def _do(self, work: "Callable[[sqlite3.Connection], _Result]") -> _Result:
        import sqlite3

        if self._is_unusable:
            raise SearchIndexError("this SQLite has no full-text search of parts of words")
        try:
            if self._database is None:
                self._database = self._open()
            return work(self._database)
        except (sqlite3.Error, OSError) as error:
            self._is_unusable = "no such module" in str(error) or "no such tokenizer" in str(error)
            self._close_database()
            self._delete()
            raise SearchIndexError(f"the search index {self._path} was removed: {error}") from error

    def _open(self) -> "sqlite3.Connection":
        import sqlite3

        self._check_space()
        with suppress(FileExistsError):  # only the owner may read it
            os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        database = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        try:
            for setting in _SETTINGS:
                database.execute(f"PRAGMA {setting}")
            if database.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
                database.executescript(_SCHEMA)  # fails in a database of another version, which is then removed
            self.sizes = dict(database.execute("SELECT id, size FROM session"))
        except BaseException:
            database.close()
            raise
        return database

    def _check_space(self) -> None:
        if shutil.disk_usage(self._path.parent).free < _MIN_FREE_BYTES:
            raise OSError(errno.ENOSPC, f"less than {_MIN_FREE_BYTES >> 20} MiB of the disk are free")

    def _close_database(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            database.close()

    def _delete(self) -> None:
        self.sizes = {}
        for suffix in ("", "-wal", "-shm"):
            with suppress(OSError):
                self._path.with_name(self._path.name + suffix).unlink()


def _parts(word: str) -> Iterator[str]:
    """Yield the parts of a word that the index has, quoted. Results must be checked, because it has no order."""
    for begin in range(len(word) - MIN_INDEXED_CHARS + 1):
        part = word[begin : begin + MIN_INDEXED_CHARS].replace('"', '""')
        yield f'"{part}"'


def _make_pattern(word: str) -> str:
    return "%" + word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
