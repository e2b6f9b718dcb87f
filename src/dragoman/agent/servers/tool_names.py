"""The names of MCP tools for a model: `server__tool`, in the alphabet and length of every provider.

A name is made from the server's and the tool's name alone, so that it is the same in every turn and after every load.
A name that would not be unique, or too long, ends in some letters of a hash.
"""

import hashlib
import re
from collections.abc import Iterable

MAX_LENGTH = 64
"""The limit of the strictest provider."""

_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]+")
_HASH_LETTERS = 6


def name_tools(tools: Iterable[tuple[str, str]], taken: Iterable[str] = ()) -> dict[tuple[str, str], str]:
    """Return a name of its own for each (server, tool), none of which is taken."""
    pairs = list(dict.fromkeys(tools))
    plain = {pair: _plain(*pair) for pair in pairs}
    counted: dict[str, int] = dict.fromkeys(taken, 1)
    for name in plain.values():
        counted[name] = counted.get(name, 0) + 1
    return {
        pair: _marked(name, pair) if counted[name] > 1 or len(name) > MAX_LENGTH else name
        for pair, name in plain.items()
    }


def _plain(server: str, tool: str) -> str:
    # A name has to begin with a letter for some of them.
    name = f"{_clean(server)}__{_clean(tool)}"
    return name if name[0].isalpha() else f"x{name}"


def _marked(name: str, pair: tuple[str, str]) -> str:
    mark = hashlib.sha256("\0".join(pair).encode()).hexdigest()[:_HASH_LETTERS]
    return f"{name[: MAX_LENGTH - _HASH_LETTERS - 1]}_{mark}"


def _clean(text: str) -> str:
    return _FOREIGN.sub("_", text).strip("_") or "x"
