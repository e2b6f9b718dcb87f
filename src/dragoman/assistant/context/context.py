"""The context of a session's model. Only this module chooses the tools, rules, references and skills of a request.

Everything has an include mode. `always` is sent in every turn. `manual` is sent after the user adds it: for the session
with `/include`, or for one turn by mentioning a rule or reference. `agent` is sent if the search finds it for the
prompt. Manual additions are not searched for.

Tools have one index. Rules, references and skills share another. Each returns up to `top_n` results, so references
do not displace tools, and a server that changes its tools does not affect the texts.

An answer such as "yes" or "Asia/Tokyo" does not name its subject. For a prompt of up to three words, the last longer
prompt is searched for as well, and the better score counts.

During a turn, tools are searched again only if the tools to search have changed. A tool found earlier in the turn
remains while its server has it, because the model may have called it or may be about to.

The search is imported only when there is something to search for.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from dragoman.assistant.context.candidates import (
    SERVER,
    Guidance,
    ItemNames,
    Selection,
    ToolOffer,
    find_mentions,
    guidance_of,
    instruct,
    listed,
    quote,
    sort_offers,
    strip_marks,
    without_mentions,
)
from dragoman.assistant.models.model import ToolDefinition
from dragoman.assistant.profile import Profile
from dragoman.assistant.tools.tool import Tool
from dragoman.errors import InvalidParamsError
from dragoman.protocol import v1

if TYPE_CHECKING:
    from dragoman.assistant.search import SearchIndex, SearchItem

SHORT_PROMPT_WORDS = 3
"""A prompt of up to this many words may be an answer, or "continue". A longer prompt names its own subject."""


_NONE: frozenset[str] = frozenset()
"""Shared by all sessions, because each empty set takes 200 bytes."""


class ModelContext:
    """Chooses the context of a session's model, and knows why. One turn uses it at a time."""

    def __init__(
        self,
        offers: Callable[[], Sequence[ToolOffer]],
        profile: Callable[[], Profile],
    ) -> None:
        """`offers` and `profile` are called each time they are needed."""
        self.included: list[str] = []
        """The keys that the user added: keys of offers, `rule:NAME`, `ref:NAME`, `skill:NAME` and `server:NAME`."""
        self.notices: list[str] = []
        """Notices for the user. The session shows them and clears the list."""
        self._offers = offers
        self._profile = profile
        self._tool_search = ToolSearch(ItemFinder())
        self._guidance_finder = ItemFinder()
        self._selection: Selection | None = None
        self._offered_by_servers: Sequence[ToolOffer] = ()
        """The servers' tools of the last request. Built-in tools keep directories open, so they are made again."""
        self._guidance: Sequence[Guidance] = ()
        self._long_prompt = ""
        self._reported: list[str] = []

    async def begin_turn(self, blocks: Sequence[v1.ContentBlock]) -> None:
        """Read a prompt's mentions and queries, and choose for it. The prompt is not changed."""
        text = "\n".join(block.text for block in blocks if isinstance(block, v1.TextContent))
        profile = self._profile()
        self._guidance = guidance_of(profile)
        self._tool_search.begin_turn()
        selection = self._selection = Selection(
            profile.search, self._added(), self._mentioned(text), self._queries(text)
        )
        await self._search_guidance(selection)
        await self._search_tools(selection, self._offer())

    async def tools(self) -> Mapping[str, Tool]:
        """Return the tools for the next request, by the names that the model uses."""
        selection = self._current()
        offers = self._offer()
        tools = {offer.tool.definition.name: offer.tool for offer in offers if offer.include == "always"}
        if len(tools) == len(offers):  # nothing to choose, as in most sessions
            return tools
        await self._search_tools(selection, offers)
        chosen = [offer for offer in offers if selection.why(offer.key, offer.include, offer.server)]
        tools = {offer.tool.definition.name: offer.tool for offer in chosen}
        return tools if len(tools) == len(chosen) else self._drop_duplicate_names(chosen)

    def instructions(self) -> str:
        """Return this turn's rules, references and skills as text for the model, or ""."""
        selection = self._current()
        return instruct([each for each in self._guidance if selection.why(each.key, each.item.include)])

    def include(self, what: str) -> str:
        """Include something for the rest of the session. Return a message for the user.

        Raises InvalidParamsError for an unknown name.
        """
        names = self._names()
        key = names.find(what)
        if key in self.included:
            return f"{quote(key)} is already included."
        if _is_always(names, key):
            return f"{quote(key)} is already in every turn."
        self.included.append(key)
        return f"{quote(key)} is included from the next turn on, until {quote(f'/exclude {key}')}."

    def exclude(self, what: str) -> str:
        """Undo an addition. Return a message for the user.

        Raises InvalidParamsError if the name is unknown or cannot be excluded.
        """
        names = self._names()
        key = strip_marks(what) if strip_marks(what) in self.included else names.find(what)  # it may no longer exist
        if key in self.included:
            self.included.remove(key)
            return f"{quote(key)} is no longer included manually."
        if _is_always(names, key):
            raise InvalidParamsError("exclude", f"{quote(key)} is in every turn, because its include mode is `always`")
        offer = names.offers.get(key)
        if offer is not None and f"{SERVER}{offer.server}" in self.included:
            server = quote(f"{SERVER}{offer.server}")
            raise InvalidParamsError(
                "exclude", f"{quote(key)} came with {server}; exclude that, and include what you need"
            )
        return f"{quote(key)} was not included manually, so there is nothing to undo."

    def report(self) -> str:
        """Return a Markdown report of everything that was or was not sent in the last turn, with reasons."""
        from dragoman.assistant.context.report import report

        began = self._selection is not None
        selection = self._current()
        shown = report(
            selection,
            self._last_offers() if began else sort_offers(self._offers()),
            self._guidance,
            searched=self._tool_search.finder.was_used or self._guidance_finder.was_used,
        )
        parts = [shown] if began else ["No turn has started yet. The next turn starts with this.", shown]
        names = self._names()
        there, gone = [key for key in self.included if key in names], [key for key in self.included if key not in names]
        if there:
            parts.append(f"Included manually, until `/exclude`: {listed(there)}.")
        if gone:
            parts.append(f"Included manually, but currently unavailable: {listed(gone)}.")
        return "\n\n".join(parts)

    def _offer(self) -> Sequence[ToolOffer]:
        offers = sort_offers(self._offers())
        self._offered_by_servers = [offer for offer in offers if offer.origin != "builtin"]
        return offers

    def _last_offers(self) -> Sequence[ToolOffer]:
        builtin = [offer for offer in self._offers() if offer.origin == "builtin"]
        return sort_offers([*builtin, *self._offered_by_servers])

    def _current(self) -> Selection:
        """Return the selection of this turn. Before the first turn, return one without a prompt."""
        if self._selection is not None:
            return self._selection
        profile = self._profile()
        self._guidance = guidance_of(profile)
        return Selection(profile.search, self._added())

    async def _search_guidance(self, selection: Selection) -> None:
        added = selection.mentioned | selection.added
        searched = [each for each in self._guidance if each.item.include == "agent" and each.key not in added]
        if searched and selection.queries:
            finder = self._guidance_finder
            scores = await finder.score(guidance_items(searched), selection.queries, selection.search.top_k)
            selection.add_results(scores)

    async def _search_tools(self, selection: Selection, offers: Sequence[ToolOffer]) -> None:
        await self._tool_search.search(selection, offers)

    def _drop_duplicate_names(self, offers: Sequence[ToolOffer]) -> dict[str, Tool]:
        first: dict[str, ToolOffer] = {}
        for offer in offers:
            other = first.setdefault(offer.tool.definition.name, offer)
            if other is not offer:
                name = quote(offer.tool.definition.name)
                self._notify_once(
                    f"{quote(offer.key)} is left out, because {quote(other.key)} already has the name {name}."
                )
        return {name: offer.tool for name, offer in first.items()}

    def _added(self) -> frozenset[str]:
        return frozenset(self.included) if self.included else _NONE

    def _mentioned(self, text: str) -> frozenset[str]:
        """Return the keys that a prompt mentions. Add a notice for each unknown mention."""
        names = ItemNames((), self._guidance)
        by_lower_case = {key.lower(): key for key in reversed(names.guidance)}
        keys: set[str] = set()
        for mention in find_mentions(text):
            key = mention if mention in names.guidance else by_lower_case.get(mention.lower())
            if key is not None:
                keys.add(key)
            else:
                close = names.closest_guidance(mention)
                hint = f" Did you mean {quote(f'@{close}')}?" if close else ""
                self.notices.append(f"{quote(f'@{mention}')} does not exist here, so it added nothing.{hint}")
        return frozenset(keys) if keys else _NONE

    def _queries(self, text: str) -> tuple[str, ...]:
        asked = without_mentions(text).strip()
        if len(asked.split(maxsplit=SHORT_PROMPT_WORDS)) > SHORT_PROMPT_WORDS:
            self._long_prompt = asked
        return tuple(filter(None, dict.fromkeys([asked, self._long_prompt])))

    def _names(self) -> ItemNames:
        profile = self._profile()
        return ItemNames(self._offers(), guidance_of(profile), (server.name for server in profile.servers))

    def _notify_once(self, notice: str | None) -> None:
        if notice is not None and notice not in self._reported:
            self._reported.append(notice)
            self.notices.append(notice)


def _is_always(names: ItemNames, key: str) -> bool:
    """Return whether a key is in every turn. A server is if it has tools and all of them are."""
    if key in names.guidance:
        return names.guidance[key].item.include == "always"
    if key in names.offers:
        return names.offers[key].include == "always"
    modes = {offer.include for offer in names.offers.values() if f"{SERVER}{offer.server}" == key}
    return modes == {"always"}


class ItemFinder:
    """Searches items of one kind. The search is imported on first use."""

    def __init__(self) -> None:
        self._index: SearchIndex | None = None

    @property
    def was_used(self) -> bool:
        """Whether anything was searched for."""
        return self._index is not None

    async def score(self, items: "Iterable[SearchItem]", queries: Sequence[str], top_k: int) -> dict[str, float]:
        """Return the scores, by key, of the items with one of the `top_k` passages nearest to a query."""
        from dragoman.assistant.search import SearchIndex, select

        index = self._index = self._index or SearchIndex()
        await index.update(items)
        scores: dict[str, float] = {}
        for query in queries:
            for each in await select(index, query, top_k=top_k, top_n=top_k, min_score=0.0):
                scores[each.key] = max(each.score, scores.get(each.key, 0.0))
        return scores


def tool_items(offers: Iterable[ToolOffer]) -> "list[SearchItem]":
    """Return tools as items for the search."""
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
    """Return rules, references and skills as items for the search. The description is one of their paragraphs."""
    from dragoman.assistant.search import text_item

    return [text_item(each.key, each.item.name, f"{each.item.description}\n\n{each.item.text}") for each in guidance]


class ToolSearch:
    """Searches a session's tools, and searches again only if the tools have changed."""

    def __init__(self, finder: ItemFinder) -> None:
        self.finder = finder
        self._searched: list[tuple[str, ToolDefinition]] = []
        self._indexed: list[tuple[str, ToolDefinition]] = []
        self._items: Sequence[SearchItem] = ()

    def begin_turn(self) -> None:
        """Search again for the next selection, even if the tools are unchanged."""
        self._searched = []

    async def search(self, selection: Selection, offers: Sequence[ToolOffer]) -> None:
        """Score the offers with the mode `agent` that the user has not added."""
        hidden = [each for each in offers if each.include == "agent" and not selection.is_added(each.key, each.server)]
        known = [(offer.key, offer.tool.definition) for offer in hidden]
        if known == self._searched or not selection.queries:
            return
        if known != self._indexed:
            self._indexed, self._items = known, tool_items(hidden)
        selection.add_results(await self.finder.score(self._items, selection.queries, selection.search.top_k))
        self._searched = known
