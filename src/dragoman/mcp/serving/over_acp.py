"""The client's end of MCP over ACP: servers inside a client, which its agent reaches over the ACP connection."""

import uuid
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import msgspec

from dragoman.errors import ErrorCode, RpcError
from dragoman.mcp.serving.function_server import FunctionServer, FunctionSession
from dragoman.protocol.connection import Connection, Routes
from dragoman.protocol.mcp_connections import (
    MCP_CONNECT,
    MCP_CONNECTION_NOTIFICATION,
    MCP_CONNECTION_REQUEST,
    MCP_DISCONNECT,
    ConnectMcpRequest,
    ConnectMcpResponse,
    DisconnectMcpRequest,
    DisconnectMcpResponse,
    McpConnectionNotification,
    McpConnectionRequest,
)
from dragoman.wire import IncomingRequest


class _Open(msgspec.Struct, frozen=True):
    server_id: str
    session: FunctionSession


class AcpFunctionServers:
    """Routes the agent's messages to the servers inside this client; a server may have several connections."""

    def __init__(self) -> None:
        self._connection: Connection | None = None
        self._servers: dict[str, FunctionServer] = {}
        self._open: dict[str, _Open] = {}

    def register(self, routes: Routes) -> None:
        """Handle the methods of MCP over ACP."""
        routes.on_request(MCP_CONNECT, self._connect)
        routes.on_request(MCP_CONNECTION_REQUEST, self._answer)
        routes.on_notification(MCP_CONNECTION_NOTIFICATION, self._take)
        routes.on_request(MCP_DISCONNECT, self._disconnect)

    def attach(self, connection: Connection) -> None:
        """Send notifications of the servers over this connection; before, they are dropped."""
        self._connection = connection

    @contextmanager
    def offering(self, server: FunctionServer) -> Generator[str]:
        """Let the agent connect to a server by the yielded id; leaving ends its sessions."""
        server_id = str(uuid.uuid4())
        self._servers[server_id] = server
        try:
            yield server_id
        finally:
            del self._servers[server_id]
            for connection_id in [key for key, opened in self._open.items() if opened.server_id == server_id]:
                self._open.pop(connection_id).session.close()

    async def _connect(self, params: ConnectMcpRequest, request: IncomingRequest) -> ConnectMcpResponse:
        del request
        server = self._servers.get(params.server_id)
        if server is None:
            problem = f"there is no MCP server {params.server_id!r} in this client, or no longer"
            raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, {"serverId": params.server_id, "problem": problem})
        connection_id = str(uuid.uuid4())
        self._open[connection_id] = _Open(params.server_id, FunctionSession(server))
        return ConnectMcpResponse(connection_id=connection_id)

    async def _answer(self, params: McpConnectionRequest, request: IncomingRequest) -> Any:
        connection_id = params.connection_id

        async def tell(method: str, told: dict[str, Any]) -> None:
            if self._connection is not None:
                notice = McpConnectionNotification(connection_id=connection_id, method=method, params=told)
                await self._connection.notify(MCP_CONNECTION_NOTIFICATION, notice)

        session = self._find(connection_id).session
        return await session.answer(params.method, params.params or {}, request.id, tell)

    def _take(self, params: McpConnectionNotification) -> None:
        opened = self._open.get(params.connection_id)
        if opened is not None:
            opened.session.take(params.method, params.params or {})

    async def _disconnect(self, params: DisconnectMcpRequest, request: IncomingRequest) -> DisconnectMcpResponse:
        del request
        self._find(params.connection_id).session.close()
        del self._open[params.connection_id]
        return DisconnectMcpResponse()

    def _find(self, connection_id: str) -> _Open:
        opened = self._open.get(connection_id)
        if opened is None:
            problem = f"there is no MCP connection {connection_id!r}; mcp/connect makes one"
            raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, {"connectionId": connection_id, "problem": problem})
        return opened
