"""Shell text, split into the simple commands that it runs.

No parser understands every shell. This one reads the commands that users and models usually write, and marks each
command that it is not sure about. Only a rule that allows every command allows such a command. Rules that deny still
apply to it.
"""

import os
import re
from typing import NamedTuple

import msgspec

from dragoman.client.permission.action import SHELLS

_HARMLESS_REDIRECT = re.compile(r">{1,2}[ \t]*(?:/dev/null|&[0-9]|&-)(?=[\s;|&)]|$)")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_COMPUTED = frozenset("$*?[{~")
"""The shell expands these characters, so a command name that contains one is unknown."""

_KEYWORDS = frozenset(("if", "then", "else", "elif", "fi", "while", "until", "do", "done", "!", "{", "}", "time"))
_COMPOUND = frozenset(
    ("for", "case", "select", "function", "coproc", "[[", "eval", "source", ".", "alias", "trap", "export")
)
"""Commands whose effect this parser does not follow."""

_MAX_DEPTH = 4


class SimpleCommand(msgspec.Struct, frozen=True):
    """One simple command, parsed from shell text."""

    words: tuple[str, ...]
    sure: bool = True
    """Whether the words describe all of its effects. False with an assignment, a redirection or a substitution."""
    named: bool = True
    """Whether the first word is the name of the program that runs."""


def parse_command(text: str, depth: int = 0) -> tuple[SimpleCommand, ...]:
    """Return the commands that a text runs, including those in substitutions and in `sh -c`. There is at least one."""
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
    """Return the commands behind one parsed command: strip keywords and assignments, and look into `sh -c`."""
    words, sure = found
    # Keywords such as `then` and assignments come before the name of the command.
    start = 0
    while start < len(words) and (words[start].text in _KEYWORDS or _ASSIGNMENT.match(words[start].text)):
        start += 1
    texts = tuple(word.text for word in words[start:])
    if not texts:
        return (SimpleCommand(tuple(word.text for word in words) or (">",), sure=False),)
    name = texts[0]
    sure = sure and start == 0
    if os.path.basename(name) in SHELLS:  # noqa: PTH119 -- a word, no file
        # `sh -c TEXT` runs the commands of TEXT. Any other call of a shell runs an unknown script.
        if len(texts) == 3 and texts[1] in ("-c", "-lc") and sure and not words[-1].computed:
            return parse_command(texts[2], depth + 1)
        return (SimpleCommand(texts, sure=False, named=False),)
    named = name not in _COMPOUND and (name == "[" or not words[start].computed)
    return (SimpleCommand(texts, sure=sure and named, named=named),)


class _Level(NamedTuple):
    """The state of an outer command while an inner one is read."""

    words: list[_Word]
    word: list[str] | None
    quoted: bool


class _Reader:
    """Reads shell text character by character, once, and fails at a construct that it does not know.

    Each `_read` method handles the character at `_at` and returns False to fail. Parentheses and substitutions save the
    outer command in `_outer`, so nesting needs no recursion.
    """

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
        """Parse the whole text into `commands`. Return False if that is not possible."""
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
            return False  # their end depends on their content
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
                return False  # a function definition, or syntax of one shell only
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
        """Begin a command inside another one."""
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
