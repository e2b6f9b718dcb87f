"""Parses the part of the shell's grammar that every shell reads in the same way.

A permanent approval must know the programs of a command. Shells are too complex for that. So only a list of understood
forms is accepted, instead of rejecting a list of dangerous ones:

    text      = command { ( "&&" | "||" | ";" | "|" | newline ) command }
    command   = { NAME=value } word { word | redirect }
    redirect  = [digit] ( "<" | ">" | ">>" ) word  |  [digit] ">&" digit
    word      = one or more of: plain characters, '…', "…" without $ ` and \\

Everything else raises UnclearCommandError: expansions ($X, $(…), `…`, *.sh, {a,b}, ~), escapes, comments,
here-documents, groups, functions, control structures, background jobs, and every character that is not listed. /bin/sh
may be dash, bash, ash, ksh or zsh. Forms that they read differently are excluded as well.
"""

import re
from collections.abc import Iterator

import msgspec

from dragoman.errors import DragomanError

_TOKEN = re.compile(
    r"""
    (?P<blank>[ \t]+)
    | (?P<join>&&|\|\||;|\||\n)
    | (?P<copy>[0-9]?>&[0-9](?=[ \t\n;|]|$))
    | (?P<write>[0-9]?>>?)
    | (?P<read>[0-9]?<)
    | (?P<word>(?:[A-Za-z0-9_./,:=@%+~-]+|'[^']*'|"[^"$`\\]*")+)
    """,
    re.VERBOSE,
)
_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_EXPANDED = re.compile(r"(?:^|[=:])~|^=")
"""`~`, which a shell or program expands to a home directory, and `=ls`, which zsh expands to a path."""


class UnclearCommandError(DragomanError):
    """It is not certain which programs a command would run."""


class PlainCommand(msgspec.Struct, frozen=True):
    """One simple command, parsed from a shell command line, without its quotes."""

    words: tuple[str, ...]
    """The program and its arguments."""
    assignments: tuple[str, ...] = ()
    """`NAME=value` before the program."""
    inputs: tuple[str, ...] = ()
    """The files after `<`."""
    outputs: tuple[str, ...] = ()
    """The files after `>` and `>>`."""
    joined_by: str = ""
    """The operator before it: `&&`, `||`, `;`, a pipe or a newline. Empty for the first command."""
    followed_by: str = ""
    """The operator after it."""


def parse(text: str) -> list[PlainCommand]:
    """Parse a text into its commands. Raises UnclearCommandError."""
    commands: list[PlainCommand] = []
    tokens: list[tuple[str, str]] = []
    joined_by = ""
    for kind, token in [*_tokens(text), ("join", "")]:
        if kind != "join":
            tokens.append((kind, token))
        elif tokens:
            commands.append(_command(tokens, joined_by, token))
            tokens, joined_by = [], token
        elif token not in ("\n", "") or (not token and joined_by not in ("", ";", "\n")):
            raise UnclearCommandError("a command is missing")
    return commands


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise UnclearCommandError(f"{text[at]!r} may have a special meaning for the shell")
        at = match.end()
        kind = match.lastgroup or ""
        if kind == "word":
            yield kind, _unquote(match.group())
        elif kind != "blank":
            yield kind, match.group()


def _command(tokens: list[tuple[str, str]], joined_by: str, followed_by: str) -> PlainCommand:
    words: list[str] = []
    files: dict[str, list[str]] = {"read": [], "write": []}
    redirect = ""
    for kind, token in tokens:
        if redirect and kind == "word":
            files[redirect].append(token)
            redirect = ""
        elif redirect:
            break  # `<<`, `<>`, `>|` and the like
        elif kind == "word":
            words.append(token)
        elif kind != "copy":
            redirect = kind
    if redirect:
        raise UnclearCommandError("a redirection has no file")
    count = next((at for at, word in enumerate(words) if not _ASSIGNMENT.match(word)), len(words))
    if count == len(words):
        raise UnclearCommandError("it names no program")
    return PlainCommand(
        words=tuple(words[count:]),
        assignments=tuple(words[:count]),
        inputs=tuple(files["read"]),
        outputs=tuple(files["write"]),
        joined_by=joined_by,
        followed_by=followed_by,
    )


def _unquote(raw: str) -> str:
    word = _QUOTED.sub(lambda match: match[1] or match[2] or "", raw)
    if _EXPANDED.search(word):
        raise UnclearCommandError(f"{word!r} may expand to another path")
    return word
