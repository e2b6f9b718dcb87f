"""The names by which people call the things that can be included, and mentions of them in a prompt.

`rule:NAME`, `ref:NAME` and `server:NAME` are always understood, with or without an `@`, and so is a tool's
`SERVER/TOOL`; the name by itself, in any case, is enough where only one thing has it.

A mention is `@rule:NAME` or `@ref:NAME` in a prompt. It begins where no word, `@` or `/` stands before it, so not
inside an e-mail address or a URL, and it ends with the name, so not with the full stop behind it. In code, between
backticks or fences, nothing is a mention: there people quote, or write about mentions.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from dragoman.assistant.context.candidates import Guidance, ToolOffer
from dragoman.errors import InvalidParams
from dragoman.text import excerpt
from dragoman.text.match import closest

SERVER = "server:"
EXPECTED = "SERVER/TOOL, server:NAME, rule:NAME or ref:NAME"

_PATH = "include"
_MAX_LISTED = 8
_MAX_LENGTH = 200
"""Characters of a name; a longer one was not meant to be typed."""


class ItemNames:
    """The things that there are, by all their names."""

    def __init__(self, offers: Sequence[ToolOffer], guidance: Iterable[Guidance], servers: Iterable[str] = ()) -> None:
        self.offers = {offer.key: offer for offer in offers}
        self.guidance = {each.key: each for each in guidance}
        named = dict.fromkeys([*(offer.server for offer in offers if offer.server), *servers])
        self._all: dict[str, tuple[str, ...]] = {
            **{key: (key, offer.name, offer.tool.definition.name) for key, offer in self.offers.items()},
            **{f"{SERVER}{name}": (f"{SERVER}{name}", name) for name in named},
            **{key: (key, each.item.name) for key, each in self.guidance.items()},
        }

    def __contains__(self, key: str) -> bool:
        return key in self._all

    def find(self, what: str) -> str:
        """Return the key of the thing that a person names; raises InvalidParams."""
        name = bare(what)
        if not name:
            raise InvalidParams(_PATH, f"say what: {EXPECTED}; `/context` shows what there is", expected=EXPECTED)
        keys = self._keys(name)
        if len(keys) == 1:
            return keys[0]
        if keys:
            problem = f"{quote(name)} may be {listed(keys)}; say which of them"
        else:
            problem = f"there is no {quote(name)} here; {self._hint(name)}"
        raise InvalidParams(_PATH, problem, expected=EXPECTED)

    def closest_guidance(self, key: str) -> str | None:
        """Return the key of the rule or reference that was probably meant."""
        kind, _, name = key.partition(":")
        likely = sorted(self.guidance.values(), key=lambda each: each.kind != kind)
        by_name = {each.item.name.lower(): each.key for each in reversed(likely)}
        close = closest(name.lower(), by_name)
        return None if close is None else by_name[close]

    def _keys(self, name: str) -> list[str]:
        """Return the keys that a name fits: the one that it is, or all that it could mean."""
        if name in self._all:
            return [name]
        wanted = name.casefold()
        return [key for key, names in self._all.items() if wanted in map(str.casefold, names)]

    def _hint(self, name: str) -> str:
        known = {each.casefold() for names in self._all.values() for each in names}
        close = closest(name.casefold(), known)
        if close is None:
            return f"expected {EXPECTED}; `/context` shows what there is"
        return f"did you mean {listed(self._keys(close))}?"


def bare(what: str) -> str:
    """Return a name without the quotes and marks that people put around it."""
    return what.strip().strip("`\"'").removeprefix("@")


def quote(name: str) -> str:
    """Return a name as it is shown in a sentence: servers choose theirs, so it may hold anything."""
    return excerpt.quote(name, _MAX_LENGTH, "`")


def listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence, cut when there are many."""
    more = len(names) - _MAX_LISTED
    return ", ".join(map(quote, names[:_MAX_LISTED])) + (f" and {more:,} more" if more > 0 else "")


_MENTION = re.compile(r"(?<![A-Za-z0-9_@/])@(rule|ref):([\w-]+(?:\.[\w-]+)*)", re.IGNORECASE)
_FENCED = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n]*(?:\n.*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)|\Z)", re.MULTILINE | re.DOTALL)
_BACKTICKS = re.compile(r"`+")


def find_mentions(text: str) -> list[str]:
    """Return the mentions, as `rule:NAME` and `ref:NAME`, each once, in order."""
    if not _MENTION.search(text):
        return []
    plain = "".join(_outside_spans(_FENCED.sub("\n", text)))
    return list(dict.fromkeys(f"{found[1].lower()}:{found[2]}" for found in _MENTION.finditer(plain)))


def leave_out_mentions(text: str) -> str:
    """Return the text without its mentions."""
    return _MENTION.sub(" ", text)


def _outside_spans(text: str) -> Iterator[str]:
    """Yield the text outside of code spans, which two equally long runs of backticks enclose, in one pass."""
    runs = list(_BACKTICKS.finditer(text))
    closing: list[int | None] = [None] * len(runs)
    seen: dict[int, int] = {}
    for place in range(len(runs) - 1, -1, -1):
        length = len(runs[place][0])
        closing[place] = seen.get(length)
        seen[length] = place
    position = place = 0
    while place < len(runs):
        end = closing[place]
        if end is not None:
            yield f"{text[position : runs[place].start()]} "
            position, place = runs[end].end(), end
        place += 1
    yield text[position:]
