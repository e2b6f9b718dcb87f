"""A way to a server that lives inside the client: over the ACP connection itself."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

from dragoman.errors import DragomanError, InvalidResult
from dragoman.mcp.channel import InboundHandler
from dragoman.mcp.switchboard import McpMessageRouter
from dragoman.protocol import methods, v1
from dragoman.protocol.connection import Connection

DISCONNECT_TIMEOUT_S = 1.0
"""A client that does not answer `mcp/disconnect` has gone or does not care."""


class AcpChannel:
    """Speaks MCP in `mcp/message`; it is there until it is left, or the client is gone."""

    has_forgotten_us = False
    version: str | None = None

    def __init__(self, connection: Connection, connection_id: str) -> None:
        self.closed = asyncio.Event()
        self._connection = connection
        self._connection_id = connection_id

    async def ask(self, method: str, params: dict[str, Any], *, cancellable: bool = True) -> dict[str, Any]:
        del cancellable  # what is cancelled is the outer request, and that is the client's own affair
        request = v1.MessageMcpRequest(connection_id=self._connection_id, method=method, params=params)
        result = await self._connection.call(methods.MCP_MESSAGE, request)
        if not isinstance(result, dict):
            raise InvalidResult(method, "expected an object")
        return cast("dict[str, Any]", result)

    async def tell(self, method: str, params: dict[str, Any]) -> None:
        notice = v1.MessageMcpNotification(connection_id=self._connection_id, method=method, params=params)
        await self._connection.notify(methods.MCP_NOTIFICATION, notice)

    def explain(self, message: str) -> str:
        return message


@asynccontextmanager
async def open_acp(
    connection: Connection, router: McpMessageRouter, server_id: str, inbound: InboundHandler
) -> AsyncGenerator[AcpChannel]:
    """Connect to a server inside the client; raises RemoteError, InvalidResult and ConnectionClosed."""
    opened = await connection.call(methods.MCP_CONNECT, v1.ConnectMcpRequest(server_id=server_id))
    channel = AcpChannel(connection, opened.connection_id)
    router.connect(opened.connection_id, inbound)
    try:
        yield channel
    finally:
        channel.closed.set()
        router.disconnect(opened.connection_id)
        bye = connection.call(methods.MCP_DISCONNECT, v1.DisconnectMcpRequest(connection_id=opened.connection_id))
        goodbye = asyncio.create_task(_say(bye))
        await asyncio.wait([goodbye])


async def _say(bye: Any) -> None:
    with suppress(DragomanError, TimeoutError):
        async with asyncio.timeout(DISCONNECT_TIMEOUT_S):
            await bye
