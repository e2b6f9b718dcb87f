"""The terminal: rows that stay, and below them a few that are drawn anew as things go on."""

import os
from collections.abc import Sequence
from typing import TextIO

from dragoman.cli.terminal.rows import Row, paint, plain
from dragoman.text.width import cells

_USUAL = os.terminal_size((80, 24))
MIN_WIDTH = 10
MAX_WIDTH = 110
"""Longer rows are hard to read, and wide windows are for more than one of them."""


def has_colours(stream: TextIO) -> bool:
    """Tell whether colours are wanted where a stream leads."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


def window_size(stream: TextIO) -> os.terminal_size:
    """Return the size of the window now; $COLUMNS, which others go by, is that of the beginning."""
    try:
        size = os.get_terminal_size(stream.fileno())
    except OSError:
        return _USUAL
    return size if size.columns and size.lines else _USUAL


def row_width(stream: TextIO) -> int:
    """Return how long a row may be; the last column stays free, because terminals differ in the wrap after it."""
    return max(MIN_WIDTH, min(window_size(stream).columns - 1, MAX_WIDTH))


class Screen:
    """Writes rows to a terminal; those that are live stand below all others, and are replaced as a whole.

    Only sequences of every terminal are used: moving up, erasing below, and the colours.
    """

    def __init__(self, out: TextIO, *, colour: bool) -> None:
        self._out = out
        self._paint = paint if colour else plain
        self._live: list[Row] = []
        self.is_fresh = True
        """Whether a block can begin here: nothing was written yet, or the last row is empty."""

    @property
    def width(self) -> int:
        """How long a row may be."""
        return row_width(self._out)

    def add(self, rows: Sequence[Row]) -> None:
        """Write rows that stay."""
        if rows:
            self._write(rows, self._live)

    def begin_block(self) -> None:
        """Leave an empty row, if there is none."""
        if not self.is_fresh:
            self.add([[]])

    def set_live(self, rows: Sequence[Row]) -> None:
        """Replace the rows that are live; of too many, the last are shown."""
        height = window_size(self._out).lines
        rows = list(rows)[-max(height - 2, 1) :]
        if rows != self._live:
            self._write((), rows)

    def _write(self, rows: Sequence[Row], live: Sequence[Row]) -> None:
        drawn = "".join(f"{self._paint(row)}\n" for row in (*rows, *live))
        self._out.write(self._erasure() + drawn)
        self._out.flush()
        self._live = list(live)
        if rows:
            self.is_fresh = not plain(rows[-1]).strip()

    def _erasure(self) -> str:
        """Return the sequence that erases the live rows, counted as the window breaks them now: it may be narrower."""
        columns = max(window_size(self._out).columns, 1)
        height = sum(max(-(-cells(plain(row)) // columns), 1) for row in self._live)
        return f"\x1b[{height}A\r\x1b[J" if height else ""
