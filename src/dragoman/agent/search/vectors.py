"""The vectors of all passages, as one matrix."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.agent.search.cache import VectorCache
from dragoman.agent.search.embedder import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dragoman.agent.search.embedder import Matrix

    Rows = dict[bytes, NDArray[np.float32]]

_HASH_BYTES = 16
_FLOAT_BYTES = 4
_MAX_DEVIATION = 1e-3
"""Of a vector's length from one: what is further off did not come from an embedder."""


class VectorMatrix:
    """Knows how close a text is to each of those that it holds."""

    def __init__(self, embedder: Embedder, home: Path) -> None:
        import numpy as np

        self._embedder = embedder
        self._cache = VectorCache(home, embedder.name)
        self._hashes: list[bytes] = []
        self._matrix: Matrix = np.empty((0, embedder.dimensions), np.float32)

    def replace(self, texts: Sequence[str]) -> None:
        """Hold these texts instead of what was there; only those never seen before are embedded."""
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
