"""Things that one viewer has and no other: terminals, MCP servers inside it, and connections to those.

Requests of the agent about such a thing go to the viewer that has it, whoever else may be able to answer.

Clients number their terminals, each for itself, so two of them on one session have the same ids soon. The agent is told
the viewer's own id where that is free, and else one of ours. A message of the agent that has our id is sent to the
viewer with its own id, and the other terminal, which has that id at the agent, by ours.
"""

from msgspec import UNSET, Raw

from dragoman.bridge.delivery import Viewer
from dragoman.bridge.envelope import encode, fields_of, parse_list, session_of, string_of

CREATE_TERMINAL = "terminal/create"

_KEYS = ("connectionId", "serverId")
"""The fields by which messages name a connection to a server, or a server."""


class Ownership:
    """Knows which viewer has what."""

    def __init__(self) -> None:
        self._servers: dict[tuple[str, str], Viewer] = {}
        """By field and id: servers, and connections to them."""
        self._terminals: dict[tuple[str, str], Viewer | None] = {}
        """By session and id at the agent; None for those of viewers that have left."""

    def note_servers(self, viewer: Viewer, params: Raw) -> None:
        """Remember the MCP servers that a viewer gives to a session and that it answers itself."""
        servers = fields_of(params).get("mcpServers")
        if servers is None or b'"acp"' not in bytes(servers):
            return
        for server in map(fields_of, parse_list(servers)):
            server_id = string_of(server.get("serverId")) or string_of(server.get("id"))
            if string_of(server.get("type")) == "acp" and server_id is not None:
                self._servers["serverId", server_id] = viewer

    def note_answer(self, method: str, params: Raw, answer: bytes, viewer: Viewer) -> bytes:
        """Remember what a viewer has made for the agent, and give its answer as the agent is to have it."""
        if method == CREATE_TERMINAL:
            return self._note_terminal(params, answer, viewer)
        if method == "mcp/connect":
            made = string_of(fields_of(fields_of(Raw(answer)).get("result", UNSET)).get("connectionId"))
            if made is not None:
                self._servers["connectionId", made] = viewer
        return answer

    def server_owner(self, method: str, params: Raw) -> Viewer | None:
        """Give the viewer that has the server or connection of a message, if it is about one."""
        if not method.startswith("mcp/"):
            return None
        fields = fields_of(params)
        named = ((key, string_of(fields.get(key))) for key in _KEYS)
        found = (self._servers.get((key, name)) for key, name in named if name is not None)
        return next((viewer for viewer in found if viewer is not None), None)

    def terminal_owner(self, params: Raw) -> Viewer | None:
        """Give the viewer that has the terminal of a request."""
        session_id, id_ = session_of(params), string_of(fields_of(params).get("terminalId"))
        return self._terminals.get((session_id or "", id_ or ""))

    def viewer_left(self, viewer: Viewer) -> None:
        """Forget the things of a viewer that is gone."""
        self._servers = {key: owner for key, owner in self._servers.items() if owner is not viewer}
        for key, owner in self._terminals.items():
            if owner is viewer:
                self._terminals[key] = None

    def agent_ended(self) -> None:
        """Forget all terminals: the agent that had them is gone."""
        for viewer in self._terminals.values():
            if viewer is not None:
                viewer.terminal_names.clear()
        self._terminals.clear()

    def _note_terminal(self, params: Raw, answer: bytes, viewer: Viewer) -> bytes:
        fields = fields_of(Raw(answer))
        result = fields_of(fields.get("result", UNSET))
        own, session_id = string_of(result.get("terminalId")), session_of(params)
        if own is None or session_id is None:
            return answer
        id_ = self._free_id(session_id, own, viewer)
        self._terminals[session_id, id_] = viewer
        if id_ == own:
            return answer
        names = viewer.terminal_names.setdefault(session_id, {})
        names[id_] = own
        names.setdefault(own, id_)
        return encode({**fields, "result": {**result, "terminalId": id_}})

    def _free_id(self, session_id: str, own: str, viewer: Viewer) -> str:
        """Give the viewer's own id, or the first of ours that no other terminal has at the agent."""
        id_, number = own, 1
        while self._is_taken(session_id, id_, own, viewer):
            number += 1
            id_ = f"{own}~{number}"
        return id_

    def _is_taken(self, session_id: str, id_: str, own: str, viewer: Viewer) -> bool:
        """Tell whether the agent knows a terminal of another viewer, or another of this one, by an id."""
        is_foreign = self._terminals.get((session_id, id_), viewer) is not viewer
        return is_foreign or viewer.terminal_names.get(session_id, {}).get(id_, own) != own
