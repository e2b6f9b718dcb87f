"""The context of a session's model: the tools, rules and references of each request, chosen here and nowhere else.

Everything has an include mode. `always` goes to the model in every turn. `manual` does once a person has added it, for
the session by `/include`, or, a rule or a reference, for one turn by a mention. `agent` does when the search finds it
for the prompt; what was added by hand is not searched for.

Tools have one index, rules and references together another, and each gives up to `top_n`: so references do not take
the place of tools, and a server that changes its tools does not touch the texts.

An answer such as "yes" or "Asia/Tokyo" says nothing about its subject. For a prompt of up to three words, the last
longer one is looked for as well, and the better score counts.

Tools are searched again in the middle of a turn only if the tools to search have changed. A tool that was found
earlier in the turn stays, as long as its server has it: the model may have called it, or may be about to.

The search itself is imported when there is something to search.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dragoman.assistant.context.candidates import (
    SERVER,
    Guidance,
    ItemNames,
    Selection,
    ToolOffer,
    bare,
    find_mentions,
    guidance_of,
    in_order,
    instruct,
    leave_out_mentions,
    listed,
    quote,
)
from dragoman.assistant.models.model import ToolDefinition
from dragoman.assistant.profile import Profile
from dragoman.assistant.tools.tool import Tool
from dragoman.errors import InvalidParams
from dragoman.protocol import v1

if TYPE_CHECKING:
    from dragoman.assistant.search import SearchIndex, SearchItem
    from dragoman.assistant.search.embedder import Embedder

SHORT_PROMPT_WORDS = 3
"""Words of a prompt that may be an answer, or "go on"; a longer prompt names its own subject."""


class ModelContext:
    """Chooses the tools, rules and references for a session's model, and knows why. One turn at a time uses it."""

    def __init__(
        self,
        home: Path,
        offers: Callable[[], Sequence[ToolOffer]],
        profile: Callable[[], Profile],
        *,
        load: "Callable[[], Embedder] | None" = None,
    ) -> None:
        """Ask `offers` and `profile` whenever they are needed; `load` replaces the embedder of the search."""
        self.included: list[str] = []
        """The keys that the person added: of offers, `rule:NAME`, `ref:NAME`, `server:NAME`."""
        self.notices: list[str] = []
        """Notices for the person; the session shows them and clears the list."""
        self._offers = offers
        self._profile = profile
        self._tool_search = ToolSearch(ItemFinder(home, load))
        self._guidance_finder = ItemFinder(home, load)
        self._selection: Selection | None = None
        self._given: Sequence[ToolOffer] = ()
        self._guidance: Sequence[Guidance] = ()
        self._long_prompt = ""
        self._told: set[str] = set()

    async def begin_turn(self, blocks: Sequence[v1.ContentBlock]) -> None:
        """Read the mentions and the queries of a prompt, and choose for it; the prompt stays as it is."""
        text = "\n".join(block.text for block in blocks if isinstance(block, v1.TextContent))
        profile = self._profile()
        self._guidance = guidance_of(profile)
        self._tool_search.begin_turn()
        self._given = in_order(self._offers())
        selection = self._selection = Selection(
            profile.search, frozenset(self.included), self._mentioned(text), self._queries(text)
        )
        await self._search_guidance(selection)
        await self._search_tools(selection, self._given)

    async def tools(self) -> Mapping[str, Tool]:
        """Return the tools for the next request to the model, by the names it has for them."""
        selection = self._current()
        offers = self._given = in_order(self._offers())
        tools = {offer.tool.definition.name: offer.tool for offer in offers if offer.include == "always"}
        if len(tools) == len(offers):  # nothing to choose, as in most sessions
            return tools
        await self._search_tools(selection, offers)
        chosen = [offer for offer in offers if selection.why(offer.key, offer.include, offer.server)]
        tools = {offer.tool.definition.name: offer.tool for offer in chosen}
        return tools if len(tools) == len(chosen) else self._without_namesakes(chosen)

    def instructions(self) -> str:
        """Return the rules and references of this turn as words for the model; "" when there are none."""
        selection = self._current()
        return instruct([each for each in self._guidance if selection.why(each.key, each.item.include)])

    def include(self, what: str) -> str:
        """Add something for the rest of the session, and say so; raises InvalidParams for an unknown name."""
        names = self._names()
        key = names.find(what)
        if key in self.included:
            return f"{quote(key)} is included already."
        if _is_always(names, key):
            return f"{quote(key)} is in every turn already; there is nothing to add."
        self.included.append(key)
        return f"{quote(key)} is included from the next turn on, until {quote(f'/exclude {key}')}."

    def exclude(self, what: str) -> str:
        """Take back an addition, and say so; raises InvalidParams for an unknown name, or when that is impossible."""
        names = self._names()
        key = bare(what) if bare(what) in self.included else names.find(what)  # it may be gone by now
        if key in self.included:
            self.included.remove(key)
            return f"{quote(key)} is no longer included by hand."
        if _is_always(names, key):
            raise InvalidParams("exclude", f"{quote(key)} is in every turn, because its include mode is `always`")
        offer = names.offers.get(key)
        if offer is not None and f"{SERVER}{offer.server}" in self.included:
            server = quote(f"{SERVER}{offer.server}")
            raise InvalidParams("exclude", f"{quote(key)} came with {server}; exclude that, and include what you need")
        return f"{quote(key)} was not included by hand; there is nothing to take back."

    def report(self) -> str:
        """Return a report in Markdown: all that the model was given in the last turn or was not, with reasons."""
        from dragoman.assistant.context.report import report

        began = self._selection is not None
        selection = self._current()
        shown = report(
            selection,
            self._given if began else in_order(self._offers()),
            self._guidance,
            self._tool_search.finder.engine or self._guidance_finder.engine,
        )
        parts = [shown] if began else ["There was no turn yet. The next one begins with this.", shown]
        names = self._names()
        there, gone = [key for key in self.included if key in names], [key for key in self.included if key not in names]
        if there:
            parts.append(f"Included by hand, until `/exclude`: {listed(there)}.")
        if gone:
            parts.append(f"Included by hand, but not there at the moment: {listed(gone)}.")
        return "\n\n".join(parts)

    def _current(self) -> Selection:
        """Return the selection of this turn; before the first one, the selection without a prompt."""
        if self._selection is not None:
            return self._selection
        profile = self._profile()
        self._guidance = guidance_of(profile)
        return Selection(profile.search, frozenset(self.included))

    async def _search_guidance(self, selection: Selection) -> None:
        added = selection.mentioned | selection.by_hand
        searched = [each for each in self._guidance if each.item.include == "agent" and each.key not in added]
        if searched and selection.queries:
            finder = self._guidance_finder
            selection.take(await finder.score(guidance_items(searched), selection.queries, selection.search.top_k))
            self._tell_once(finder.notice)

    async def _search_tools(self, selection: Selection, offers: Sequence[ToolOffer]) -> None:
        await self._tool_search.search(selection, offers)
        self._tell_once(self._tool_search.finder.notice)

    def _without_namesakes(self, offers: Sequence[ToolOffer]) -> dict[str, Tool]:
        first: dict[str, ToolOffer] = {}
        for offer in offers:
            other = first.setdefault(offer.tool.definition.name, offer)
            if other is not offer:
                name = quote(offer.tool.definition.name)
                self._tell_once(
                    f"{quote(offer.key)} is left out, because the model knows {quote(other.key)} by its name, {name}."
                )
        return {name: offer.tool for name, offer in first.items()}

    def _mentioned(self, text: str) -> frozenset[str]:
        """Return the keys that a prompt mentions, and add a notice for each unknown one."""
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
                self.notices.append(f"There is no {quote(f'@{mention}')} here, so it added nothing.{hint}")
        return frozenset(keys)

    def _queries(self, text: str) -> tuple[str, ...]:
        asked = leave_out_mentions(text).strip()
        if len(asked.split(maxsplit=SHORT_PROMPT_WORDS)) > SHORT_PROMPT_WORDS:
            self._long_prompt = asked
        return tuple(filter(None, dict.fromkeys([asked, self._long_prompt])))

    def _names(self) -> ItemNames:
        profile = self._profile()
        return ItemNames(self._offers(), guidance_of(profile), (server.name for server in profile.servers))

    def _tell_once(self, notice: str | None) -> None:
        if notice is not None and notice not in self._told:
            self._told.add(notice)
            self.notices.append(notice)


def _is_always(names: ItemNames, key: str) -> bool:
    """Whether a key is in every turn; a server is when it has tools and all of them are."""
    if key in names.guidance:
        return names.guidance[key].item.include == "always"
    if key in names.offers:
        return names.offers[key].include == "always"
    modes = {offer.include for offer in names.offers.values() if f"{SERVER}{offer.server}" == key}
    return modes == {"always"}


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
