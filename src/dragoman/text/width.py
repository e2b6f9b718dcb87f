"""The width of a text in columns of a terminal, and texts cut to a width."""

import unicodedata

_ZERO_WIDTH = frozenset(("Mn", "Me", "Cf"))


def cells(text: str) -> int:
    """Return the number of columns that a text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_cell, text))


def cut(text: str, width: int) -> str:
    """Return a text that takes at most so many columns; one that was cut ends in an ellipsis."""
    if cells(text) <= width:
        return text
    taken, used = "", 0
    for character in text:
        used += _cell(character)
        if used > width - 1:
            break
        taken += character
    return taken + "…"


def _cell(character: str) -> int:
    if unicodedata.category(character) in _ZERO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
