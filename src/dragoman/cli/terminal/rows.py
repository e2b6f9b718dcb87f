"""Styled text, broken into rows that fit a width."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dragoman.text.width import cells

CODES = {
    "bold": "1",
    "dim": "2",
    "italic": "3",
    "underline": "4",
    "strike": "9",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}
TAB = "    "


class Span(NamedTuple):
    """A piece of text with styles: names of `CODES`, separated by blanks."""

    text: str
    style: str = ""


Row = list[Span]
"""One row of the screen."""


def plain(row: Iterable[Span]) -> str:
    """Return the text of a row."""
    return "".join(span.text for span in row)


def paint(row: Iterable[Span]) -> str:
    """Return the row with terminal escape sequences."""
    return "".join(_paint(span) for span in row if span.text)


def wrap(spans: Iterable[Span], width: int, first: str = "", later: str | None = None) -> list[Row]:
    """Break at blanks if possible. `first` begins the first row and `later` the others."""
    later = " " * cells(first) if later is None else later
    rows: list[Row] = [[Span(first)] if first else []]
    room = max(width - cells(first), 1)
    used = 0
    # Blanks and words alternate. A blank at a row's end is dropped, and a word longer than a row is cut into pieces.
    for text, style in _words(spans):
        size = cells(text)
        if used and used + size > room:
            if text.isspace():
                used = room
                continue
            if rows[-1][-1].text.isspace() and len(rows[-1]) > 1:
                rows[-1].pop()
            rows.append([Span(later)] if later else [])
            room, used = max(width - cells(later), 1), 0
        for piece in _pieces(text, room) if size > room else (text,):
            if used and used + cells(piece) > room:
                rows.append([Span(later)] if later else [])
                used = 0
            rows[-1].append(Span(piece, style))
            used += cells(piece)
    return rows


def hard_wrap(spans: Iterable[Span], width: int, lead: Sequence[Span] = (), later: str = "") -> list[Row]:
    """Break at any character, as for code.

    `lead` begins every row, or `later` all rows but the first.
    """
    room = max(width - cells(plain(lead)), 1)
    rows: list[Row] = [list(lead)]
    used = 0
    for text, style in spans:
        for character in _pieces(text.replace("\t", TAB), 1):
            if used and used + cells(character) > room:
                rows.append([Span(later)] if later else list(lead))
                used = 0
            rows[-1].append(Span(character, style))
            used += cells(character)
    return [_join(row) for row in rows]


def _words(spans: Iterable[Span]) -> Iterable[Span]:
    for text, style in spans:
        for word in re.findall(r"\s+|\S+", text.replace("\t", TAB)):
            yield Span(word, style)


def _pieces(text: str, width: int) -> Iterable[str]:
    piece, used = "", 0
    for character in text:
        size = cells(character)
        if piece and used + size > width:
            yield piece
            piece, used = "", 0
        piece += character
        used += size
    if piece:
        yield piece


def _join(row: Row) -> Row:
    joined: Row = []
    for span in row:
        if joined and joined[-1].style == span.style:
            joined[-1] = Span(joined[-1].text + span.text, span.style)
        else:
            joined.append(span)
    return joined


def _paint(span: Span) -> str:
    codes = ";".join(CODES[name] for name in span.style.split())
    return f"\x1b[{codes}m{span.text}\x1b[0m" if codes else span.text
