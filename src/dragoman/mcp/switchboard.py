"""Which connection an `mcp/message` of the client belongs to, when servers live inside the client."""

from typing import Any

from dragoman.errors import ErrorCode, RpcError
from dragoman.mcp.channel import InboundHandler
from dragoman.protocol import methods, v1
from dragoman.protocol.routes import Routes
from dragoman.wire import IncomingRequest


class McpMessageRouter:
    """Routes the messages of all servers inside one client."""

    def __init__(self) -> None:
        self._inbounds: dict[str, InboundHandler] = {}

    def register(self, routes: Routes) -> None:
        """Take over the methods."""
        routes.on_request(methods.MCP_MESSAGE, self._answer)
        routes.on_notification(methods.MCP_NOTIFICATION, self._take)

    def connect(self, connection_id: str, inbound: InboundHandler) -> None:
        """Hand over what comes for a connection from now on."""
        self._inbounds[connection_id] = inbound

    def disconnect(self, connection_id: str) -> None:
        """Hand over nothing more."""
        self._inbounds.pop(connection_id, None)

    async def _answer(self, params: v1.MessageMcpRequest, request: IncomingRequest) -> Any:
        del request
        inbound = self._inbounds.get(params.connection_id)
        if inbound is None:
            problem = f"there is no MCP connection {params.connection_id!r}; mcp/connect makes one"
            raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, {"connectionId": params.connection_id, "problem": problem})
        return await inbound.answer(params.method, params.params or {})

    async def _take(self, params: v1.MessageMcpNotification) -> None:
        inbound = self._inbounds.get(params.connection_id)
        if inbound is not None:
            await inbound.take(params.method, params.params or {})
