"""What one viewer has and no other: MCP servers inside it, connections to them, and terminals.

The agent's messages about such a thing go to the viewer that has it, whoever else may be able to answer.
"""

from typing import TYPE_CHECKING

from msgspec import UNSET, Raw

from dragoman.gateway.hub.envelope import fields_of, parse_list, session_of, string_of

if TYPE_CHECKING:
    from dragoman.gateway.hub.viewer import Viewer

_KEYS = {"mcp/": ("connectionId", "serverId"), "terminal/": ("terminalId",)}
"""How messages name such a thing, by the beginning of their method."""

_MADE_BY = {"mcp/connect": "connectionId", "terminal/create": "terminalId"}
"""What the answer to a request names that it has made."""


class Holdings:
    """Knows who has what."""

    def __init__(self) -> None:
        self._holders: dict[tuple[str, str, str], Viewer] = {}

    def note_servers(self, viewer: "Viewer", params: Raw) -> None:
        """Remember the servers that a viewer gives to a session and that it answers itself."""
        servers = fields_of(params).get("mcpServers")
        if servers is None or b'"acp"' not in bytes(servers):
            return
        for server in map(fields_of, parse_list(servers)):
            server_id = string_of(server.get("serverId")) or string_of(server.get("id"))
            if string_of(server.get("type")) == "acp" and server_id is not None:
                self._holders["", "serverId", server_id] = viewer

    def note_answer(self, method: str, params: Raw, answer: bytes, viewer: "Viewer") -> None:
        """Remember what a viewer has made for the agent."""
        key = _MADE_BY.get(method)
        if key is not None:
            made = string_of(fields_of(fields_of(Raw(answer)).get("result", UNSET)).get(key))
            if made is not None:
                self._holders[_scope(method, params), key, made] = viewer

    def holder(self, method: str, params: Raw) -> "Viewer | None":
        """Say who has what a message is about, if it is about such a thing."""
        for beginning, keys in _KEYS.items():
            if method.startswith(beginning):
                fields = fields_of(params)
                named = ((key, string_of(fields.get(key))) for key in keys)
                scope = _scope(method, params)
                found = (self._holders.get((scope, key, name)) for key, name in named if name is not None)
                return next((viewer for viewer in found if viewer is not None), None)
        return None

    def forget(self, viewer: "Viewer") -> None:
        """Forget a viewer that is gone."""
        self._holders = {key: holder for key, holder in self._holders.items() if holder is not viewer}


def _scope(method: str, params: Raw) -> str:
    """Clients name terminals as they like, each for itself: an id says whose only together with its session."""
    return (session_of(params) or "") if method.startswith("terminal/") else ""
