"""Text in a fence of Markdown: it is shown as it is, and can be taken out again."""

import re

_FENCE = re.compile(r"`{3,}")
_FENCED = re.compile(r"(`{3,})\n(.*)\n\1", re.DOTALL)


def fenced(text: str) -> str:
    """Return text as Markdown that shows it as it is: in a fence that it cannot end."""
    longest = max((len(found) for found in _FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    newline = "" if text.endswith("\n") else "\n"
    return f"{fence}\n{text}{newline}{fence}"


def unfenced(markdown: str) -> str | None:
    """Return the text in a fence, without the newline at its end; None where the whole is no fenced text."""
    found = _FENCED.fullmatch(markdown)
    return found.group(2) if found else None
