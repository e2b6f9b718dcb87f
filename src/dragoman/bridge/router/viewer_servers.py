"""MCP servers inside viewers: the viewer that answers for each, and the ids that it has at the agent and there.

A viewer gives a session a server of its own by an id, and the agent asks for it with `mcp/message`. The agent has one
connection for all viewers, on which ids are unique; viewers do not know of each other and may use the same. A second
server of an id gets another one at the agent. A viewer that lost its connection opens the session again, and gives its
servers by the same names and maybe new ids: the agent, which knows nothing of that, keeps the id that it has. Several
viewers may offer a server of one name to a session: the first is asked, and the next when that one leaves.
"""

from collections.abc import Mapping

from msgspec import Raw

from dragoman.bridge.delivery import Viewer, ViewerRequest
from dragoman.bridge.envelope import encode, fields_of, parse_list, rename_server, string_of, with_param

MCP_MESSAGE = "mcp/message"

MAX_LEFT = 1_000
"""Servers that no viewer has any more, and whose ids are kept for its return; the oldest are forgotten first."""


class ViewerServers:
    """Knows the servers inside viewers, by their ids at the agent."""

    def __init__(self) -> None:
        self._offers: dict[str, dict[Viewer, str]] = {}
        """For each server the viewers that have it, the first to be asked first, with its id there."""

    def take_offers(self, request: ViewerRequest, servers: Raw | None) -> None:
        """Note the servers that a viewer gives to a session, and have its request name them as the agent does.

        `servers` are those that the agent has for the session already.
        """
        given = fields_of(request.params).get("mcpServers")
        if request.viewer.read_only or given is None or b'"acp"' not in bytes(given):
            return
        known = {name: id_ for name, id_ in map(_inside_viewer, parse_list(servers)) if id_ is not None}
        named = [self._take_offer(request.viewer, server, known) for server in parse_list(given)]
        if named != parse_list(given):
            request.line = with_param(request.line, "mcpServers", named)
            request.params = fields_of(Raw(request.line))["params"]

    def _take_offer(self, viewer: Viewer, server: Raw, known: dict[str, str]) -> Raw:
        name, own = _inside_viewer(server)
        if own is None:
            return server
        id_ = known.pop(name, None) or self._free_id(own, viewer)
        self._offers.setdefault(id_, {})[viewer] = own
        return server if id_ == own else Raw(encode({**fields_of(server), "serverId": id_}))

    def owner(self, params: Raw) -> Viewer | None:
        """Give the viewer that has the server of a message of the agent."""
        return next(iter(self._named(params)), None)

    def has_left(self, params: Raw) -> bool:
        """Tell whether the server of a message was inside a viewer that is gone."""
        return self._offers.get(_server_of(params)) == {}

    def to_viewer(self, line: bytes, params: Raw, viewer: Viewer) -> bytes:
        """Give a message of the agent with the id that the server has at its viewer."""
        own = self._named(params).get(viewer)
        return line if own is None or own == _server_of(params) else rename_server(line, own)

    def to_agent(self, line: bytes, params: Raw, viewer: Viewer) -> bytes | None:
        """Give a viewer's message with the id that the server has at the agent; None for a server it does not have."""
        own = _server_of(params)
        if self._offers.get(own, {}).get(viewer) == own:
            return line
        id_ = next((id_ for id_, offers in self._offers.items() if offers.get(viewer) == own), None)
        return None if id_ is None else rename_server(line, id_)

    def viewer_left(self, viewer: Viewer) -> None:
        """Note that a viewer is gone with its servers."""
        for offers in self._offers.values():
            offers.pop(viewer, None)
        left = [id_ for id_, offers in self._offers.items() if not offers]
        for id_ in left[:-MAX_LEFT]:
            del self._offers[id_]

    def _named(self, params: Raw) -> Mapping[Viewer, str]:
        return self._offers.get(_server_of(params), {})

    def _free_id(self, own: str, viewer: Viewer) -> str:
        """Give the viewer's own id, or the first of ours that no other server has at the agent."""
        id_, number = own, 1
        while id_ in self._offers and self._offers[id_].get(viewer) != own:
            number += 1
            id_ = f"{own}~{number}"
        return id_


def _inside_viewer(server: Raw) -> tuple[str, str | None]:
    """Give the name of a server, and its id if it is inside the viewer that gives it."""
    fields = fields_of(server)
    id_ = string_of(fields.get("serverId")) if string_of(fields.get("type")) == "acp" else None
    return string_of(fields.get("name")) or "", id_


def _server_of(params: Raw) -> str:
    return string_of(fields_of(params).get("serverId")) or ""
