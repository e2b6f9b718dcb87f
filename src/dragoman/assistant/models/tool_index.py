"""Tools found by meaning: the agent's search, over the tools that a model is given."""

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.assistant.models.model import ToolDefinition
from dragoman.loading import load_in_background

if TYPE_CHECKING:
    from dragoman.assistant.search import SearchIndex, SearchItem
    from dragoman.assistant.search.embedder import Embedder

_NOWHERE = Path(os.devnull)
"""A model does not know the agent's home, and the search does without a cache that it cannot keep: 45 tools were
embedded in 33 ms, which a conversation pays once."""


class ToolIndex:
    """Says how near tools are to a text. Nothing is imported or loaded before the first question, and then in a thread.

    `load` replaces the embedder.
    """

    def __init__(self, load: "Callable[[], Embedder] | None" = None) -> None:
        self._load = load
        self._index: SearchIndex | None = None

    async def near(self, text: str, tools: Sequence[ToolDefinition]) -> dict[str, float]:
        """Return the nearness of each tool that has something in common with the text, by its name, in 0..1."""
        if self._index is None:
            opens = await asyncio.wrap_future(load_in_background(_import_index))
            self._index = await (opens.open(_NOWHERE, self._load) if self._load else opens.open(_NOWHERE))
        await self._index.update([_item(tool) for tool in tools])
        return {hit.key: hit.score for hit in await self._index.search(text, len(tools))}


def own_name(tool: ToolDefinition) -> str:
    """Return a tool's name without its server's."""
    return tool.name.rpartition("__")[2] or tool.name


def _import_index() -> "type[SearchIndex]":
    from dragoman.assistant.search import SearchIndex

    return SearchIndex


def _item(tool: ToolDefinition) -> "SearchItem":
    from dragoman.assistant.search import tool_item

    own = own_name(tool)
    server = tool.name.removesuffix(own).removesuffix("__")
    return tool_item(
        tool.name,
        server=server,
        name=own,
        title=tool.title.partition(": ")[2],
        description=tool.description,
        parameters=tool.parameters,
    )
