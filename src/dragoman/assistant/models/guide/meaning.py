"""What a request means, by the search: asked only when its words do not decide, and then not in the middle of deciding.

Deciding goes without waiting. So a question that has no answer yet is noted, and the decision, which is worth nothing
then, is made again when the search has answered; the same text is looked up once in a conversation.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from dragoman.assistant.models.model import ToolDefinition
from dragoman.assistant.models.tool_index import ToolIndex

if TYPE_CHECKING:
    from dragoman.assistant.search.embedder import Embedder

MAX_CHARACTERS = 1_000
"""Of a request that is looked up: what is longer is material, and no name of a tool."""

MAX_KEPT = 512
"""Answers that are kept: a question and its answers take up to a dozen turns of up to 20 steps, all decided anew."""

_Key = tuple[str, tuple[str, ...]]


class Meaning:
    """What the search said so far."""

    def __init__(self, load: "Callable[[], Embedder] | None" = None) -> None:
        self._index = ToolIndex(load)
        self._known: dict[_Key, Mapping[str, float]] = {}
        self._open: dict[_Key, Sequence[ToolDefinition]] = {}

    def near(self, text: str, tools: Sequence[ToolDefinition]) -> Mapping[str, float] | None:
        """Return how near tools are to a text, by name; None when that must be looked up first."""
        if not tools or not text or len(text) > MAX_CHARACTERS:
            return {}
        key = (text, tuple(tool.name for tool in tools))
        if key not in self._known:
            self._open[key] = tools
            return None
        return self._known[key]

    async def look_up(self) -> bool:
        """Find out what was asked since, and tell whether anything was."""
        asked, self._open = self._open, {}
        for key, tools in asked.items():
            while len(self._known) >= MAX_KEPT:
                del self._known[next(iter(self._known))]
            self._known[key] = await self._index.near(key[0], tools)
        return bool(asked)
