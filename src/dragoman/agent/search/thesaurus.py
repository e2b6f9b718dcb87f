"""The thesaurus: which words and phrases stand for the same, so that "who wrote this?" finds `blame`.

`thesaurus.txt` has a group a line, its terms between commas; lines that begin with `#` are comments. The number of a
group is a concept. A term is found in any form of its words (plural, -ing, -ed). A query is taken apart into the
longest terms: who asks for a "pull request" does not want to pull anything. A text has the concepts of all terms in it,
also of those within others.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from dragoman.agent.search.words import all_words, stem

_FILE = Path(__file__).with_suffix(".txt")
_NONE: frozenset[int] = frozenset()


class Term(NamedTuple):
    """What stands in a text: words of the thesaurus, or a word that it does not have."""

    words: Sequence[str]
    concepts: frozenset[int]


class Thesaurus:
    """Finds the concepts of a text."""

    def __init__(self, groups: Iterable[Iterable[str]]) -> None:
        self._concepts: dict[tuple[str, ...], frozenset[int]] = {}
        self._longest: dict[str, int] = {}
        """How many words the longest term has that begins with this one."""
        for number, terms in enumerate(groups):
            for term in terms:
                self._add(tuple(stem(word) for word in all_words(term)), number)

    def read(self, words: Sequence[str]) -> list[Term]:
        """Take a text apart into the longest terms; a phrase also stands for what the phrases in it do."""
        stems = [stem(word) for word in words]
        terms: list[Term] = []
        place = 0
        while place < len(stems):
            end = place + self._match(stems, place)
            terms.append(Term(words[place:end], self._meant(tuple(stems[place:end]))))
            place = end
        return terms

    def concepts(self, words: Sequence[str]) -> set[int]:
        """Give the concepts of all terms in a text."""
        stems = [stem(word) for word in words]
        found: set[int] = set()
        for place, first in enumerate(stems):
            for length in range(1, self._longest.get(first, 0) + 1):
                found |= self._concepts.get(tuple(stems[place : place + length]), _NONE)
        return found

    def _add(self, key: tuple[str, ...], number: int) -> None:
        self._concepts[key] = self._concepts.get(key, _NONE) | {number}
        self._longest[key[0]] = max(len(key), self._longest.get(key[0], 1))

    def _match(self, stems: Sequence[str], place: int) -> int:
        for length in range(self._longest.get(stems[place], 1), 1, -1):
            if tuple(stems[place : place + length]) in self._concepts:
                return length
        return 1

    def _meant(self, key: tuple[str, ...]) -> frozenset[int]:
        within = (key[start:end] for start, end in combinations(range(len(key) + 1), 2) if 1 < end - start < len(key))
        return self._concepts.get(key, _NONE).union(*(self._concepts.get(part, _NONE) for part in within))


def read_groups() -> list[list[str]]:
    """Read the terms of each group."""
    text = _FILE.read_text(encoding="utf-8")
    return [line.split(", ") for line in text.splitlines() if line and not line.startswith("#")]


@cache
def load_thesaurus() -> Thesaurus:
    """Give the thesaurus of this process, read on first use."""
    return Thesaurus(read_groups())
