"""Text in a Markdown code fence, which shows the text unchanged and from which it can be extracted."""

import re

_FENCE = re.compile(r"`{3,}")
_FENCED = re.compile(r"(`{3,})\n(.*)\n\1", re.DOTALL)


def fenced(text: str) -> str:
    """Return text in a Markdown fence that is longer than any fence inside the text."""
    longest = max((len(found) for found in _FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    newline = "" if text.endswith("\n") else "\n"
    return f"{fence}\n{text}{newline}{fence}"


def unfenced(markdown: str) -> str | None:
    """Return the text inside a fence, without its last newline. Return None if the whole is not one fenced text."""
    found = _FENCED.fullmatch(markdown)
    return found.group(2) if found else None
