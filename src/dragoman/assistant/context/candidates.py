"""The candidates for the model: tools (`ToolOffer`), rules and references (`Guidance`); and the selection of a turn.

People call them by names: `rule:NAME`, `ref:NAME` and `server:NAME` are always understood, with or without an `@`, and
so is a tool's `SERVER/TOOL`; the name by itself, in any case, is enough where only one thing has it.

A mention is `@rule:NAME` or `@ref:NAME` in a prompt. It begins where no word, `@` or `/` stands before it, so not
inside an e-mail address or a URL, and it ends with the name, so not with the full stop behind it. In code, between
backticks or fences, nothing is a mention: there people quote, or write about mentions.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from dragoman.agent.prepared_call import PreparedCall
from dragoman.agent.servers.client_requests import Include
from dragoman.agent.servers.mcp_tool import McpTool
from dragoman.assistant.models.model import ToolDefinition
from dragoman.assistant.profile import Profile
from dragoman.assistant.profile.items import TextItem
from dragoman.assistant.profile.settings import SearchSettings
from dragoman.assistant.tools.tool import Tool
from dragoman.errors import InvalidParams
from dragoman.protocol import v1
from dragoman.text import excerpt
from dragoman.text.match import closest

Kind = Literal["rule", "ref"]

_TAGS = {"rule": "rule", "ref": "reference"}
_OPENING = "Keep to every rule below. A reference is there to be used where it helps."


class Guidance(msgspec.Struct, frozen=True):
    """A rule or a reference."""

    kind: Kind
    item: TextItem

    @property
    def key(self) -> str:
        """How it is called: `rule:NAME`, `ref:NAME`."""
        return f"{self.kind}:{self.item.name}"


def guidance_of(profile: Profile) -> list[Guidance]:
    """Return all there is, in order: by priority; of the same, rules before references; then by name."""
    there = [Guidance("rule", item) for item in profile.rules] + [Guidance("ref", item) for item in profile.references]
    return sorted(there, key=lambda each: (each.item.priority, each.kind != "rule", each.item.name))


def instruct(chosen: Sequence[Guidance]) -> str:
    """Return the words for the model, "" when nothing was chosen."""
    # Tags rather than headings: the texts are Markdown with headings of their own.
    parts = [
        f'<{_TAGS[each.kind]} name="{each.item.name}">\n{each.item.text.strip()}\n</{_TAGS[each.kind]}>'
        for each in chosen
    ]
    return "\n\n".join([_OPENING, *parts]) if parts else ""


_PLACES = {"builtin": 0, "session": 1, "agent": 2}


class ToolOffer(msgspec.Struct, frozen=True):
    """A tool that may be put in front of the model."""

    key: str
    """Unique in the session: `builtin/read_file`, `<server>/<tool>`."""
    tool: Tool
    origin: Literal["builtin", "session", "agent"]
    include: Include = "always"
    server: str = ""
    """The server's name as people see it."""
    title: str = ""
    description: str = ""
    """The server's own words, for the search; "" when they are those that the model has."""

    @property
    def name(self) -> str:
        """The tool's name at its server, where people see beside it which that is."""
        return self.key.removeprefix(f"{self.server}/") if self.server else self.tool.definition.name


def in_order(offers: Sequence[ToolOffer]) -> Sequence[ToolOffer]:
    """Sort offers as they stand before the model: the built-in ones, the session's, the agent's."""
    places = [_PLACES[offer.origin] for offer in offers]
    if places == sorted(places):  # as they usually come; that takes half of the time of sorting them
        return offers
    return sorted(offers, key=lambda offer: _PLACES[offer.origin])


Why = Literal["always", "mentioned", "by hand", "found by search"]


class Selection(msgspec.Struct):
    """Knows, by key, the things that go to the model in one turn."""

    search: SearchSettings
    by_hand: frozenset[str] = frozenset()
    """The additions of the person: keys, and `server:NAME` for all tools of a server."""
    mentioned: frozenset[str] = frozenset()
    queries: tuple[str, ...] = ()
    """The queries of the search: the prompt, and for a short one the prompt before."""
    found: dict[str, float] = msgspec.field(default_factory=dict[str, float])
    """The results of the search, with their scores; they stay for the turn."""
    scores: dict[str, float] = msgspec.field(default_factory=dict[str, float])
    """The keys that were searched."""

    def why(self, key: str, include: Include, server: str = "") -> Why | None:
        """Say why something is put before the model; None: it is not."""
        if include == "always":
            return "always"
        if key in self.mentioned:
            return "mentioned"
        if self.is_by_hand(key, server):
            return "by hand"
        return "found by search" if key in self.found else None

    def is_by_hand(self, key: str, server: str = "") -> bool:
        """Tell whether a person has added it, or all of its server."""
        added = self.by_hand
        return bool(added) and (key in added or f"server:{server}" in added)

    def take(self, scores: Mapping[str, float]) -> None:
        """Add the best results of a search to the results before."""
        self.scores.update(scores)
        best = sorted(scores.items(), key=lambda each: -each[1])[: self.search.top_n]
        self.found.update((key, score) for key, score in best if score >= self.search.min_score)


class ServerTool:
    """A tool of an MCP server, as a model is told of it."""

    def __init__(self, tool: McpTool) -> None:
        self._tool = tool
        self.server = tool.server
        self.title = tool.title
        self.kind: v1.ToolKind = tool.kind
        self.definition = ToolDefinition(tool.name, tool.description, tool.input_schema, tool.title)

    async def prepare(self, arguments: dict[str, Any]) -> PreparedCall:
        """Prepare a call with these arguments."""
        return await self._tool.prepare(arguments)


class ServerOffers:
    """Makes the offers anew only when the tools have changed: a list of tools is replaced and never changed."""

    def __init__(self) -> None:
        self._tools: Sequence[McpTool] = ()
        self._offers: Sequence[ToolOffer] = ()

    def all(self, tools: Sequence[McpTool]) -> Sequence[ToolOffer]:
        """Return an offer for every tool."""
        if tools is not self._tools:
            self._tools = tools
            self._offers = [_offer(tool) for tool in tools]
        return self._offers


def _offer(tool: McpTool) -> ToolOffer:
    return ToolOffer(
        key=f"{tool.server}/{tool.info.name}",
        tool=ServerTool(tool),
        origin="agent" if tool.is_agents else "session",
        include=tool.include,
        server=tool.server,
        title=tool.info.title,
        description=tool.info.description,
    )


SERVER = "server:"
EXPECTED = "SERVER/TOOL, server:NAME, rule:NAME or ref:NAME"

_PATH = "include"
_MAX_LISTED = 8
_MAX_LENGTH = 200
"""Characters of a name; a longer one was not meant to be typed."""


class ItemNames:
    """The things that there are, by all their names."""

    def __init__(self, offers: Sequence[ToolOffer], guidance: Iterable[Guidance], servers: Iterable[str] = ()) -> None:
        self.offers = {offer.key: offer for offer in offers}
        self.guidance = {each.key: each for each in guidance}
        named = dict.fromkeys([*(offer.server for offer in offers if offer.server), *servers])
        self._all: dict[str, tuple[str, ...]] = {
            **{key: (key, offer.name, offer.tool.definition.name) for key, offer in self.offers.items()},
            **{f"{SERVER}{name}": (f"{SERVER}{name}", name) for name in named},
            **{key: (key, each.item.name) for key, each in self.guidance.items()},
        }

    def __contains__(self, key: str) -> bool:
        return key in self._all

    def find(self, what: str) -> str:
        """Return the key of the thing that a person names; raises InvalidParams."""
        name = bare(what)
        if not name:
            raise InvalidParams(_PATH, f"say what: {EXPECTED}; `/context` shows what there is", expected=EXPECTED)
        keys = self._keys(name)
        if len(keys) == 1:
            return keys[0]
        if keys:
            problem = f"{quote(name)} may be {listed(keys)}; say which of them"
        else:
            problem = f"there is no {quote(name)} here; {self._hint(name)}"
        raise InvalidParams(_PATH, problem, expected=EXPECTED)

    def closest_guidance(self, key: str) -> str | None:
        """Return the key of the rule or reference that was probably meant."""
        kind, _, name = key.partition(":")
        likely = sorted(self.guidance.values(), key=lambda each: each.kind != kind)
        by_name = {each.item.name.lower(): each.key for each in reversed(likely)}
        close = closest(name.lower(), by_name)
        return None if close is None else by_name[close]

    def _keys(self, name: str) -> list[str]:
        """Return the keys that a name fits: the one that it is, or all that it could mean."""
        if name in self._all:
            return [name]
        wanted = name.casefold()
        return [key for key, names in self._all.items() if wanted in map(str.casefold, names)]

    def _hint(self, name: str) -> str:
        known = {each.casefold() for names in self._all.values() for each in names}
        close = closest(name.casefold(), known)
        if close is None:
            return f"expected {EXPECTED}; `/context` shows what there is"
        return f"did you mean {listed(self._keys(close))}?"


def bare(what: str) -> str:
    """Return a name without the quotes and marks that people put around it."""
    return what.strip().strip("`\"'").removeprefix("@")


def quote(name: str) -> str:
    """Return a name as it is shown in a sentence: servers choose theirs, so it may hold anything."""
    return excerpt.quote(name, _MAX_LENGTH, "`")


def listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence, cut when there are many."""
    more = len(names) - _MAX_LISTED
    return ", ".join(map(quote, names[:_MAX_LISTED])) + (f" and {more:,} more" if more > 0 else "")


_MENTION = re.compile(r"(?<![A-Za-z0-9_@/])@(rule|ref):([\w-]+(?:\.[\w-]+)*)", re.IGNORECASE)
_FENCED = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n]*(?:\n.*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)|\Z)", re.MULTILINE | re.DOTALL)
_BACKTICKS = re.compile(r"`+")


def find_mentions(text: str) -> list[str]:
    """Return the mentions, as `rule:NAME` and `ref:NAME`, each once, in order."""
    if not _MENTION.search(text):
        return []
    return list(dict.fromkeys(f"{found[1].lower()}:{found[2]}" for found in _MENTION.finditer(outside_code(text))))


def outside_code(text: str) -> str:
    """Return the text without what stands in code, between backticks or fences."""
    return "".join(_outside_spans(_FENCED.sub("\n", text)))


def leave_out_mentions(text: str) -> str:
    """Return the text without its mentions."""
    return _MENTION.sub(" ", text)


def _outside_spans(text: str) -> Iterator[str]:
    """Yield the text outside of code spans, which two equally long runs of backticks enclose, in one pass."""
    runs = list(_BACKTICKS.finditer(text))
    closing: list[int | None] = [None] * len(runs)
    seen: dict[int, int] = {}
    for place in range(len(runs) - 1, -1, -1):
        length = len(runs[place][0])
        closing[place] = seen.get(length)
        seen[length] = place
    position = place = 0
    while place < len(runs):
        end = closing[place]
        if end is not None:
            yield f"{text[position : runs[place].start()]} "
            position, place = runs[end].end(), end
        place += 1
    yield text[position:]
