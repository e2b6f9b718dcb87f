"""Mentions: `@rule:NAME` and `@ref:NAME` in what a person writes.

A mention begins where no word, `@` or `/` stands before it, so not inside an e-mail address or a URL, and it ends
with the name, so not with the full stop behind it. In code, between backticks or fences, nothing is a mention: there
people quote, or talk about mentions.
"""

import re
from collections.abc import Iterator

_MENTION = re.compile(r"(?<![A-Za-z0-9_@/])@(rule|ref):([\w-]+(?:\.[\w-]+)*)", re.IGNORECASE)
_FENCED = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n]*(?:\n.*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)|\Z)", re.MULTILINE | re.DOTALL)
_BACKTICKS = re.compile(r"`+")


def find_mentions(text: str) -> list[str]:
    """Return what is mentioned, as `rule:NAME` and `ref:NAME`, each once, in order."""
    if not _MENTION.search(text):
        return []
    plain = "".join(_outside_spans(_FENCED.sub("\n", text)))
    return list(dict.fromkeys(f"{found[1].lower()}:{found[2]}" for found in _MENTION.finditer(plain)))


def leave_out_mentions(text: str) -> str:
    """Return the text without its mentions."""
    return _MENTION.sub(" ", text)


def _outside_spans(text: str) -> Iterator[str]:
    """Yield what is not between two equally long runs of backticks, in one pass over texts of any size."""
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
