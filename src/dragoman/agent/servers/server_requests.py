"""The client's extension requests about the MCP servers of a session: `_dragoman/mcp/list`, `restart`, `add`, `remove`.

They are what `/mcp` is for a person, for the panel of a client. Each answer has the status of all servers in `_meta`.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from dragoman.agent.servers.client_requests import decode_named, decode_server, decode_session, includes_of
from dragoman.agent.servers.session_mcp import SERVERS_KEY, SessionMcp
from dragoman.agent.servers.session_servers import ClientServer, SessionServer
from dragoman.errors import InvalidParams, ServerFailure
from dragoman.mcp.definition import describe, from_protocol
from dragoman.mcp.info import ServerStatus, ToolInfo
from dragoman.protocol.connection import Routes
from dragoman.text import one_line
from dragoman.wire import IncomingRequest

MCP_METHODS = {name: f"_dragoman/mcp/{name}" for name in ("add", "remove", "list", "restart")}
"""The methods by their names in the capabilities."""

MAX_DESCRIPTION = 300
"""Characters of a tool's description: the panel shows a line or two."""


class ListedTool(msgspec.Struct, rename="camel", omit_defaults=True):
    """A tool in the answer to `_dragoman/mcp/list`."""

    name: str
    title: str = ""
    description: str = ""
    reads_only: bool = False


class ListedServer(msgspec.Struct, rename="camel"):
    """A server in the answer to `_dragoman/mcp/list`."""

    name: str
    origin: str
    """`client`, or where the agent has it from."""
    transport: str
    what: str
    """The command or the address, without secrets."""
    state: str
    reason: str | None
    wants_login: bool
    can_restart: bool
    tools: list[ListedTool]


class ServerRequests:
    """Handles the requests for one client; `find` returns the servers of a session or raises UnknownSession."""

    def __init__(self, find: Callable[[str], SessionMcp]) -> None:
        self._find = find

    def register(self, routes: Routes) -> None:
        """Take over the methods."""
        handlers = {"add": self._add, "remove": self._remove, "list": self._list, "restart": self._restart}
        for name, handler in handlers.items():
            routes.on_extension(MCP_METHODS[name], handler)

    async def _add(self, params: Any, request: IncomingRequest) -> dict[str, Any]:
        del request
        wanted = decode_server(params)
        mcp = self._find(wanted.session_id)
        given = ClientServer(from_protocol(wanted.server), includes_of(wanted.server.meta, "params.server"))
        return {"name": mcp.servers.add(given).name, "_meta": mcp.meta()}

    async def _remove(self, params: Any, request: IncomingRequest) -> dict[str, Any]:
        del request
        wanted = decode_named(params)
        mcp = self._find(wanted.session_id)
        try:
            await mcp.servers.remove(wanted.name)
        except ServerFailure as failure:
            raise InvalidParams("params.name", str(failure)) from None
        return {"_meta": _meta(mcp)}

    async def _list(self, params: Any, request: IncomingRequest) -> dict[str, Any]:
        del request
        mcp = self._find(decode_session(params).session_id)
        members = {member.name: member for member in mcp.servers.members()}
        listed = [
            _listed(status, mcp.servers.origin_of(status.name), members.get(status.name))
            for status in mcp.servers.statuses()
        ]
        return {"servers": msgspec.to_builtins(listed), "_meta": _meta(mcp)}

    async def _restart(self, params: Any, request: IncomingRequest) -> dict[str, Any]:
        """Start a server again; the answer does not wait until it is ready, because its state is told anyway."""
        del request
        wanted = decode_named(params)
        mcp = self._find(wanted.session_id)
        try:
            await mcp.restart(wanted.name)
        except ServerFailure as failure:
            raise InvalidParams("params.name", str(failure)) from None
        return {"_meta": _meta(mcp)}


def _meta(mcp: SessionMcp) -> dict[str, Any]:
    return mcp.meta() or {SERVERS_KEY: []}


def _listed(status: ServerStatus, origin: str, member: SessionServer | None) -> ListedServer:
    """Describe a server; without a member it is one of the agent that cannot be used, such as for a missing secret."""
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
