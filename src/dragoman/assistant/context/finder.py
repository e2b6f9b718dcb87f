"""The finder: scores items for a query. The search itself is imported when there is something to search."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dragoman.assistant.context.candidates import Guidance, Selection, ToolOffer
from dragoman.assistant.models.model import ToolDefinition

if TYPE_CHECKING:
    from dragoman.assistant.search import SearchIndex, SearchItem
    from dragoman.assistant.search.embedder import Embedder


class ItemFinder:
    """Finds items of one kind; `load` replaces the embedder."""

    def __init__(self, home: Path, load: "Callable[[], Embedder] | None" = None) -> None:
        self._home = home
        self._load = load
        self._index: SearchIndex | None = None

    @property
    def engine(self) -> Literal["semantic", "lexical"] | None:
        """The engine of the search; None before the first search."""
        return self._index and self._index.engine

    @property
    def notice(self) -> str | None:
        """A notice for the person about the engine."""
        return self._index and self._index.notice

    async def score(self, items: "Iterable[SearchItem]", queries: Sequence[str], top_k: int) -> dict[str, float]:
        """Return, by key, the scores of the items that have one of the `top_k` passages nearest to a query."""
        from dragoman.assistant.search import select

        index = await self._open()
        await index.update(items)
        scores: dict[str, float] = {}
        for query in queries:
            for each in await select(index, query, top_k=top_k, top_n=top_k, min_score=0.0):
                scores[each.key] = max(each.score, scores.get(each.key, 0.0))
        return scores

    async def _open(self) -> "SearchIndex":
        from dragoman.assistant.search import SearchIndex

        if self._index is None:
            self._index = await (
                SearchIndex.open(self._home, self._load) if self._load else SearchIndex.open(self._home)
            )
        return self._index


def tool_items(offers: Iterable[ToolOffer]) -> "list[SearchItem]":
    """Return the items to search for tools."""
    from dragoman.assistant.search import tool_item

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
    """Return the items to search for rules and references; the description is a paragraph like the others."""
    from dragoman.assistant.search import text_item

    return [text_item(each.key, each.item.name, f"{each.item.description}\n\n{each.item.text}") for each in guidance]


class ToolSearch:
    """Searches the tools of a session, again only when the tools to search have changed."""

    def __init__(self, finder: ItemFinder) -> None:
        self.finder = finder
        self._searched: list[tuple[str, ToolDefinition]] = []
        self._indexed: list[tuple[str, ToolDefinition]] = []
        self._items: Sequence[SearchItem] = ()

    def begin_turn(self) -> None:
        """Search for the next selection, also when the tools are the same."""
        self._searched = []

    async def search(self, selection: Selection, offers: Sequence[ToolOffer]) -> None:
        """Give the selection the scores of the offers with the mode `agent` that were not added by hand."""
        wanted = [
            each for each in offers if each.include == "agent" and not selection.is_by_hand(each.key, each.server)
        ]
        known = [(offer.key, offer.tool.definition) for offer in wanted]
        if known == self._searched or not selection.queries:
            return
        if known != self._indexed:
            self._indexed, self._items = known, tool_items(wanted)
        selection.take(await self.finder.score(self._items, selection.queries, selection.search.top_k))
        self._searched = known
