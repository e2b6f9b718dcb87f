"""The finder: gives what is searched its scores. The search itself is imported when there is something to search."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dragoman.agent.context.candidates import Guidance, ToolOffer

if TYPE_CHECKING:
    from dragoman.agent.search import SearchIndex, SearchItem
    from dragoman.agent.search.embedder import Embedder


class ItemFinder:
    """Finds things of one kind; `load` replaces what makes vectors of texts."""

    def __init__(self, home: Path, load: "Callable[[], Embedder] | None" = None) -> None:
        self._home = home
        self._load = load
        self._index: SearchIndex | None = None

    @property
    def engine(self) -> Literal["semantic", "lexical"] | None:
        """How it finds; None until it had to."""
        return self._index and self._index.engine

    @property
    def notice(self) -> str | None:
        """What a person should know about how it finds."""
        return self._index and self._index.notice

    async def score(self, items: "Iterable[SearchItem]", queries: Sequence[str], top_k: int) -> dict[str, float]:
        """Give those items that have one of the `top_k` passages nearest to a query their scores, by key."""
        from dragoman.agent.search import select

        index = await self._open()
        await index.update(items)
        scores: dict[str, float] = {}
        for query in queries:
            for each in await select(index, query, top_k=top_k, top_n=top_k, min_score=0.0):
                scores[each.key] = max(each.score, scores.get(each.key, 0.0))
        return scores

    async def _open(self) -> "SearchIndex":
        from dragoman.agent.search import SearchIndex

        if self._index is None:
            self._index = await (
                SearchIndex.open(self._home, self._load) if self._load else SearchIndex.open(self._home)
            )
        return self._index


def tool_items(offers: Iterable[ToolOffer]) -> "list[SearchItem]":
    """Make what is searched of tools."""
    from dragoman.agent.search import tool_item

    return [
        tool_item(
            offer.key,
            server=offer.server,
            name=offer.name,
            title=offer.title,
            description=offer.description or offer.tool.definition.description,
            parameters=offer.tool.definition.parameters,
        )
        for offer in offers
    ]


def guidance_items(guidance: Iterable[Guidance]) -> "list[SearchItem]":
    """Make what is searched of rules and references: the description is a paragraph like the others."""
    from dragoman.agent.search import text_item

    return [text_item(each.key, each.item.name, f"{each.item.description}\n\n{each.item.text}") for each in guidance]
