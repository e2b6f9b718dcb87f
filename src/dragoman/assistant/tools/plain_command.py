"""A command in the part of the shell's grammar that every shell reads in the same way.

An approval for good needs to know the programs of a command. Shells are too rich for that, so only a part of it
is read here, by a list of understood forms and not of dangerous ones:

    text      = command { ( "&&" | "||" | ";" | "|" | newline ) command }
    command   = { NAME=value } word { word | redirect }
    redirect  = [digit] ( "<" | ">" | ">>" ) word  |  [digit] ">&" digit
    word      = one or more of: plain characters, '…', "…" without $ ` and \\

Everything else raises UnclearCommand: expansions ($X, $(…), `…`, *.sh, {a,b}, ~), escapes, comments, here-documents,
groups, functions, control structures, background jobs, and every character that is not on the list. /bin/sh may be
dash, bash, ash, ksh or zsh; forms that they read differently are left out as well.
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
"""`~` where a shell, or a program, puts a home directory; `=ls`, which is a path to zsh."""


class UnclearCommand(DragomanError):
    """It is not certain which programs a command would run."""


class PlainCommand(msgspec.Struct, frozen=True):
    """One command of a text, its quotes taken away."""

    words: tuple[str, ...]
    """The program and its arguments."""
    assignments: tuple[str, ...] = ()
    """`NAME=value` in front of the program."""
    inputs: tuple[str, ...] = ()
    """The files behind `<`."""
    outputs: tuple[str, ...] = ()
    """The files behind `>` and `>>`."""
    joined_by: str = ""
    """The operator before it: one of && || ; | or a newline, nothing for the first."""
    followed_by: str = ""
    """The operator behind it."""


def parse(text: str) -> list[PlainCommand]:
    """Take a text apart into its commands; raises UnclearCommand."""
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
            raise UnclearCommand("a command is missing")
    return commands


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise UnclearCommand(f"{text[at]!r} may mean more than it says")
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
        raise UnclearCommand("a redirection has no file")
    count = next((at for at, word in enumerate(words) if not _ASSIGNMENT.match(word)), len(words))
    if count == len(words):
        raise UnclearCommand("there is no program")
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
        raise UnclearCommand(f"{word!r} may be another path")
    return word
