"""The client's end of MCP over ACP: servers inside a client, which its agent asks over the ACP connection.

Each `mcp/message` of the agent is one request of MCP 2026-07-28. An error of the server is inside the answer; an ACP
error says that the server could not be asked. Notifications of the server carry the id of the request that they
belong to, and end with it.
"""

import uuid
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import msgspec

from dragoman.errors import ErrorCode, InvalidParams, RpcError
from dragoman.mcp.era import Era
from dragoman.mcp.serving.function_server import FunctionServer, FunctionSession
from dragoman.protocol import v1
from dragoman.protocol.connection import Connection, Routes
from dragoman.protocol.methods import MCP_MESSAGE, MCP_NOTIFICATION
from dragoman.wire import IncomingRequest, error_object

MAX_ACTIVE = 64
"""Requests to one server at a time, those that wait for changes included."""


class _OfferedServer(msgspec.Struct, frozen=True):
    session: FunctionSession
    active: set[str]
    """The ids of the requests that are not answered."""


class AcpFunctionServers:
    """Routes the agent's requests to the servers inside this client."""

    def __init__(self) -> None:
        self._connection: Connection | None = None
        self._servers: dict[str, _OfferedServer] = {}

    def register(self, routes: Routes) -> None:
        """Handle the method of MCP over ACP."""
        routes.on_request(MCP_MESSAGE, self._answer)

    def attach(self, connection: Connection) -> None:
        """Send notifications of the servers over this connection; before, they are dropped."""
        self._connection = connection

    @contextmanager
    def offering(self, server: FunctionServer) -> Generator[str]:
        """Let the agent use a server by the yielded id; leaving cancels its calls."""
        server_id = str(uuid.uuid4())
        offered = self._servers[server_id] = _OfferedServer(FunctionSession(server, frozenset((Era.MODERN,))), set())
        try:
            yield server_id
        finally:
            del self._servers[server_id]
            offered.session.close()

    async def _answer(self, params: v1.MessageMcpRequest, request: IncomingRequest) -> v1.MessageMcpResponse:
        del request
        offered = self._find(params.server_id)
        if params.request_id in offered.active:
            raise InvalidParams("params.requestId", f"the request {params.request_id!r} is not answered yet")
        if len(offered.active) >= MAX_ACTIVE:
            problem = f"{MAX_ACTIVE} requests to this server are under way; wait for answers before sending more"
            raise RpcError(ErrorCode.MCP_LIMIT_EXCEEDED, {"serverId": params.server_id, "problem": problem})
        offered.active.add(params.request_id)
        try:
            return await self._ask(offered.session, params)
        finally:
            offered.active.discard(params.request_id)

    async def _ask(self, session: FunctionSession, params: v1.MessageMcpRequest) -> v1.MessageMcpResponse:
        async def tell(method: str, told: dict[str, Any]) -> None:
            if self._connection is not None:
                notice = v1.MessageMcpNotification(
                    server_id=params.server_id, request_id=params.request_id, method=method, params=told
                )
                await self._connection.notify(MCP_NOTIFICATION, notice)

        request_id = msgspec.json.encode(params.request_id)
        try:
            result = await session.answer(params.method, params.params or {}, request_id, tell)
        except RpcError as error:
            if error.code == ErrorCode.REQUEST_CANCELLED:  # the offer has ended, which is no answer of a server
                raise
            shown = error_object(error)
            data = None if shown.data is msgspec.UNSET else shown.data
            return v1.MessageMcpError(error=v1.McpError(code=shown.code, message=shown.message, data=data))
        return v1.MessageMcpResult(result=result)

    def _find(self, server_id: str) -> _OfferedServer:
        offered = self._servers.get(server_id)
        if offered is None:
            problem = f"there is no MCP server {server_id!r} in this client, or no longer"
            raise RpcError(ErrorCode.MCP_SERVER_UNAVAILABLE, {"serverId": server_id, "problem": problem})
        return offered
