"""A tool before it is chosen."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from dragoman.agent.profile.settings import Include
from dragoman.agent.tools.tool import Tool

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
