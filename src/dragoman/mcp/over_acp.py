"""The SDK's session over the ACP connection itself, to a server that lives inside the client."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import anyio

from dragoman.errors import DragomanError, InvalidResult
from dragoman.mcp.dispatcher import OwnDispatcher
from dragoman.mcp.switchboard import Switchboard
from dragoman.protocol import methods, v1
from dragoman.protocol.connection import Connection

DISCONNECT_TIMEOUT_S = 1.0
"""A client that does not answer `mcp/disconnect` has gone or does not care."""


class AcpDispatcher(OwnDispatcher):
    """Speaks MCP in `mcp/message`; the connection is there until it is cancelled or the client is gone."""

    def __init__(self, connection: Connection, switchboard: Switchboard, server_id: str) -> None:
        super().__init__("acp")
        self._connection = connection
        self._switchboard = switchboard
        self._server_id = server_id
        self._connection_id = ""

    async def _converse(self, started: Callable[[], None]) -> None:
        opened = await self._connection.call(methods.MCP_CONNECT, v1.ConnectMcpRequest(server_id=self._server_id))
        self._connection_id = opened.connection_id
        self._switchboard.connect(self._connection_id, self._inbound)
        started()
        try:
            await anyio.sleep_forever()
        finally:
            self._switchboard.disconnect(self._connection_id)
            with anyio.move_on_after(DISCONNECT_TIMEOUT_S, shield=True), suppress(DragomanError):
                bye = v1.DisconnectMcpRequest(connection_id=self._connection_id)
                await self._connection.call(methods.MCP_DISCONNECT, bye)

    async def _ask(self, method: str, params: dict[str, Any], *, cancellable: bool) -> dict[str, Any]:
        del cancellable  # the outer request is what is cancelled, and the client's own affair
        request = v1.MessageMcpRequest(connection_id=self._connection_id, method=method, params=params)
        result = await self._connection.call(methods.MCP_MESSAGE, request)
        if not isinstance(result, dict):
            raise InvalidResult(method, "expected an object")
        return cast("dict[str, Any]", result)

    async def _tell(self, method: str, params: dict[str, Any]) -> None:
        notice = v1.MessageMcpNotification(connection_id=self._connection_id, method=method, params=params)
        await self._connection.notify(methods.MCP_NOTIFICATION, notice)
