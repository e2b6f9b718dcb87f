"""The thesaurus: groups of words and phrases with the same meaning, so that "who wrote this?" finds `blame`.

`thesaurus.txt` has one group per line, with its terms separated by commas. Lines that begin with `#` are comments. The
number of a group is a concept. A term matches any form of its words (plural, -ing, -ed). A query is split into the
longest terms, because a "pull request" has nothing to do with pulling. A text has the concepts of all its terms,
including terms inside longer ones.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

_SEPARATORS = re.compile(r"[_\-./:\s]+")
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W_]+")
_VOWELS = "aeiouy"
_SHORT = 4
"""In letters. A shorter word has no ending, and no stem is cut to less by dropping a vowel ("note" is not "not")."""
_UNINFLECTED = frozenset(("news", "series", "used"))

_STOP_WORDS = """
a about all also am an and any are as at be because been before being both but by can could did do does
doing don doesn each for from get give had has have having he her here him his how i if in into is isn it
its just let like ll m make me more most my no not now of on one only or other our out please put re s she
should so some such t than that the their them then there these they this those to too up us ve very want
was we were what when where which who whom why will with would you your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Words of a question that do not name its subject. They are not counted."""


def split_name(name: str) -> str:
    """Split a name in snake, kebab or camel case: `getHTTPStatus` becomes "get HTTP Status"."""
    return _SEPARATORS.sub(" ", _HUMPS.sub(" ", name)).strip()


def all_words(text: str) -> list[str]:
    """Return the words of a text, with names split."""
    return _WORD.findall(_HUMPS.sub(" ", text).lower())


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Return the stem of a word: "merge", "merges", "merging" and "merged" all become "merg"."""
    if len(word) < _SHORT or word in _UNINFLECTED:
        return word
    cut = _cut_verb(_cut_plural(word))
    if len(cut) > _SHORT and cut[-1] in "eiy":
        cut = cut[:-1]
    return cut[:-1] if _is_doubled(cut) else cut


def _cut_plural(word: str) -> str:
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    if word.endswith(("sses", "xes", "ches", "shes", "zes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _cut_verb(word: str) -> str:
    if word.endswith("eed"):
        return word
    for ending in ("ing", "ed"):
        cut = word.removesuffix(ending)
        if cut != word and len(cut) >= _SHORT - 1 and any(letter in _VOWELS for letter in cut):
            return f"{cut}e" if len(cut) < _SHORT and cut[-1] != cut[-2] and cut[-1] not in "wxy" else cut
    return word


def _is_doubled(word: str) -> bool:
    return len(word) >= _SHORT and word[-1] == word[-2] and word[-1] not in _VOWELS


_FILE = Path(__file__).with_suffix(".txt")
_NONE: frozenset[int] = frozenset()


class Term(NamedTuple):
    """A term of a text: words in the thesaurus, or a single unknown word."""

    words: Sequence[str]
    concepts: frozenset[int]


class Thesaurus:
    """Finds the concepts of a text."""

    def __init__(self, groups: Iterable[Iterable[str]]) -> None:
        self._concepts: dict[tuple[str, ...], frozenset[int]] = {}
        self._longest: dict[str, int] = {}
        """The number of words of the longest term that begins with this word."""
        for number, terms in enumerate(groups):
            for term in terms:
                self._add(tuple(stem(word) for word in all_words(term)), number)

    def read(self, words: Sequence[str]) -> list[Term]:
        """Split a text into the longest terms. A phrase also has the concepts of the phrases inside it."""
        stems = [stem(word) for word in words]
        terms: list[Term] = []
        place = 0
        while place < len(stems):
            end = place + self._match(stems, place)
            terms.append(Term(words[place:end], self._concepts_of(tuple(stems[place:end]))))
            place = end
        return terms

    def concepts(self, words: Sequence[str]) -> set[int]:
        """Return the concepts of all terms in a text."""
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

    def _concepts_of(self, key: tuple[str, ...]) -> frozenset[int]:
        within = (key[start:end] for start, end in combinations(range(len(key) + 1), 2) if 1 < end - start < len(key))
        return self._concepts.get(key, _NONE).union(*(self._concepts.get(part, _NONE) for part in within))


def read_groups() -> list[list[str]]:
    """Return the terms of each group."""
    text = _FILE.read_text(encoding="utf-8")
    return [line.split(", ") for line in text.splitlines() if line and not line.startswith("#")]


@cache
def load_thesaurus() -> Thesaurus:
    """Return the thesaurus of this process, read on first use."""
    return Thesaurus(read_groups())
