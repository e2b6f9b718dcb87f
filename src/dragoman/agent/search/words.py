"""Words: what both engines take a text apart into."""

import re
from functools import lru_cache

_SEPARATORS = re.compile(r"[_\-./:\s]+")
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W_]+")
_VOWELS = "aeiouy"
_SHORT = 4
"""Letters: a shorter word has no ending, and no stem loses a vowel that makes it so short ("note" is not "not")."""
_UNINFLECTED = frozenset(("news", "series", "used"))

_STOP_WORDS = """
a about all also am an and any are as at be because been before being both but by can could did do does
doing don doesn each for from get give had has have having he her here him his how i if in into is isn it
its just let like ll m make me more most my no not now of on one only or other our out please put re s she
should so some such t than that the their them then there these they this those to too up us ve very want
was we were what when where which who whom why will with would you your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Words that say how something is asked, not what: they are left out where words are counted."""


def split_name(name: str) -> str:
    """Take a name in snake, kebab or camel case apart: `getHTTPStatus` gives "get HTTP Status"."""
    return _SEPARATORS.sub(" ", _HUMPS.sub(" ", name)).strip()


def all_words(text: str) -> list[str]:
    """Give the words of a text, names in it taken apart."""
    return _WORD.findall(_HUMPS.sub(" ", text).lower())


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Cut the endings off a word: "merge", "merges", "merging" and "merged" all give "merg"."""
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
