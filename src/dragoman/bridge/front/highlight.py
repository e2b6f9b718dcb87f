"""Syntax highlighting with Pygments, as CSS classes, for a fixed list of languages and with a deadline.

The language is the one named after the fence and is never guessed. The list is short on purpose. Every lexer is a set
of regular expressions that runs on untrusted text, and some can hang (C on empty lines). The deadline cannot interrupt
a regular expression, so only call this in a process that can be killed (`render_worker`).
"""

import time
from collections.abc import Iterator
from functools import cache
from html import escape

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name  # pyright: ignore[reportUnknownVariableType] -- its stub is partial
from pygments.token import STANDARD_TYPES, Whitespace, _TokenType  # pyright: ignore[reportPrivateUsage] -- its only name

LANGUAGES = frozenset(
    """
    bash bat c clojure cmake console cpp csharp css dart diff docker elixir erlang fish go graphql groovy haskell html
    http ini java javascript json jsx julia kotlin lua make markdown nginx nix objective-c ocaml perl php powershell
    proto pycon pytb python r ruby rust scala sql swift terraform toml tsx typescript xml yaml zig
    """.split()  # noqa: SIM905 -- sixty quotes and commas say no more
)
"""The languages that are highlighted."""

ALIASES = {
    "c++": "cpp",
    "c#": "csharp",
    "cs": "csharp",
    "dockerfile": "docker",
    "golang": "go",
    "hcl": "terraform",
    "js": "javascript",
    "jsonc": "json",
    "kt": "kotlin",
    "makefile": "make",
    "md": "markdown",
    "mjs": "javascript",
    "objc": "objective-c",
    "patch": "diff",
    "protobuf": "proto",
    "ps1": "powershell",
    "py": "python",
    "python3": "python",
    "rb": "ruby",
    "rs": "rust",
    "sh": "bash",
    "shell": "bash",
    "shell-session": "console",
    "svg": "xml",
    "tf": "terraform",
    "ts": "typescript",
    "vue": "html",
    "yml": "yaml",
    "zsh": "bash",
}
"""Other names of these languages."""

CLASSES = frozenset(name for name in STANDARD_TYPES.values() if name)
"""Every class that highlighted code can have."""

MAX_CODE_CHARS = 60_000
"""Longer blocks are not highlighted."""

MAX_LINE_CHARS = 2_000
"""Blocks with longer lines are not highlighted. They are data or minified code, and slow for regular expressions."""


def highlight(code: str, language: str, deadline: float) -> str:
    """Return the code as escaped HTML with `span`s that have classes.

    The code is returned without `span`s if the language is unknown, or the code is too long or too slow. `deadline` is
    in the time of `time.monotonic`.
    """
    lexer = _lexer(language)
    if lexer is None or time.monotonic() > deadline or _is_too_long(code):
        return escape(code, quote=False)
    pieces: list[str] = []
    for kind, text in _merged(lexer, code):
        if time.monotonic() > deadline:
            return escape(code, quote=False)
        name = _class_of(kind)
        written = escape(text, quote=False)
        pieces.append(f'<span class="{name}">{written}</span>' if name else written)
    return "".join(pieces)


def _is_too_long(code: str) -> bool:
    return len(code) > MAX_CODE_CHARS or max(map(len, code.split("\n"))) > MAX_LINE_CHARS


def known_language(info: str) -> str | None:
    """Return the highlighted language named by the first word after a fence, or None."""
    word = info.strip().split(maxsplit=1)[0].lower() if info.strip() else ""
    name = ALIASES.get(word, word)
    return name if name in LANGUAGES else None


@cache
def _lexer(language: str) -> Lexer | None:
    if language not in LANGUAGES:
        return None
    return get_lexer_by_name(language, stripnl=False, ensurenl=False)


def _merged(lexer: Lexer, code: str) -> Iterator[tuple[_TokenType, str]]:
    """Yield the tokens with neighbours of one kind merged, which halves the number of elements."""
    last, text = None, ""
    for kind, piece in lexer.get_tokens(code):
        if kind is last:
            text += piece
            continue
        if last is not None:
            yield last, text
        last, text = kind, piece
    if last is not None:
        yield last, text


@cache
def _class_of(kind: _TokenType) -> str:
    if kind in Whitespace:
        return ""
    while kind not in STANDARD_TYPES and kind.parent is not None:
        kind = kind.parent
    return STANDARD_TYPES.get(kind, "")
