"""The client's end of MCP over ACP: servers inside a client, used by the agent over the ACP connection.

Each `mcp/message` from the agent is one request of MCP 2026-07-28. An error from the server is inside the answer. An
ACP error means that the request did not reach the server. Notifications from the server carry the id of their request,
and end with it.
"""

import uuid
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import msgspec

from dragoman.errors import ErrorCode, InvalidParamsError, RpcError
from dragoman.mcp.era import Era
from dragoman.mcp.serving.function_server import FunctionServer, FunctionSession
from dragoman.protocol import v1
from dragoman.protocol.connection import Connection, Routes
from dragoman.protocol.methods import MCP_MESSAGE, MCP_NOTIFICATION
from dragoman.wire import error_object

MAX_ACTIVE = 64
"""Maximum number of concurrent requests to one server, including requests that wait for changes."""


class _OfferedServer(msgspec.Struct, frozen=True):
    session: FunctionSession
    active: set[str]
    """The ids of the unanswered requests."""


class AcpFunctionServers:
    """Routes the agent's requests to the servers inside this client."""

    def __init__(self) -> None:
        self._connection: Connection | None = None
        self._servers: dict[str, _OfferedServer] = {}

    def register(self, routes: Routes) -> None:
        """Register the handler for MCP over ACP."""
        routes.on_request(MCP_MESSAGE, self._answer)

    def attach(self, connection: Connection) -> None:
        """Send notifications from the servers over this connection. Before this call, they are dropped."""
        self._connection = connection

    @contextmanager
    def offering(self, server: FunctionServer) -> Generator[str]:
        """Offer a server to the agent under the yielded id. Leaving the context cancels its calls."""
        server_id = str(uuid.uuid4())
        offered = self._servers[server_id] = _OfferedServer(FunctionSession(server, frozenset((Era.MODERN,))), set())
        try:
            yield server_id
        finally:
            del self._servers[server_id]
            offered.session.close()

    async def _answer(self, params: v1.MessageMcpRequest) -> v1.MessageMcpResponse:
        offered = self._find(params.server_id)
        if params.request_id in offered.active:
            raise InvalidParamsError("params.requestId", f"the request {params.request_id!r} is not answered yet")
        if len(offered.active) >= MAX_ACTIVE:
            problem = (
                f"{MAX_ACTIVE} requests to this server are running, the limit; wait for responses before sending more"
            )
            raise RpcError(ErrorCode.MCP_LIMIT_EXCEEDED, {"serverId": params.server_id, "problem": problem})
        offered.active.add(params.request_id)
        try:
            return await self._ask(offered.session, params)
        finally:
            offered.active.discard(params.request_id)

    async def _ask(self, session: FunctionSession, params: v1.MessageMcpRequest) -> v1.MessageMcpResponse:
        async def notify(method: str, notification_params: dict[str, Any]) -> None:
            if self._connection is not None:
                notice = v1.MessageMcpNotification(
                    server_id=params.server_id, request_id=params.request_id, method=method, params=notification_params
                )
                await self._connection.notify(MCP_NOTIFICATION, notice)

        request_id = msgspec.json.encode(params.request_id)
        try:
            result = await session.answer(params.method, params.params or {}, request_id, notify)
        except RpcError as error:
            if error.code == ErrorCode.REQUEST_CANCELLED:
                raise  # leaving `offering` cancelled the call, so this is not an answer from the server
            shown = error_object(error)
            data = None if shown.data is msgspec.UNSET else shown.data
            return v1.MessageMcpError(error=v1.McpError(code=shown.code, message=shown.message, data=data))
        return v1.MessageMcpResult(result=result)

    def _find(self, server_id: str) -> _OfferedServer:
        offered = self._servers.get(server_id)
        if offered is None:
            problem = f"there is no MCP server {server_id!r} in this client"
            raise RpcError(ErrorCode.MCP_SERVER_UNAVAILABLE, {"serverId": server_id, "problem": problem})
        return offered
