"""Search by words and concepts. A text scores by the share of the query's weight that it covers.

The thesaurus splits a query into terms. A word or concept that occurs in n of N texts has the weight

    idf = ln(1 + (N - n + 0.5) / (n + 0.5))

For a text, a term is worth the larger of two values: the summed weight of its words that occur in the text, and C times
the weight of its rarest concept that occurs in the text (C = 1.6). Long texts contain many words by chance, so each
text is weighted with BM25's factor for one occurrence, limited to 1:

    credit = min(1, (k + 1) / (1 + k (1 - b + b · length / mean length)))        k = 1.2, b = 0.3

    coverage = credit · Σ worth for the text / Σ highest worth        over the terms of the query

The coverage is between 0 and 1. A word that no text has lowers every score equally. Concepts come only from a passage's
text, not from its details.
"""

import math
from collections.abc import Iterable, Iterator, Sequence

from dragoman.assistant.search.item import Passage
from dragoman.assistant.search.thesaurus import STOP_WORDS, Term, all_words, load_thesaurus, stem

CONCEPT_WEIGHT = 1.6
"""The weight of a concept, relative to a word. Chosen on the development half of the benchmark."""
_K = 1.2
_B = 0.3


class LexicalIndex:
    """An index of words and concepts."""

    def __init__(self) -> None:
        self._thesaurus = load_thesaurus()
        self._credits: list[float] = []
        self._word_places: dict[str, list[int]] = {}
        """The texts that contain a word, by its stem."""
        self._places: dict[int, list[int]] = {}
        """The texts that contain a concept."""

    def replace(self, passages: Sequence[Passage]) -> None:
        """Replace the indexed passages."""
        texts = [all_words(passage.text) for passage in passages]
        words = [text + all_words(passage.details) for text, passage in zip(texts, passages, strict=True)]
        mean = sum(map(len, words)) / max(len(words), 1) or 1
        self._credits = [min(1.0, (_K + 1) / (1 + _K * (1 - _B + _B * len(text) / mean))) for text in words]
        self._places, self._word_places = {}, {}
        for place, text in enumerate(words):
            for each in {stem(word) for word in text}:
                self._word_places.setdefault(each, []).append(place)
        for place, text in enumerate(texts):
            for concept in self._thesaurus.concepts(text):
                self._places.setdefault(concept, []).append(place)

    def cover(self, query: str) -> dict[int, float]:
        """Return the coverage of each text that shares a word or concept with the query, by its place."""
        covered: dict[int, float] = {}
        total = 0.0
        for term in distinct(self._thesaurus.read(all_words(query))):
            by_word, word_total = self._find_words(term)
            by_concept, concept_total = self._find_concepts(term)
            total += max(word_total, concept_total)
            for place in by_word.keys() | by_concept.keys():
                weight = max(by_word.get(place, 0.0), by_concept.get(place, 0.0))
                covered[place] = covered.get(place, 0.0) + weight
        return {place: self._credits[place] * weight / total for place, weight in covered.items()}

    def _find_words(self, term: Term) -> tuple[dict[int, float], float]:
        weights: dict[int, float] = {}
        total = 0.0
        for word in term.words:
            places = self._word_places.get(stem(word), [])
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
    """Yield the terms without stop words and without words and concepts of earlier terms."""
    words, concepts = set[str](STOP_WORDS), set[int]()
    for term in terms:
        yield Term([word for word in term.words if word not in words], term.concepts - concepts)
        words.update(term.words)
        concepts |= term.concepts
