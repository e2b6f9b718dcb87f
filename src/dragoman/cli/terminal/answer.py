"""An answer without a screen, for `run`, and for `chat` in a pipe: it goes to stdout, all else to stderr."""

import os
import select
import sys
from collections.abc import Iterable
from typing import TextIO

from dragoman.cli.terminal.rows import Row, Span, paint, plain
from dragoman.cli.terminal.screen import has_colours, row_width
from dragoman.client import Done, Event, Text, ToolChanged, Withdrawn
from dragoman.text import TextCleaner, clean_text, escape_json


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
