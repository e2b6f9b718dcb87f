"""A text of the shell, split into the commands that it runs.

No list of patterns can understand every shell. This reads the texts of people and models, and marks a command that is
not certain: a rule that allows must then allow everything, and a rule that denies holds.
"""

import os
import re
from typing import NamedTuple

import msgspec

from dragoman.client.action import SHELLS

_HARMLESS_REDIRECT = re.compile(r">{1,2}[ \t]*(?:/dev/null|&[0-9]|&-)(?=[\s;|&)]|$)")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_COMPUTED = frozenset("$*?[{~")
"""Of these the shell makes something else, so that in the name of a command they hide which it is."""

_KEYWORDS = frozenset(("if", "then", "else", "elif", "fi", "while", "until", "do", "done", "!", "{", "}", "time"))
_COMPOUND = frozenset(
    ("for", "case", "select", "function", "coproc", "[[", "eval", "source", ".", "alias", "trap", "export")
)
"""What goes on in these, or because of them later on, is not followed."""

_MAX_DEPTH = 4


class SimpleCommand(msgspec.Struct, frozen=True):
    """One command of a text."""

    words: tuple[str, ...]
    sure: bool = True
    """Whether it does what its words say and no more: no assignment, redirection or substitution is part of it."""
    named: bool = True
    """Whether it is known which program runs."""


def parse_command(text: str, depth: int = 0) -> tuple[SimpleCommand, ...]:
    """Return the commands that a text runs, at least one: those in substitutions and behind `sh -c` too."""
    reader = _Reader(text)
    opaque = (SimpleCommand((text,), sure=False, named=False),)
    if depth > _MAX_DEPTH or not reader.read():
        return opaque
    return tuple(each for found in reader.commands for each in _understand(found, depth)) or opaque


class _Word(NamedTuple):
    text: str
    computed: bool


class _Found(NamedTuple):
    words: list[_Word]
    sure: bool


def _understand(found: _Found, depth: int) -> tuple[SimpleCommand, ...]:
    words, sure = found
    start = 0
    while start < len(words) and (words[start].text in _KEYWORDS or _ASSIGNMENT.match(words[start].text)):
        start += 1
    texts = tuple(word.text for word in words[start:])
    if not texts:
        return (SimpleCommand(tuple(word.text for word in words) or (">",), sure=False),)
    name = texts[0]
    sure = sure and start == 0
    if os.path.basename(name) in SHELLS:  # noqa: PTH119 -- a word, no file
        if len(texts) == 3 and texts[1] in ("-c", "-lc") and sure and not words[-1].computed:
            return parse_command(texts[2], depth + 1)
        return (SimpleCommand(texts, sure=False, named=False),)
    named = name not in _COMPOUND and (name == "[" or not words[start].computed)
    return (SimpleCommand(texts, sure=sure and named, named=named),)


class _Level(NamedTuple):
    """A command that waits for one inside of it to end."""

    words: list[_Word]
    word: list[str] | None
    quoted: bool


class _Reader:
    """Reads a text once, and gives up at a construct that it does not know."""

    def __init__(self, text: str) -> None:
        self.commands: list[_Found] = []
        self._text = text
        self._at = 0
        self._words: list[_Word] = []
        self._word: list[str] | None = None
        self._computed = False
        self._sure = True
        self._is_target = False
        self._quoted = False
        self._outer: list[_Level] = []

    def read(self) -> bool:
        """Take the whole text apart; False when it cannot be."""
        while self._at < len(self._text):
            if not (self._read_quoted() if self._quoted else self._read_plain()):
                return False
            self._at += 1
        self._end_command()
        return not self._quoted and not self._outer

    @property
    def _sign(self) -> str:
        return self._text[self._at]

    @property
    def _ahead(self) -> str:
        return self._text[self._at + 1 : self._at + 2]

    def _read_plain(self) -> bool:
        match self._sign:
            case " " | "\t":
                self._end_word()
            case "\n" | ";" | "|" | "&":  # `&>` is a redirection to some shells, and to others the end of a command
                self._end_command()
            case "(" | ")":
                return self._group()
            case "'":
                return self._quote()
            case '"':
                self._add("")
                self._quoted = True
            case "\\":
                self._escape()
            case "<" | ">":
                self._redirect()
            case "#" if self._word is None:
                return False  # shells differ in whether the rest is a comment
            case _:
                return self._read_any()
        return True

    def _read_quoted(self) -> bool:
        if self._sign == '"':
            self._quoted = False
        elif self._sign == "\\" and self._ahead in ("$", "`", '"', "\\", "\n"):
            self._escape()
        else:
            return self._read_any()
        return True

    def _read_any(self) -> bool:
        sign = self._sign
        if sign == "`" or (sign == "$" and self._ahead in ("'", '"') and not self._quoted):
            return False  # where these end depends on what is in them
        if sign in _COMPUTED and (sign == "$" or not self._quoted):
            self._computed = True
        if sign == "$" and self._ahead == "(":
            self._add("")
            self._at += 1
            self._open()
        else:
            self._add(sign)
        return True

    def _quote(self) -> bool:
        end = self._text.find("'", self._at + 1)
        self._add(self._text[self._at + 1 : end])
        self._at = end
        return end >= 0

    def _escape(self) -> None:
        if self._ahead != "\n":
            self._add(self._ahead)
        self._at += 1

    def _redirect(self) -> None:
        if self._word is not None and "".join(self._word).isdigit():
            self._word = None
        self._end_word()
        if harmless := _HARMLESS_REDIRECT.match(self._text, self._at):
            self._at = harmless.end() - 1
            return
        self._sure = False
        while self._ahead and self._ahead in "<>&|":
            self._at += 1
        if self._ahead == "(":
            self._at += 1
            self._open()
        else:
            self._is_target = True

    def _group(self) -> bool:
        if self._sign == "(":
            if self._words or self._word is not None:
                return False  # a function, or what only some shells know
            self._open()
        elif not self._outer:
            return False
        else:
            self._end_command()
            self._words, self._word, self._quoted = self._outer.pop()
            self._sure = False
            self._computed = True
        return True

    def _open(self) -> None:
        """Begin a command inside of another."""
        self._outer.append(_Level(self._words, self._word, self._quoted))
        self._words, self._word, self._quoted = [], None, False
        self._sure, self._computed, self._is_target = True, False, False

    def _add(self, text: str) -> None:
        if self._word is None:
            self._word = []
        self._word.append(text)

    def _end_word(self) -> None:
        if self._word is not None and not self._is_target:
            self._words.append(_Word("".join(self._word), self._computed))
        if self._word is not None:
            self._word, self._computed, self._is_target = None, False, False

    def _end_command(self) -> None:
        self._end_word()
        if self._words or not self._sure:
            self.commands.append(_Found(self._words, self._sure))
        self._words, self._sure, self._computed, self._is_target = [], True, False, False
