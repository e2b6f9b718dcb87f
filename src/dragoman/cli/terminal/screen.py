"""Terminal outputs: a screen whose last rows are live, and an answer that is only appended to.

`chat` uses the screen. `run`, and `chat` in a pipe, write the answer to stdout and everything else to stderr.
"""

import os
import select
import sys
from collections.abc import Iterable, Sequence
from typing import TextIO

from dragoman.cli.terminal.rows import Row, Span, paint, plain
from dragoman.client.events import Event, MessageWithdrawn, TextChunk, ToolCallChanged, TurnFinished
from dragoman.text import TextCleaner, clean_text, escape_json
from dragoman.text.width import cells

_USUAL = os.terminal_size((80, 24))
MIN_WIDTH = 10
MAX_WIDTH = 110
"""Longer rows are hard to read."""


def has_colours(stream: TextIO) -> bool:
    """Return whether to use colours on a stream."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


def window_size(stream: TextIO) -> os.terminal_size:
    """Return the current window size. $COLUMNS keeps the size at startup."""
    try:
        size = os.get_terminal_size(stream.fileno())
    except OSError:
        return _USUAL
    return size if size.columns and size.lines else _USUAL


def row_width(stream: TextIO) -> int:
    """Return the maximal row width. The last column stays free, because terminals wrap differently after it."""
    return max(MIN_WIDTH, min(window_size(stream).columns - 1, MAX_WIDTH))


def erasure(rows: Sequence[Row], stream: TextIO) -> str:
    """Return the sequence that erases the last rows of a terminal.

    The rows are counted as the window wraps them now, because it may be narrower than before.
    """
    columns = max(window_size(stream).columns, 1)
    height = sum(max(-(-cells(plain(row)) // columns), 1) for row in rows)
    return f"\x1b[{height}A\r\x1b[J" if height else ""


class Screen:
    """Writes rows to a terminal. Live rows are below all others, and are replaced together.

    Uses only sequences that every terminal supports: cursor up, erase below and colours.
    """

    def __init__(self, out: TextIO, *, colour: bool) -> None:
        self._out = out
        self._paint = paint if colour else plain
        self._live: list[Row] = []
        self.is_fresh = True
        """Whether a block can begin here: nothing is written yet, or the last row is empty."""

    @property
    def width(self) -> int:
        """The maximal row width."""
        return row_width(self._out)

    def add(self, rows: Sequence[Row]) -> None:
        """Write final rows."""
        if rows:
            self._write(rows, self._live)

    def begin_block(self) -> None:
        """Add an empty row unless the last row is empty."""
        if not self.is_fresh:
            self.add([[]])

    def set_live(self, rows: Sequence[Row]) -> None:
        """Replace the live rows. If there are too many, show the last ones."""
        height = window_size(self._out).lines
        rows = list(rows)[-max(height - 2, 1) :]
        if rows != self._live:
            self._write((), rows)

    def _write(self, rows: Sequence[Row], live: Sequence[Row]) -> None:
        drawn = "".join(f"{self._paint(row)}\n" for row in (*rows, *live))
        self._out.write(erasure(self._live, self._out) + drawn)
        self._out.flush()
        self._live = list(live)
        if rows:
            self.is_fresh = not plain(rows[-1]).strip()


class AnswerOutput:
    """Writes the answer to stdout and asides to stderr. If both are the same terminal, an aside starts a new line."""

    def __init__(self) -> None:
        self._paint = paint if has_colours(sys.stderr) else plain
        self.is_terminal = sys.stdout.isatty()
        self._is_shared = _outputs_are_same()
        self._replaceable: tuple[str, Sequence[Row]] | None = None
        """The key and the rows of the last aside, while nothing was written below it."""
        self._shown_keys: set[str] = set()
        self._line_is_open = False
        self._cleaner = TextCleaner()

    @property
    def width(self) -> int:
        """The maximal row width on stderr."""
        return row_width(sys.stderr)

    def say(self, text: str) -> None:
        """Write a piece of the answer."""
        shown = self._cleaner.feed(text)
        if shown:
            self._replaceable = None
            _write(sys.stdout, shown)
            self._line_is_open = not shown.endswith("\n")

    def write_json(self, document: str) -> None:
        """Write whole lines of JSON to stdout, with control characters escaped."""
        _write(sys.stdout, escape_json(document))

    def end_line(self) -> None:
        """End an unfinished line of the answer."""
        if self._line_is_open:
            self.say("\n")

    def end_answer(self) -> None:
        """End the answer. An unfinished escape sequence does not affect the next one."""
        self._cleaner = TextCleaner()
        self.end_line()

    def aside(self, text: str, *, key: str | None = None) -> None:
        """Write dim lines that are not part of the answer.

        On a terminal they replace the lines with the same `key` directly above. Elsewhere only the first lines with a
        key are written.
        """
        rows: list[Row] = [[Span(line, "dim")] for line in clean_text(text).split("\n")]
        if key is None:
            self.write_rows(rows)
            return
        before = self._replaceable
        if not sys.stderr.isatty():
            if key in self._shown_keys:
                return
            self._shown_keys.add(key)
        elif before is not None and before[0] == key:
            _write(sys.stderr, erasure(before[1], sys.stderr))
        self.write_rows(rows)
        self._replaceable = (key, rows)

    def print_error(self, problem: str) -> None:
        """Write an error without dimming."""
        self.write_rows([Span(line)] for line in clean_text(problem).split("\n"))

    def write_rows(self, rows: Iterable[Row]) -> None:
        """Write rows to stderr. Their text must already be clean."""
        if self._is_shared:
            self.end_line()
        self._replaceable = None
        _write(sys.stderr, "".join(f"{self._paint(row)}\n" for row in rows))


def _write(stream: TextIO, text: str) -> None:
    """Write the whole text at once. An unbuffered `print` may silently stop halfway."""
    rest = memoryview(text.encode(stream.encoding, errors="replace"))
    while rest:
        try:
            rest = rest[os.write(stream.fileno(), rest) :]
        except BlockingIOError:  # another process made this terminal non-blocking
            select.select([], [stream], [])


def _outputs_are_same() -> bool:
    try:
        return os.path.samestat(os.fstat(sys.stdout.fileno()), os.fstat(sys.stderr.fileno()))
    except OSError:
        return False


class SettledText:
    """Holds back text that the agent may still withdraw, until it starts another message, runs a tool or finishes."""

    def __init__(self, *, holds: bool) -> None:
        self._holds = holds
        self._held: list[str] = []
        self._message_id: str | None = None

    def settle(self, event: Event, text: str) -> str:
        """Add the event and its text. Return the text that can no longer be withdrawn."""
        if not self._holds:
            return text
        match event:
            case TextChunk(_, update):
                settled = self.finish() if update.message_id != self._message_id else ""
                self._message_id = update.message_id
                self._held.append(text)
                return settled
            case MessageWithdrawn():
                self._held.clear()
                return ""
            case TurnFinished():
                return self.finish()
            case ToolCallChanged(call) if call.status in ("in_progress", "completed"):
                return self.finish()
            case _:
                return ""

    def finish(self) -> str:
        """Return the held text, which can no longer be withdrawn."""
        held, self._held = "".join(self._held), []
        return held
