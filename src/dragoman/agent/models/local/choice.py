"""Which tools a small model is shown: a few that fit the prompt, since it loses its way among many."""

import re
from collections import Counter
from collections.abc import Collection, Sequence

from dragoman.agent.models.model import ToolDefinition

TOOLS_IN_FRONT = 6
"""Each costs about a hundred tokens to read, one to two seconds on one core; the number is chosen, not measured."""

NAME_WEIGHT = 3
"""A word of a tool's name says more about it than one of its description."""

_WORD = re.compile(r"[^\W_]+")


def choose_tools(
    tools: Sequence[ToolDefinition], prompt: str, used: Collection[str] = (), limit: int = TOOLS_IN_FRONT
) -> list[ToolDefinition]:
    """Return the tools that share most words with the prompt and those in use, in the order they were given in."""
    wanted = set(_words(prompt))
    scores = {tool.name: _score(tool, wanted) for tool in tools}
    ranked = sorted(tools, key=lambda tool: (tool.name not in used, -scores[tool.name]))
    chosen = {tool.name for tool in ranked[:limit]}
    return [tool for tool in tools if tool.name in chosen]


def _score(tool: ToolDefinition, wanted: set[str]) -> int:
    words = Counter(dict.fromkeys(_words(tool.name), NAME_WEIGHT))
    for word in set(_words(tool.description)):
        words[word] += 1
    return sum(weight for word, weight in words.items() if word in wanted)


def _words(text: str) -> list[str]:
    """Return its words without the plural, which is as much grammar as this needs."""
    return [word.removesuffix("s") for word in _WORD.findall(text.lower())]
