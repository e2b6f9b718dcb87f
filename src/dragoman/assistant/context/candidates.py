"""The candidates for the context: tools (`ToolOffer`), rules, references and skills (`Guidance`), and the selection.

Users refer to them by name. `rule:NAME`, `ref:NAME`, `skill:NAME`, `server:NAME` and `SERVER/TOOL` always work, with or
without `@`. The name without a prefix, in upper or lower case, works if only one candidate has it.

A mention is `@rule:NAME`, `@ref:NAME` or `@skill:NAME` in a prompt. It must not follow a word character, `@`
or `/`, so it does not start inside an e-mail address or URL. It ends with the name, before a full stop. Text in
backticks or fences contains no mentions, because users quote there or write about mentions.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

import msgspec

from dragoman.agent.servers.client_requests import Include
from dragoman.agent.servers.mcp_tool import McpTool
from dragoman.agent.turns.prepared_call import PreparedCall
from dragoman.assistant.models.model import ToolDefinition
from dragoman.assistant.profile import Profile
from dragoman.assistant.profile.items import TextItem
from dragoman.assistant.profile.settings import SearchSettings
from dragoman.assistant.tools.tool import Tool
from dragoman.errors import InvalidParamsError
from dragoman.protocol import v1
from dragoman.text import excerpt
from dragoman.text.match import closest

Kind = Literal["rule", "ref", "skill"]

_KINDS: Sequence[Kind] = get_args(Kind)
_TAGS = {"rule": "rule", "ref": "reference"}
_OPENING = "Follow every rule below. Use a reference if it helps."
_SKILLS_OPENING = "Call `read_skill` before you begin a task that one of these skills describes."


class Guidance(msgspec.Struct, frozen=True):
    """A rule, a reference or a skill. The text of a skill is its description, because the model loads the rest."""

    kind: Kind
    item: TextItem

    @property
    def key(self) -> str:
        """Its unique name, such as `rule:NAME`."""
        return f"{self.kind}:{self.item.name}"


def guidance_of(profile: Profile) -> list[Guidance]:
    """Return all rules, references and skills in order of priority, then by kind, then by name."""
    there = [
        *(Guidance("rule", item) for item in profile.rules),
        *(Guidance("ref", item) for item in profile.references),
        *(
            Guidance("skill", TextItem(skill.name, skill.description, include=skill.include))
            for skill in profile.skills
        ),
    ]
    return sorted(there, key=lambda each: (each.item.priority, _KINDS.index(each.kind), each.item.name))


def instruct(chosen: Sequence[Guidance]) -> str:
    """Return the text for the model, or "" if nothing was chosen."""
    # Tags instead of headings, because the texts are Markdown with their own headings.
    parts = [
        f'<{_TAGS[each.kind]} name="{each.item.name}">\n{each.item.text.strip()}\n</{_TAGS[each.kind]}>'
        for each in chosen
        if each.kind != "skill"
    ]
    # A description is one line, so it cannot look like another skill.
    skills = [f"- {each.item.name}: {each.item.text}" for each in chosen if each.kind == "skill"]
    opened = [_OPENING, *parts] if parts else []
    return "\n\n".join([*opened, *([_SKILLS_OPENING, "\n".join(skills)] if skills else [])])


_PLACES = {"builtin": 0, "session": 1, "agent": 2}


class ToolOffer(msgspec.Struct, frozen=True):
    """A tool that may be sent to the model."""

    key: str
    """Unique in the session, such as `builtin/read_file` or `<server>/<tool>`."""
    tool: Tool
    origin: Literal["builtin", "session", "agent"]
    include: Include = "always"
    server: str = ""
    """The server's name as users see it."""
    title: str = ""
    description: str = ""
    """The server's description for the search. Empty if the model gets the same text."""

    @property
    def name(self) -> str:
        """The tool's name at its server, shown next to the server's name."""
        return self.key.removeprefix(f"{self.server}/") if self.server else self.tool.definition.name


def sort_offers(offers: Sequence[ToolOffer]) -> Sequence[ToolOffer]:
    """Sort offers as the model gets them: built-in tools, the session's tools, the agent's tools."""
    places = [_PLACES[offer.origin] for offer in offers]
    if places == sorted(places):  # already sorted, as usual; this check takes half the time of sorting
        return offers
    return sorted(offers, key=lambda offer: _PLACES[offer.origin])


Why = Literal["always", "mentioned", "manually", "found by search"]


class Selection(msgspec.Struct):
    """The candidates, by key, that are sent to the model in one turn."""

    search: SearchSettings
    added: frozenset[str] = frozenset()
    """The user's additions: keys, and `server:NAME` for all tools of a server."""
    mentioned: frozenset[str] = frozenset()
    queries: tuple[str, ...] = ()
    """The search queries: the prompt, and for a short prompt also the one before."""
    found: dict[str, float] = msgspec.field(default_factory=dict[str, float])
    """The results of the search with their scores. They remain for the turn."""
    scores: dict[str, float] = msgspec.field(default_factory=dict[str, float])
    """The scores of all keys that were searched."""

    def why(self, key: str, include: Include, server: str = "") -> Why | None:
        """Return why a candidate is sent to the model, or None if it is not."""
        if include == "always":
            return "always"
        if key in self.mentioned:
            return "mentioned"
        if self.is_added(key, server):
            return "manually"
        return "found by search" if key in self.found else None

    def is_added(self, key: str, server: str = "") -> bool:
        """Return whether the user added it or its server."""
        return bool(self.added) and (key in self.added or f"server:{server}" in self.added)

    def add_results(self, scores: Mapping[str, float]) -> None:
        """Add the best results of a search to the earlier results."""
        self.scores.update(scores)
        best = sorted(scores.items(), key=lambda each: -each[1])[: self.search.top_n]
        self.found.update((key, score) for key, score in best if score >= self.search.min_score)


class ServerTool:
    """A tool of an MCP server, as the model gets it."""

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
    """Caches the offers until the tools change. A list of tools is replaced and never modified."""

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
EXPECTED = "SERVER/TOOL, server:NAME, rule:NAME, ref:NAME or skill:NAME"

_PATH = "include"
_MAX_LISTED = 8
_MAX_LENGTH = 200
"""The longest name that a message quotes, in characters. Longer names are never typed."""


class ItemNames:
    """All candidates, by each of their names."""

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
        """Return the key of the candidate with this name. Raises InvalidParamsError."""
        name = strip_marks(what)
        if not name:
            raise InvalidParamsError(_PATH, f"expected {EXPECTED}; `/context` lists them", expected=EXPECTED)
        keys = self._keys(name)
        if len(keys) == 1:
            return keys[0]
        if keys:
            problem = f"{quote(name)} may be {listed(keys)}; choose one"
        else:
            problem = f"{quote(name)} does not exist here; {self._hint(name)}"
        raise InvalidParamsError(_PATH, problem, expected=EXPECTED)

    def closest_guidance(self, key: str) -> str | None:
        """Return the key of the rule, reference or skill that the user probably meant."""
        kind, _, name = key.partition(":")
        likely = sorted(self.guidance.values(), key=lambda each: each.kind != kind)
        by_name = {each.item.name.lower(): each.key for each in reversed(likely)}
        close = closest(name.lower(), by_name)
        return None if close is None else by_name[close]

    def _keys(self, name: str) -> list[str]:
        """Return the keys that a name can mean: the exact key, or all that match."""
        if name in self._all:
            return [name]
        folded = name.casefold()
        return [key for key, names in self._all.items() if folded in map(str.casefold, names)]

    def _hint(self, name: str) -> str:
        known = {each.casefold() for names in self._all.values() for each in names}
        close = closest(name.casefold(), known)
        if close is None:
            return f"expected {EXPECTED}; `/context` lists them"
        return f"did you mean {listed(self._keys(close))}?"


def strip_marks(what: str) -> str:
    """Return the name without surrounding quotes or a leading `@`."""
    return what.strip().strip("`\"'").removeprefix("@")


def quote(name: str) -> str:
    """Return a name quoted for a sentence. Servers choose their names, so a name may contain anything."""
    return excerpt.quote(name, _MAX_LENGTH, "`")


def listed(names: Sequence[str]) -> str:
    """Return names as a list for a sentence. Long lists are cut."""
    more = len(names) - _MAX_LISTED
    return ", ".join(map(quote, names[:_MAX_LISTED])) + (f" and {more:,} more" if more > 0 else "")


_MENTION = re.compile(r"(?<![A-Za-z0-9_@/])@(rule|ref|skill):([\w-]+(?:\.[\w-]+)*)", re.IGNORECASE)
_FENCED = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n]*(?:\n.*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)|\Z)", re.MULTILINE | re.DOTALL)
_BACKTICKS = re.compile(r"`+")


def find_mentions(text: str) -> list[str]:
    """Return the distinct mentions in order, such as `rule:NAME`."""
    if not _MENTION.search(text):
        return []
    return list(dict.fromkeys(f"{found[1].lower()}:{found[2]}" for found in _MENTION.finditer(outside_code(text))))


def outside_code(text: str) -> str:
    """Return the text without code in backticks or fences."""
    return "".join(_outside_spans(_FENCED.sub("\n", text)))


def without_mentions(text: str) -> str:
    """Return the text without its mentions."""
    return _MENTION.sub(" ", text)


def _outside_spans(text: str) -> Iterator[str]:
    """Yield the text outside of code spans in one pass.

    A code span is enclosed by two runs of backticks of equal length.
    """
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
