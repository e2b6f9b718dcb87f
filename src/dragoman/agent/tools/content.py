"""What the client is shown of a tool call."""

import re

from dragoman.protocol import v1

_FENCE = re.compile(r"`{3,}")


def code(text: str) -> v1.Content:
    """Show text as it is."""
    return words(fenced(text))


def fenced(text: str) -> str:
    """Return text as Markdown that shows it as it is: in a fence that it cannot end."""
    longest = max((len(found) for found in _FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    newline = "" if text.endswith("\n") else "\n"
    return f"{fence}\n{text}{newline}{fence}"


def words(text: str) -> v1.Content:
    """Show words of our own."""
    return v1.Content(content=v1.TextContent(text=text))
