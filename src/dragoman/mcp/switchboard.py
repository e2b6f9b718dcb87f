"""Which connection an `mcp/message` of the client belongs to, when servers live inside the client."""

from typing import Any, Protocol

from dragoman.errors import ErrorCode, RpcError
from dragoman.protocol import methods, v1
from dragoman.protocol.routes import Routes
from dragoman.wire import IncomingRequest


class Extension(Protocol):
    """One end of a connection to a server inside the client."""

    async def answer(self, method: str, params: dict[str, Any], request_id: str) -> dict[str, Any]:
        """Answer a request of the server; raises RpcError."""
        ...

    async def take(self, method: str, params: dict[str, Any]) -> None:
        """Take a notification of the server."""
        ...


class Switchboard:
    """Routes the messages of all servers inside one client."""

    def __init__(self) -> None:
        self._extensions: dict[str, Extension] = {}

    def register(self, routes: Routes) -> None:
        """Take over the methods."""
        routes.on_request(methods.MCP_MESSAGE, self._answer)
        routes.on_notification(methods.MCP_NOTIFICATION, self._take)

    def connect(self, connection_id: str, extension: Extension) -> None:
        """Hand over what comes for a connection from now on."""
        self._extensions[connection_id] = extension

    def disconnect(self, connection_id: str) -> None:
        """Hand over nothing more."""
        self._extensions.pop(connection_id, None)

    async def _answer(self, params: v1.MessageMcpRequest, request: IncomingRequest) -> Any:
        extension = self._extensions.get(params.connection_id)
        if extension is None:
            problem = f"there is no MCP connection {params.connection_id!r}; mcp/connect makes one"
            raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, {"connectionId": params.connection_id, "problem": problem})
        return await extension.answer(params.method, params.params or {}, request.id.decode())

    async def _take(self, params: v1.MessageMcpNotification) -> None:
        extension = self._extensions.get(params.connection_id)
        if extension is not None:
            await extension.take(params.method, params.params or {})
