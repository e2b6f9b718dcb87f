"""Finds the known word that is closest to a misspelled one, for "did you mean"."""

import heapq
from collections.abc import Iterable
from itertools import pairwise

MAX_COMPARED = 50
"""The number of words that are compared letter by letter. Comparing 10,000 words this way would take seconds."""


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that is closest to `word`, or None if no word is near. Ignore case."""
    return next(iter(near_matches(word, known, count=1)), None)


def near_matches(word: str, known: Iterable[str], *, count: int, cutoff: float = 0.6) -> list[str]:
    """Return the known words that are near `word`, the nearest first. Ignore case."""
    from difflib import get_close_matches  # 3 ms, and only a mistake needs it

    lowered = word.lower()
    pairs = set(pairwise(lowered))
    by_lower_case = {each.lower(): each for each in known}

    def share(other: str) -> float:
        return len(pairs.intersection(pairwise(other))) / (len(lowered) + len(other) or 1)

    likely: Iterable[str] = by_lower_case
    if len(by_lower_case) > MAX_COMPARED:
        likely = heapq.nlargest(max(MAX_COMPARED, count), by_lower_case, key=share)
    return [by_lower_case[found] for found in get_close_matches(lowered, likely, n=count, cutoff=cutoff)]
