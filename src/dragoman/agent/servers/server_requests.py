"""Handles the client's extension requests about MCP servers: `_dragoman/mcp/list`, `restart`, `add` and `remove`.

They offer the functions of `/mcp` to the panel of a client. Each response has the status of all servers in `_meta`.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from dragoman.agent.servers.client_requests import decode_named, decode_server, decode_session, includes_of
from dragoman.agent.servers.session_mcp import SERVERS_KEY, SessionMcp
from dragoman.agent.servers.session_servers import ClientServer, SessionServer
from dragoman.errors import InvalidParamsError, McpServerError
from dragoman.mcp.definition import describe, from_protocol
from dragoman.mcp.info import ServerStatus, ToolInfo
from dragoman.protocol.connection import Routes
from dragoman.text import one_line

MCP_METHODS = {name: f"_dragoman/mcp/{name}" for name in ("add", "remove", "list", "restart")}
"""The methods by their names in the capabilities."""

MAX_DESCRIPTION = 300
"""The characters of a tool's description. The panel shows one or two lines."""


class ListedTool(msgspec.Struct, rename="camel", omit_defaults=True):
    """A tool in the response to `_dragoman/mcp/list`."""

    name: str
    title: str = ""
    description: str = ""
    reads_only: bool = False


class ListedServer(msgspec.Struct, rename="camel"):
    """A server in the response to `_dragoman/mcp/list`."""

    name: str
    origin: str
    """`client`, or the place of the agent's declaration."""
    transport: str
    what: str
    """The command or the address, without secrets."""
    state: str
    reason: str | None
    wants_login: bool
    can_restart: bool
    tools: list[ListedTool]


class ServerRequests:
    """Handles the requests of one client. `find` returns the servers of a session or raises UnknownSession."""

    def __init__(self, find: Callable[[str], SessionMcp]) -> None:
        self._find = find

    def register(self, routes: Routes) -> None:
        """Register the handlers of the methods."""
        handlers = {"add": self._add, "remove": self._remove, "list": self._list, "restart": self._restart}
        for name, handler in handlers.items():
            routes.on_extension(MCP_METHODS[name], handler)

    async def _add(self, params: Any) -> dict[str, Any]:
        request = decode_server(params)
        mcp = self._find(request.session_id)
        server = ClientServer(from_protocol(request.server), includes_of(request.server.meta, "params.server"))
        return {"name": mcp.servers.add(server).name, "_meta": mcp.meta()}

    async def _remove(self, params: Any) -> dict[str, Any]:
        request = decode_named(params)
        mcp = self._find(request.session_id)
        try:
            await mcp.servers.remove(request.name)
        except McpServerError as failure:
            raise InvalidParamsError("params.name", str(failure)) from None
        return {"_meta": _meta(mcp)}

    async def _list(self, params: Any) -> dict[str, Any]:
        mcp = self._find(decode_session(params).session_id)
        members = {member.name: member for member in mcp.servers.members()}
        listed = [
            _listed(status, mcp.servers.origin_of(status.name), members.get(status.name))
            for status in mcp.servers.statuses()
        ]
        return {"servers": msgspec.to_builtins(listed), "_meta": _meta(mcp)}

    async def _restart(self, params: Any) -> dict[str, Any]:
        """Restart a server. The response does not wait until it is ready, because a status update follows."""
        request = decode_named(params)
        mcp = self._find(request.session_id)
        try:
            await mcp.restart(request.name)
        except McpServerError as failure:
            raise InvalidParamsError("params.name", str(failure)) from None
        return {"_meta": _meta(mcp)}


def _meta(mcp: SessionMcp) -> dict[str, Any]:
    return mcp.meta() or {SERVERS_KEY: []}


def _listed(status: ServerStatus, origin: str, member: SessionServer | None) -> ListedServer:
    """Describe a server. Without a member, it is an unusable server of the agent, e.g. because a secret is missing."""
    return ListedServer(
        status.name,
        origin,
        status.transport,
        "" if member is None else describe(member.server.definition),
        status.state,
        status.reason,
        wants_login=member is not None and member.server.wants_login,
        can_restart=member is not None,
        tools=[] if member is None else [_tool(tool) for tool in member.server.tools],
    )


def _tool(tool: ToolInfo) -> ListedTool:
    return ListedTool(tool.name, tool.title, one_line(tool.description, MAX_DESCRIPTION), tool.reads_only)
