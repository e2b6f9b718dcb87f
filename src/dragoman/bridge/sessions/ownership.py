"""Terminals and MCP servers inside viewers, which belong to one viewer each.

Requests about a terminal or a server are sent to the viewer that owns it, even if other viewers could answer.

Terminals: each client numbers its terminals, so two clients on one session soon use the same ids. The agent receives
the viewer's id if it is free, otherwise an id of the bridge. The bridge translates the ids in both directions.

Servers: a viewer offers a session a server with an id, and the agent uses it with `mcp/message`. The agent has one
connection for all viewers, on which ids must be unique. Viewers do not know each other and may use the same id. The
second server with an id gets another id at the agent. A viewer that lost its connection opens the session again and
offers its servers with the same names and maybe new ids. The agent does not notice this and keeps its id. Several
viewers may offer a server with the same name to a session. The first one is used, and the next one after it leaves.
"""

from collections.abc import Mapping

from msgspec import UNSET, Raw

from dragoman.bridge.envelope import parse_list, rename_server
from dragoman.bridge.viewers import Viewer, ViewerRequest
from dragoman.protocol import methods
from dragoman.wire.envelope import encode, fields_of, session_of, string_of, with_param

CREATE_TERMINAL = methods.TERMINAL_CREATE.name
RELEASE_TERMINAL = methods.TERMINAL_RELEASE.name
MCP_MESSAGE = methods.MCP_MESSAGE.name

MAX_LEFT = 1_000
"""Servers without a viewer whose ids are kept in case the viewer returns. The oldest are forgotten first."""


class ViewerServers:
    """The servers inside viewers, by their ids at the agent."""

    def __init__(self) -> None:
        self._offers: dict[str, dict[Viewer, str]] = {}
        """Per server, the viewers that offer it, in order of use, with its id at each."""

    def register_servers(self, request: ViewerRequest, servers: Raw | None) -> None:
        """Remember the servers that a viewer offers to a session, and put the agent's ids into its request.

        `servers` are the ones that the agent already has for the session.
        """
        given = fields_of(request.params).get("mcpServers")
        if request.viewer.read_only or given is None or b'"acp"' not in bytes(given):
            return
        known = {name: id_ for name, id_ in map(_inside_viewer, parse_list(servers)) if id_ is not None}
        named = [self._register_server(request.viewer, server, known) for server in parse_list(given)]
        if named != parse_list(given):
            request.line = with_param(request.line, "mcpServers", named)
            request.params = fields_of(Raw(request.line))["params"]

    def _register_server(self, viewer: Viewer, server: Raw, known: dict[str, str]) -> Raw:
        name, own = _inside_viewer(server)
        if own is None:
            return server
        id_ = known.pop(name, None) or self._free_id(own, viewer)
        self._offers.setdefault(id_, {})[viewer] = own
        return server if id_ == own else Raw(encode({**fields_of(server), "serverId": id_}))

    def owner(self, params: Raw) -> Viewer | None:
        """Return the viewer that has the server of a message of the agent."""
        return next(iter(self._named(params)), None)

    def has_left(self, params: Raw) -> bool:
        """Return whether the server of a message was inside a viewer that is gone."""
        return self._offers.get(_server_of(params)) == {}

    def to_viewer(self, line: bytes, params: Raw, viewer: Viewer) -> bytes:
        """Return a message of the agent with the server's id at the viewer."""
        own = self._named(params).get(viewer)
        return line if own is None or own == _server_of(params) else rename_server(line, own)

    def to_agent(self, line: bytes, params: Raw, viewer: Viewer) -> bytes | None:
        """Return a viewer's message with the agent's id of the server. None if the viewer has no such server."""
        own = _server_of(params)
        if self._offers.get(own, {}).get(viewer) == own:
            return line
        id_ = next((id_ for id_, offers in self._offers.items() if offers.get(viewer) == own), None)
        return None if id_ is None else rename_server(line, id_)

    def viewer_left(self, viewer: Viewer) -> None:
        """Remove the servers of a viewer that has left, but keep their ids."""
        for offers in self._offers.values():
            offers.pop(viewer, None)
        left = [id_ for id_, offers in self._offers.items() if not offers]
        for id_ in left[:-MAX_LEFT]:
            del self._offers[id_]

    def _named(self, params: Raw) -> Mapping[Viewer, str]:
        return self._offers.get(_server_of(params), {})

    def _free_id(self, own: str, viewer: Viewer) -> str:
        """Return the viewer's id, or the first numbered one that no other server has at the agent."""
        id_, number = own, 1
        while id_ in self._offers and self._offers[id_].get(viewer) != own:
            number += 1
            id_ = f"{own}~{number}"
        return id_


class Ownership:
    """The viewer of each terminal and of each server."""

    def __init__(self) -> None:
        self.servers = ViewerServers()
        self._terminals: dict[tuple[str, str], Viewer | None] = {}
        """The owners by session and id at the agent. None if the viewer has left."""

    def record_answer(self, method: str, params: Raw, answer: bytes, viewer: Viewer) -> bytes:
        """Remember a terminal that a viewer has created. Return the answer with the id for the agent."""
        if method == RELEASE_TERMINAL:
            self._terminals.pop((session_of(params) or "", string_of(fields_of(params).get("terminalId")) or ""), None)
        return self._record_terminal(params, answer, viewer) if method == CREATE_TERMINAL else answer

    def terminal_owner(self, params: Raw) -> Viewer | None:
        """Return the viewer that owns the terminal of a request."""
        session_id, id_ = session_of(params), string_of(fields_of(params).get("terminalId"))
        return self._terminals.get((session_id or "", id_ or ""))

    def viewer_left(self, viewer: Viewer) -> None:
        """Forget the servers of a viewer that has left, and mark its terminals as lost."""
        self.servers.viewer_left(viewer)
        for key, owner in self._terminals.items():
            if owner is viewer:
                self._terminals[key] = None

    def forget_session(self, session_id: str) -> None:
        """Forget the terminals of a session that is gone."""
        self._terminals = {key: viewer for key, viewer in self._terminals.items() if key[0] != session_id}

    def agent_ended(self) -> None:
        """Forget all terminals, because the agent that had them is gone."""
        for viewer in self._terminals.values():
            if viewer is not None:
                viewer.forget_terminals()
        self._terminals.clear()

    def _record_terminal(self, params: Raw, answer: bytes, viewer: Viewer) -> bytes:
        fields = fields_of(Raw(answer))
        result = fields_of(fields.get("result", UNSET))
        own, session_id = string_of(result.get("terminalId")), session_of(params)
        if own is None or session_id is None:
            return answer
        id_ = self._free_id(session_id, own, viewer)
        self._terminals[session_id, id_] = viewer
        if id_ == own:
            return answer
        viewer.name_terminal(session_id, id_, own)
        return encode({**fields, "result": {**result, "terminalId": id_}})

    def _free_id(self, session_id: str, own: str, viewer: Viewer) -> str:
        """Return the viewer's id, or the first numbered one that no other terminal has at the agent."""
        id_, number = own, 1
        while self._is_taken(session_id, id_, own, viewer):
            number += 1
            id_ = f"{own}~{number}"
        return id_

    def _is_taken(self, session_id: str, id_: str, own: str, viewer: Viewer) -> bool:
        """Return whether an id at the agent already belongs to a different terminal of any viewer."""
        is_foreign = self._terminals.get((session_id, id_), viewer) is not viewer
        return is_foreign or viewer.terminal_names.get(session_id, {}).get(id_, own) != own


def _inside_viewer(server: Raw) -> tuple[str, str | None]:
    """Return the name of a server, and its id if it is inside the viewer that offers it."""
    fields = fields_of(server)
    id_ = string_of(fields.get("serverId")) if string_of(fields.get("type")) == "acp" else None
    return string_of(fields.get("name")) or "", id_


def _server_of(params: Raw) -> str:
    return string_of(fields_of(params).get("serverId")) or ""
