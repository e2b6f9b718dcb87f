"""The index: finds passages by meaning, by their words, and by synonyms of these.

People paste files and logs beside their question, and the mean of a thousand words means nothing. The question stands
first or last. So code between fences is left out, and of a long prompt four pieces are searched for, each by itself:
its first and its last line, cut, and its first and its last words.

For one piece, with the cosine of the two vectors and the coverage as `lexical` has it, a passage scores

    score = (max(0, cosine) + W · coverage) / (1 + W)        W = 2

in 0..1; for a query of several pieces, the best of their scores. Without an embedder, the score is the coverage.
"""

import asyncio
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from dragoman.assistant.search.embedder import Embedder, EmbedderUnavailable, load_embedder
from dragoman.assistant.search.item import Passage, SearchItem
from dragoman.assistant.search.lexical import LexicalIndex
from dragoman.assistant.search.vectors import VectorMatrix

MAX_WORDS = 60
"""A prompt up to this length is looked for as a whole; real questions are shorter."""
_LINE_WORDS = 30
_MAX_CHARACTERS = 4_000
"""From either end: more than `MAX_WORDS` words, and little enough for a prompt of megabytes to cost nothing."""

_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)


def pieces(prompt: str) -> list[str]:
    """Give the texts to look for, at least one unless the prompt is blank."""
    text = _FENCED.sub("\n", prompt).strip() or prompt.strip()
    if len(text) > 2 * _MAX_CHARACTERS:
        text = f"{text[:_MAX_CHARACTERS]}\n{text[-_MAX_CHARACTERS:]}"
    words = text.split()
    if len(words) <= MAX_WORDS:
        return [" ".join(words)] if words else []
    lines = [line.split() for line in text.splitlines() if line.strip()]
    cut = (lines[0][:_LINE_WORDS], lines[-1][-_LINE_WORDS:], words[:MAX_WORDS], words[-MAX_WORDS:])
    return list(dict.fromkeys(" ".join(piece) for piece in cut))


COVERAGE_WEIGHT = 2.0
"""Of the words, beside the vectors: chosen on the development half of the prompts in `bench/data/search`."""


class PassageHit(msgspec.Struct, frozen=True):
    """A passage that was found, by the key of its item."""

    key: str
    score: float


class SearchIndex:
    """Finds passages. `open` makes one; any task may use it."""

    def __init__(self, vectors: VectorMatrix | None, notice: str | None = None) -> None:
        self.engine: Literal["semantic", "lexical"] = "lexical" if vectors is None else "semantic"
        self.notice = notice
        """A notice for the user, to be shown once: the better engine is missing, and how to get it."""
        self._vectors = vectors
        self._lexical = LexicalIndex()
        self._rows: list[tuple[str, Passage]] = []
        self._lock = threading.Lock()

    @classmethod
    async def open(cls, home: Path, load: Callable[[], Embedder] = load_embedder) -> "SearchIndex":
        """Load the engine, in a thread; vectors are kept under `home`."""
        return await asyncio.to_thread(cls._open, home, load)

    async def update(self, items: Iterable[SearchItem]) -> None:
        """Replace the items; only passages never seen before are embedded."""
        rows = [(item.key, passage) for item in items for passage in item.passages]
        await asyncio.to_thread(self._update, rows)

    async def search(self, query: str, limit: int) -> list[PassageHit]:
        """Give the best passages, best first, without those that have nothing in common with the query."""
        return await asyncio.to_thread(self._search, query, limit)

    @classmethod
    def _open(cls, home: Path, load: Callable[[], Embedder]) -> "SearchIndex":
        try:
            return cls(VectorMatrix(load(), home))
        except EmbedderUnavailable as reason:
            return cls(None, _notice(reason))

    def _update(self, rows: list[tuple[str, Passage]]) -> None:
        with self._lock:
            if rows == self._rows:
                return
            self._lexical.replace([passage for _, passage in rows])
            if self._vectors is not None:
                self._vectors.replace([passage.text for _, passage in rows])
            self._rows = rows

    def _search(self, query: str, limit: int) -> list[PassageHit]:
        asked = pieces(query)
        with self._lock:
            if not asked or not self._rows or limit < 1:
                return []
            best = (
                self._rank_by_words(asked, limit) if self._vectors is None else self._rank(self._vectors, asked, limit)
            )
            return [PassageHit(self._rows[place][0], score) for place, score in best]

    def _rank_by_words(self, asked: Sequence[str], limit: int) -> list[tuple[int, float]]:
        scores: dict[int, float] = {}
        for piece in asked:
            for place, score in self._lexical.cover(piece).items():
                scores[place] = max(score, scores.get(place, 0.0))
        return sorted(scores.items(), key=lambda found: (-found[1], found[0]))[:limit]

    def _rank(self, vectors: VectorMatrix, asked: Sequence[str], limit: int) -> list[tuple[int, float]]:
        import numpy as np

        scores = np.maximum(vectors.compare(asked), 0)
        for row, piece in zip(scores, asked, strict=True):
            covered = self._lexical.cover(piece)
            places = np.fromiter(covered.keys(), np.int64, len(covered))
            row[places] += COVERAGE_WEIGHT * np.fromiter(covered.values(), np.float32, len(covered))
        best = scores.max(axis=0) / (1 + COVERAGE_WEIGHT)
        top = np.argpartition(-best, min(limit, len(best)) - 1)[:limit].tolist()
        order = sorted(top, key=lambda place: (-best[place], place))
        return [(place, min(1.0, float(best[place]))) for place in order if best[place] > 0]


def _notice(reason: EmbedderUnavailable) -> str:
    from dragoman.installation import how_to_add

    by_words = f"Tools, rules and references are found by their words only, because {reason}."
    return f"{by_words} wordllama finds them by what they mean; {how_to_add('search')}"


class SelectedItem(msgspec.Struct, frozen=True):
    """An item that was chosen, with the score of its best passage."""

    key: str
    score: float


async def select(index: SearchIndex, query: str, *, top_k: int, top_n: int, min_score: float) -> list[SelectedItem]:
    """Look at the `top_k` best passages and give at most `top_n` of their items, each of at least `min_score`."""
    best: dict[str, float] = {}
    for hit in await index.search(query, top_k):
        if hit.score >= min_score:
            best.setdefault(hit.key, hit.score)
    return [SelectedItem(key, score) for key, score in list(best.items())[:top_n]]
