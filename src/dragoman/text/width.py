"""The width of a text in terminal columns, and texts shortened to a width."""

import unicodedata

_ZERO_WIDTH = frozenset(("Mn", "Me", "Cf"))


def cells(text: str) -> int:
    """Return the number of columns that a text occupies."""
    if text.isascii():
        return len(text)
    return sum(map(_cell, text))


def cut(text: str, width: int) -> str:
    """Return a text of at most `width` columns. A shortened text ends in an ellipsis."""
    if cells(text) <= width:
        return text
    kept, used = "", 0
    for character in text:
        used += _cell(character)
        if used > width - 1:
            break
        kept += character
    return kept + "…"


def _cell(character: str) -> int:
    if unicodedata.category(character) in _ZERO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
