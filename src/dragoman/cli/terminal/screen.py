"""Outputs at a terminal: a screen of rows, of which the last are live, and an answer that can only be appended to.

`chat` has the screen; `run`, and `chat` in a pipe, write the answer to stdout and all else to stderr.
"""

import os
import select
import sys
from collections.abc import Iterable, Sequence
from typing import TextIO

from dragoman.cli.terminal.rows import Row, Span, paint, plain
from dragoman.client import Done, Event, Text, ToolChanged, Withdrawn
from dragoman.text import TextCleaner, clean_text, escape_json
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


class AnswerOutput:
    """Both outputs. Where they lead to the same place, an aside begins a line of its own."""

    def __init__(self) -> None:
        self._paint = paint if has_colours(sys.stderr) else plain
        self.is_terminal = sys.stdout.isatty()
        self._is_shared = _lead_to_the_same_place()
        self._line_is_open = False
        self._cleaner = TextCleaner()

    @property
    def width(self) -> int:
        """How long a row on stderr may be."""
        return row_width(sys.stderr)

    def say(self, text: str) -> None:
        """Write a piece of the answer, for reading."""
        shown = self._cleaner.feed(text)
        if shown:
            _write(sys.stdout, shown)
            self._line_is_open = not shown.endswith("\n")

    def write_json(self, document: str) -> None:
        """Write whole lines of JSON to stdout: the same value, with nothing in them that a terminal obeys."""
        _write(sys.stdout, escape_json(document))

    def end_line(self) -> None:
        """Let the answer so far end with a whole line."""
        if self._line_is_open:
            self.say("\n")

    def end_answer(self) -> None:
        """End the answer; an escape sequence that it has left open does not reach into the next one."""
        self._cleaner = TextCleaner()
        self.end_line()

    def aside(self, text: str) -> None:
        """Write lines that are no part of the answer."""
        self.write_rows([Span(line, "dim")] for line in clean_text(text).split("\n"))

    def complain(self, problem: str) -> None:
        """Write an error, undimmed."""
        self.write_rows([Span(line)] for line in clean_text(problem).split("\n"))

    def write_rows(self, rows: Iterable[Row]) -> None:
        """Write rows to stderr whose texts are safe to show already."""
        if self._is_shared:
            self.end_line()
        _write(sys.stderr, "".join(f"{self._paint(row)}\n" for row in rows))


def _write(stream: TextIO, text: str) -> None:
    """Write all of a text, now; `print` may stop halfway without a word where Python is told not to buffer."""
    rest = memoryview(text.encode(stream.encoding, errors="replace"))
    while rest:
        try:
            rest = rest[os.write(stream.fileno(), rest) :]
        except BlockingIOError:  # somebody else on this terminal has set it so
            select.select([], [stream], [])


def _lead_to_the_same_place() -> bool:
    try:
        return os.path.samestat(os.fstat(sys.stdout.fileno()), os.fstat(sys.stderr.fileno()))
    except OSError:
        return False


class SettledText:
    """Holds back the message that an agent may still withdraw: until it begins another, runs a tool, or is done."""

    def __init__(self, *, holds: bool) -> None:
        self._holds = holds
        self._held: list[str] = []
        self._message_id: str | None = None

    def take(self, event: Event, text: str) -> str:
        """Take the next event, with its words; returns those that count now."""
        if not self._holds:
            return text
        match event:
            case Text(_, update):
                settled = self.finish() if update.message_id != self._message_id else ""
                self._message_id = update.message_id
                self._held.append(text)
                return settled
            case Withdrawn():
                self._held.clear()
                return ""
            case Done():
                return self.finish()
            case ToolChanged(call) if call.status in ("in_progress", "completed"):
                return self.finish()
            case _:
                return ""

    def finish(self) -> str:
        """Return the held text: nothing can withdraw it any more."""
        held, self._held = "".join(self._held), []
        return held
