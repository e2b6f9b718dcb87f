"""The candidates for the model: tools (`ToolOffer`), rules and references (`Guidance`); and the selection of a turn."""

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from dragoman.agent.servers.client_requests import Include
from dragoman.assistant.profile import Profile
from dragoman.assistant.profile.items import TextItem
from dragoman.assistant.profile.settings import SearchSettings
from dragoman.assistant.tools.tool import Tool

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
