"""Where `dragoman run` writes: the answer to stdout, everything beside it to stderr."""

import os
import select
import sys
from typing import TextIO

from dragoman.text import TextCleaner, clean_text, escape_json

_RED, _GREEN, _DIM, _PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[2m", "\x1b[0m"


class Screen:
    """Both outputs. Where they lead to the same place, an aside begins a line of its own."""

    def __init__(self) -> None:
        self._has_colour = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
        self.is_terminal = sys.stdout.isatty()
        self._is_shared = _lead_to_the_same_place()
        self._line_is_open = False
        self._answer = TextCleaner()

    def say(self, text: str) -> None:
        """Write a piece of the answer, for reading."""
        shown = self._answer.feed(text)
        if shown:
            _write(sys.stdout, shown)
            self._line_is_open = not shown.endswith("\n")

    def write_json(self, document: str) -> None:
        """Write whole lines of JSON to stdout: the same value, with nothing in them that a terminal obeys."""
        _write(sys.stdout, escape_json(document))

    def end_line(self) -> None:
        """Let the answer end with a whole line."""
        if self._line_is_open:
            self.say("\n")

    def aside(self, text: str) -> None:
        """Write something that is no part of the answer."""
        self.write_beside(f"{self.dim(clean_text(text))}\n")

    def write_beside(self, text: str) -> None:
        """Write to stderr a text that is safe to show already."""
        if self._is_shared:
            self.end_line()
        _write(sys.stderr, text)

    def dim(self, text: str) -> str:
        return self._colour(_DIM, text)

    def red(self, text: str) -> str:
        return self._colour(_RED, text)

    def green(self, text: str) -> str:
        return self._colour(_GREEN, text)

    def _colour(self, colour: str, text: str) -> str:
        return f"{colour}{text}{_PLAIN}" if self._has_colour else text


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
