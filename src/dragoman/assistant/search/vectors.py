"""The vectors of all passages, as one matrix, and their cache: a text is embedded once, in this process or another.

The cache is `<home>/search/vectors.db`, a SQLite file with a row for each text: the embedder's name, a hash of the
text, and its vector as float32. No text is kept. A damaged cache is made anew; without a usable one the vectors are
computed each time.
"""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from dragoman.assistant.search.embedder import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dragoman.assistant.search.embedder import Matrix

    Rows = dict[bytes, NDArray[np.float32]]
    import sqlite3


_HASH_BYTES = 16
_FLOAT_BYTES = 4
_MAX_DEVIATION = 1e-3
"""Tolerance of a vector's length; one that is further from 1 did not come from an embedder."""


class VectorMatrix:
    """Knows how close a text is to each of those that it holds."""

    def __init__(self, embedder: Embedder, home: Path) -> None:
        import numpy as np

        self._embedder = embedder
        self._cache = VectorCache(home, embedder.name)
        self._hashes: list[bytes] = []
        self._matrix: Matrix = np.empty((0, embedder.dimensions), np.float32)

    def replace(self, texts: Sequence[str]) -> None:
        """Replace the texts; only those never seen before are embedded."""
        import numpy as np

        hashes = [_hash(text) for text in texts]
        wanted = dict(zip(hashes, texts, strict=True))
        known: Rows = dict(zip(self._hashes, self._matrix, strict=True))
        known |= self._recall([digest for digest in wanted if digest not in known])
        known |= self._make({digest: text for digest, text in wanted.items() if digest not in known})
        self._matrix = np.stack([known[digest] for digest in hashes]) if hashes else self._matrix[:0]
        self._hashes = hashes

    def compare(self, texts: Sequence[str]) -> "Matrix":
        """Give the cosine of each of these texts (rows) with each that is held (columns)."""
        import numpy as np

        # Not by `@`: on a busy machine, BLAS waits for its own threads, several times longer than this takes.
        asked = self._embedder.embed(texts)
        return np.stack([np.einsum("ij,j->i", self._matrix, vector) for vector in asked])

    def _recall(self, hashes: Sequence[bytes]) -> "Rows":
        import numpy as np

        size = self._embedder.dimensions * _FLOAT_BYTES
        found = {digest: row for digest, row in self._cache.get(hashes).items() if len(row) == size}
        rows = np.frombuffer(b"".join(found.values()), np.float32).reshape(len(found), -1 if found else 0)
        sound = np.abs(np.linalg.norm(rows, axis=1) - 1) < _MAX_DEVIATION
        return {digest: row for digest, row, good in zip(found, rows, sound, strict=True) if good}

    def _make(self, texts: Mapping[bytes, str]) -> "Rows":
        if not texts:
            return {}
        rows = dict(zip(texts, self._embedder.embed(list(texts.values())), strict=True))
        self._cache.put({digest: row.tobytes() for digest, row in rows.items()})
        return rows


def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_HASH_BYTES).digest()


MAX_ROWS = 100_000
"""About 100 MB; the oldest go first."""

_VERSION = 1
_BUSY_TIMEOUT_S = 2.0
"""For another process to finish its write: tens of milliseconds for 10,000 vectors."""
_ASKED_AT_ONCE = 500
"""Every build of SQLite takes that many values in one statement."""

_SCHEMA = f"""
CREATE TABLE vector (
    number INTEGER PRIMARY KEY, embedder TEXT NOT NULL, hash BLOB NOT NULL, vector BLOB NOT NULL,
    UNIQUE (embedder, hash));
PRAGMA user_version = {_VERSION};
"""
_ADD = "INSERT OR REPLACE INTO vector (embedder, hash, vector) VALUES (?, ?, ?)"
_PRUNE = "DELETE FROM vector WHERE number <= (SELECT max(number) FROM vector) - ?"
_Result = TypeVar("_Result")


class VectorCache:
    """Keeps the vectors of one embedder."""

    def __init__(self, home: Path, embedder: str) -> None:
        self._path = home / "search" / "vectors.db"
        self._embedder = embedder

    def get(self, hashes: Sequence[bytes]) -> dict[bytes, bytes]:
        """Give those that are there."""

        def select(database: "sqlite3.Connection") -> dict[bytes, bytes]:
            found: dict[bytes, bytes] = {}
            for start in range(0, len(hashes), _ASKED_AT_ONCE):
                asked = hashes[start : start + _ASKED_AT_ONCE]
                marks = ",".join("?" * len(asked))
                query = f"SELECT hash, vector FROM vector WHERE embedder = ? AND hash IN ({marks})"  # noqa: S608 -- marks only
                found.update(database.execute(query, (self._embedder, *asked)))
            return found

        return self._do(select) or {}

    def put(self, vectors: Mapping[bytes, bytes]) -> None:
        """Keep these, and let the oldest go when there are too many."""

        def insert(database: "sqlite3.Connection") -> None:
            with database:
                database.execute("BEGIN IMMEDIATE")
                database.executemany(_ADD, ((self._embedder, *row) for row in vectors.items()))
                database.execute(_PRUNE, (MAX_ROWS,))

        self._do(insert)

    def _do(self, work: "Callable[[sqlite3.Connection], _Result]") -> _Result | None:
        """Work on the file, on a new one if it turns out to be damaged, or give up: a cache is not worth a failure."""
        import sqlite3

        for _ in range(2):
            try:
                with closing(_connect(self._path)) as database:
                    return work(database)
            except sqlite3.Error as error:
                # A busy cache is not damaged, and one that cannot be opened or is full would not be better when new.
                if getattr(error, "sqlite_errorcode", None) not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                    return None
                self._forget()
            except OSError:
                return None
        return None

    def _forget(self) -> None:
        for suffix in ("", "-wal", "-shm", "-journal"):
            with suppress(OSError):
                self._path.with_name(self._path.name + suffix).unlink()


def _connect(path: Path) -> "sqlite3.Connection":
    import sqlite3

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # SQLite would make the file readable for all; its journals take the rights of the file.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    database = sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S, isolation_level=None)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = OFF")
        _prepare(database)
    except sqlite3.Error:
        database.close()
        raise
    return database


def _prepare(database: "sqlite3.Connection") -> None:
    if _version(database) == _VERSION:
        return
    with database:
        database.execute("BEGIN IMMEDIATE")
        if _version(database) == _VERSION:
            return
        database.execute("DROP TABLE IF EXISTS vector")
        for statement in _SCHEMA.split(";"):
            database.execute(statement)


def _version(database: "sqlite3.Connection") -> int:
    with closing(database.execute("PRAGMA user_version")) as cursor:
        return cursor.fetchone()[0]
