"""Search by words and by concepts: the share of a query's weight that a text has.

A query is taken apart into terms by the thesaurus. A word, or a concept, that n of N texts have weighs

    idf = ln(1 + (N - n + 0.5) / (n + 0.5))

and a term is worth, for a text, the more of what its words weigh that the text has, and of C times what the rarest of
its concepts weighs that the text has (C = 1.3). Texts are credited with BM25's term for one occurrence, cut off at 1,
so that long ones, which have many words by chance, get less:

    credit = min(1, (k + 1) / (1 + k (1 - b + b · length / mean length)))        k = 1.2, b = 0.3

    coverage = credit · Σ worth for the text / Σ highest worth        over the terms of the query

which lies in 0..1; a word that no text has lowers every score alike. SQLite's FTS5 stems the words and finds the
texts, and no more: its `bm25()` took up to 70 ms among 10,000 texts where this takes 3, and gives a word that every
second text has no weight at all, which among few texts is most of them. Where SQLite was built without FTS5, the
words are kept here, with plainer stems. Concepts are those of a passage's text, not of its details.
"""

import math
import weakref
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Protocol

from dragoman.assistant.search.item import Passage
from dragoman.assistant.search.thesaurus import STOP_WORDS, Term, all_words, load_thesaurus, stem

CONCEPT_WEIGHT = 1.3
"""The weight of a word's concept, beside the word itself: chosen on the development half, as the one in `index`."""
_K = 1.2
_B = 0.3


class WordIndex(Protocol):
    """Knows which texts have a word."""

    def replace(self, texts: Sequence[Sequence[str]]) -> None:
        """Replace the texts, each given as its words."""
        ...

    def find(self, word: str) -> Collection[int]:
        """Give the places of the texts that have the word, in any of its forms."""
        ...


class LexicalIndex:
    """An index by words and by concepts."""

    def __init__(self, finder: WordIndex | None = None) -> None:
        self._finder = finder or open_finder()
        self._thesaurus = load_thesaurus()
        self._credits: list[float] = []
        self._places: dict[int, list[int]] = {}
        """Of each concept: the texts that have it."""

    def replace(self, passages: Sequence[Passage]) -> None:
        """Index these passages instead of the former ones."""
        texts = [all_words(passage.text) for passage in passages]
        words = [text + all_words(passage.details) for text, passage in zip(texts, passages, strict=True)]
        self._finder.replace(words)
        mean = sum(map(len, words)) / max(len(words), 1) or 1
        self._credits = [min(1.0, (_K + 1) / (1 + _K * (1 - _B + _B * len(text) / mean))) for text in words]
        self._places = {}
        for place, text in enumerate(texts):
            for concept in self._thesaurus.concepts(text):
                self._places.setdefault(concept, []).append(place)

    def cover(self, query: str) -> dict[int, float]:
        """Give the coverage of each text that has a term of the query, or stands for the same, by its place."""
        covered: dict[int, float] = {}
        total = 0.0
        for term in distinct(self._thesaurus.read(all_words(query))):
            said, most_said = self._find_words(term)
            meant, most_meant = self._find_concepts(term)
            total += max(most_said, most_meant)
            for place in said.keys() | meant.keys():
                weight = max(said.get(place, 0.0), meant.get(place, 0.0))
                covered[place] = covered.get(place, 0.0) + weight
        return {place: self._credits[place] * weight / total for place, weight in covered.items()}

    def _find_words(self, term: Term) -> tuple[dict[int, float], float]:
        weights: dict[int, float] = {}
        total = 0.0
        for word in term.words:
            places = self._finder.find(word)
            weight = self._idf(len(places))
            total += weight
            for place in places:
                weights[place] = weights.get(place, 0.0) + weight
        return weights, total

    def _find_concepts(self, term: Term) -> tuple[dict[int, float], float]:
        weights: dict[int, float] = {}
        rarest_last = sorted((self._places.get(concept, []) for concept in term.concepts), key=len, reverse=True)
        for places in filter(None, rarest_last):
            weights.update(dict.fromkeys(places, CONCEPT_WEIGHT * self._idf(len(places))))
        return weights, max(weights.values(), default=0.0)

    def _idf(self, count: int) -> float:
        return math.log(1 + (len(self._credits) - count + 0.5) / (count + 0.5))


def distinct(terms: Iterable[Term]) -> Iterator[Term]:
    """Yield the terms without stop words, and without the words and concepts of the terms before."""
    words, concepts = set[str](STOP_WORDS), set[int]()
    for term in terms:
        yield Term([word for word in term.words if word not in words], term.concepts - concepts)
        words.update(term.words)
        concepts |= term.concepts


def open_finder() -> WordIndex:
    """Give the finder that this build of SQLite allows."""
    import sqlite3

    try:
        return Fts5()
    except sqlite3.OperationalError:
        return Postings()


class Fts5:
    """Finds words by SQLite's FTS5, in memory."""

    def __init__(self) -> None:
        import sqlite3

        # The index above is used by one thread at a time, not always by the same.
        self._database = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        weakref.finalize(self, self._database.close)  # it is memory only, and goes with its owner
        tokenizer = "porter unicode61 remove_diacritics 2"
        self._database.execute(f"CREATE VIRTUAL TABLE passage USING fts5(text, detail=none, tokenize='{tokenizer}')")

    def replace(self, texts: Sequence[Sequence[str]]) -> None:
        """Replace the texts, each given as its words."""
        self._database.execute("BEGIN")
        self._database.execute("DELETE FROM passage")
        rows = ((place, " ".join(words)) for place, words in enumerate(texts))
        self._database.executemany("INSERT INTO passage (rowid, text) VALUES (?, ?)", rows)
        self._database.execute("COMMIT")

    def find(self, word: str) -> list[int]:
        """Give the places of the texts that have the word, in any of its forms."""
        found = self._database.execute("SELECT rowid FROM passage WHERE passage MATCH ?", (f'"{word}"',))
        return [place for (place,) in found]


class Postings:
    """Finds words by itself, for a SQLite without FTS5."""

    def __init__(self) -> None:
        self._places: dict[str, set[int]] = {}

    def replace(self, texts: Sequence[Sequence[str]]) -> None:
        """Replace the texts, each given as its words."""
        self._places = {}
        for place, words in enumerate(texts):
            for word in words:
                self._places.setdefault(stem(word), set()).add(place)

    def find(self, word: str) -> set[int]:
        """Give the places of the texts that have the word, in any of its forms."""
        return self._places.get(stem(word), set())
