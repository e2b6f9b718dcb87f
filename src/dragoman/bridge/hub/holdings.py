"""What one viewer has and no other: MCP servers inside it, and connections to them.

The agent's messages about such a thing go to the viewer that has it, whoever else may be able to answer.
"""

from typing import TYPE_CHECKING

from msgspec import UNSET, Raw

from dragoman.bridge.envelope import fields_of, parse_list, string_of

if TYPE_CHECKING:
    from dragoman.bridge.hub.viewer import Viewer

_KEYS = ("connectionId", "serverId")
"""How messages name such a thing."""


class Holdings:
    """Knows who has what."""

    def __init__(self) -> None:
        self._holders: dict[tuple[str, str], Viewer] = {}

    def note_servers(self, viewer: "Viewer", params: Raw) -> None:
        """Remember the servers that a viewer gives to a session and that it answers itself."""
        servers = fields_of(params).get("mcpServers")
        if servers is None or b'"acp"' not in bytes(servers):
            return
        for server in map(fields_of, parse_list(servers)):
            server_id = string_of(server.get("serverId")) or string_of(server.get("id"))
            if string_of(server.get("type")) == "acp" and server_id is not None:
                self._holders["serverId", server_id] = viewer

    def note_answer(self, method: str, answer: bytes, viewer: "Viewer") -> None:
        """Remember what a viewer has made for the agent."""
        if method == "mcp/connect":
            made = string_of(fields_of(fields_of(Raw(answer)).get("result", UNSET)).get("connectionId"))
            if made is not None:
                self._holders["connectionId", made] = viewer

    def holder(self, method: str, params: Raw) -> "Viewer | None":
        """Say who has what a message is about, if it is about such a thing."""
        if not method.startswith("mcp/"):
            return None
        fields = fields_of(params)
        named = ((key, string_of(fields.get(key))) for key in _KEYS)
        found = (self._holders.get((key, name)) for key, name in named if name is not None)
        return next((viewer for viewer in found if viewer is not None), None)

    def forget(self, viewer: "Viewer") -> None:
        """Forget a viewer that is gone."""
        self._holders = {key: holder for key, holder in self._holders.items() if holder is not viewer}
