"""The index that finds the passages which share words or concepts with a prompt.

Users paste files and logs next to their question, which usually comes first or last. So fenced code is skipped, and a
long prompt is searched for as four pieces: its first and last lines, and its first and last words. A passage scores
from 0 to 1, by its best piece (see `lexical`).
"""

import asyncio
import re
import threading
from collections.abc import Iterable

import msgspec

from dragoman.assistant.search.item import Passage, SearchItem
from dragoman.assistant.search.lexical import LexicalIndex

MAX_WORDS = 60
"""A prompt up to this length is searched for as a whole. Real questions are shorter."""
_LINE_WORDS = 30
_MAX_CHARACTERS = 4_000
"""Characters from each end. This is more than `MAX_WORDS` words, and keeps a prompt of megabytes cheap."""

_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)


def pieces(prompt: str) -> list[str]:
    """Return the texts to search for. Empty only for a blank prompt."""
    text = _FENCED.sub("\n", prompt).strip() or prompt.strip()
    if len(text) > 2 * _MAX_CHARACTERS:
        text = f"{text[:_MAX_CHARACTERS]}\n{text[-_MAX_CHARACTERS:]}"
    words = text.split()
    if len(words) <= MAX_WORDS:
        return [" ".join(words)] if words else []
    lines = [line.split() for line in text.splitlines() if line.strip()]
    cut = (lines[0][:_LINE_WORDS], lines[-1][-_LINE_WORDS:], words[:MAX_WORDS], words[-MAX_WORDS:])
    return list(dict.fromkeys(" ".join(piece) for piece in cut))


class PassageHit(msgspec.Struct, frozen=True):
    """A found passage, with the key of its item."""

    key: str
    score: float


class SearchIndex:
    """Finds passages by words and concepts. Safe to use from several tasks."""

    def __init__(self) -> None:
        self._lexical = LexicalIndex()
        self._rows: list[tuple[str, Passage]] = []
        self._lock = threading.Lock()

    async def update(self, items: Iterable[SearchItem]) -> None:
        """Replace the indexed items."""
        rows = [(item.key, passage) for item in items for passage in item.passages]
        await asyncio.to_thread(self._update, rows)

    async def search(self, query: str, limit: int) -> list[PassageHit]:
        """Return the best passages, best first. Skips passages that share nothing with the query."""
        return await asyncio.to_thread(self._search, query, limit)

    def _update(self, rows: list[tuple[str, Passage]]) -> None:
        with self._lock:
            if rows != self._rows:
                self._lexical.replace([passage for _, passage in rows])
                self._rows = rows

    def _search(self, query: str, limit: int) -> list[PassageHit]:
        scores: dict[int, float] = {}
        with self._lock:
            for piece in pieces(query):
                for place, score in self._lexical.cover(piece).items():
                    scores[place] = max(score, scores.get(place, 0.0))
            best = sorted(scores.items(), key=lambda found: (-found[1], found[0]))[: max(limit, 0)]
            return [PassageHit(self._rows[place][0], score) for place, score in best]


class SelectedItem(msgspec.Struct, frozen=True):
    """A selected item, with the score of its best passage."""

    key: str
    score: float


async def select(index: SearchIndex, query: str, *, top_k: int, top_n: int, min_score: float) -> list[SelectedItem]:
    """Return at most `top_n` items of the `top_k` best passages, each with at least `min_score`."""
    best: dict[str, float] = {}
    for hit in await index.search(query, top_k):
        if hit.score >= min_score:
            best.setdefault(hit.key, hit.score)
    return [SelectedItem(key, score) for key, score in list(best.items())[:top_n]]
