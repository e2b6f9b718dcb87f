"""The closest match of a word among those that are known: for "did you mean"."""

import heapq
from collections.abc import Iterable
from itertools import pairwise

MAX_COMPARED = 50
"""Words that are compared letter by letter: among 10,000 that alone would take seconds."""


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that is nearest to another, if one is near; case does not count."""
    return next(iter(near_matches(word, known, count=1)), None)


def near_matches(word: str, known: Iterable[str], *, count: int, cutoff: float = 0.6) -> list[str]:
    """Return the known words that are near to another, the nearest first; case does not count."""
    from difflib import get_close_matches  # 3 ms, and only a mistake needs it

    wanted = word.lower()
    pairs = set(pairwise(wanted))
    by_lower_case = {each.lower(): each for each in known}

    def share(other: str) -> float:
        return len(pairs.intersection(pairwise(other))) / (len(wanted) + len(other) or 1)

    likely: Iterable[str] = by_lower_case
    if len(by_lower_case) > MAX_COMPARED:
        likely = heapq.nlargest(max(MAX_COMPARED, count), by_lower_case, key=share)
    return [by_lower_case[found] for found in get_close_matches(wanted, likely, n=count, cutoff=cutoff)]
