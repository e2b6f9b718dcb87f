"""Channels to an MCP server: requests and notifications over pipes, an event stream, HTTP or the ACP connection.

`open_channel` chooses by the definition of the server:

    StdioServer   PeerChannel over the pipes of its process
    SseServer     PeerChannel over `sse.SseTransport`
    HttpServer    `streamable_http.HttpChannel`
    AcpServer     AcpChannel: `mcp/message` over the connection to the client that has the server

The two that use the network are imported on first use, in a thread, because they are large.
"""

import asyncio
import importlib
import logging
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Protocol, cast

import msgspec
from msgspec import Raw

from dragoman.errors import (
    ConnectionClosedError,
    DragomanError,
    ErrorCode,
    InvalidResultError,
    McpServerError,
    RemoteError,
    RpcError,
)
from dragoman.loading import load_in_background
from dragoman.mcp.definition import AcpServer, Definition, HttpServer, SseServer, StdioServer, login_command
from dragoman.mcp.era import BOTH_ERAS, Era
from dragoman.protocol import v1
from dragoman.protocol.connection import Connection, Routes
from dragoman.protocol.methods import MCP_MESSAGE, MCP_NOTIFICATION
from dragoman.wire import IncomingRequest, Peer, Transport

if TYPE_CHECKING:
    from dragoman.mcp.authorisation import Authoriser

CANCELLED = "notifications/cancelled"

_BINDING_FAILURES: Mapping[int, str] = {
    ErrorCode.METHOD_NOT_FOUND: "the client cannot provide servers",
    ErrorCode.REQUEST_CANCELLED: "the client cancelled the request",
    ErrorCode.MCP_LIMIT_EXCEEDED: "the client currently accepts no more requests for this server",
    ErrorCode.MCP_BACKEND_FAILED: "the server inside the client failed",
}

_log = logging.getLogger("dragoman.mcp")


class HttpStatusError(McpServerError):
    """The server refused a POST with an HTTP status and no JSON-RPC error."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


class AuthorizationError(McpServerError):
    """No token is available, so the server was not asked. The message says why."""


class AuthorizationRequiredError(AuthorizationError):
    """The server requires a login, and the user cannot be asked now."""

    ASKED = ("it requires a login", "it is waiting for you to log in")
    """Messages that need no further hint, because the user is being asked to log in."""

    def __init__(self, server: HttpServer, message: str | None = None) -> None:
        super().__init__(message or f"it requires a login: run `{login_command(server)}`")


class SessionForgottenError(ConnectionClosedError):
    """The server no longer knows the session, for example after a restart. It did not handle the request."""

    def __init__(self) -> None:
        super().__init__("the server no longer knows this session; it may have restarted")


class InboundHandler(Protocol):
    """Handles the requests and notifications that a server sends."""

    async def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Answer a request. Raises RpcError."""
        ...

    async def receive(self, method: str, params: dict[str, Any]) -> None:
        """Handle a notification."""
        ...


class Channel(Protocol):
    """An open connection to a server. `closed` is set when the server is gone."""

    closed: asyncio.Event
    version: str | None
    """The agreed MCP version, for transports that send it with each message."""

    @property
    def eras(self) -> frozenset[Era]:
        """The MCP eras that this transport supports."""
        ...

    @property
    def sends_headers(self) -> bool:
        """Whether requests have HTTP headers."""
        ...

    @property
    def can_ping(self) -> bool:
        """Whether messages arrive in order, so a `ping` sent after a request shows whether that request was ignored."""
        ...

    async def ask(
        self,
        method: str,
        params: dict[str, Any],
        *,
        cancellable: bool = True,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Send a request and return its result. Cancelling the wait cancels a cancellable request.

        `headers` only apply to HTTP. Raises RemoteError, InvalidResultError, McpServerError and ConnectionClosedError.
        """
        ...

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification. Raises ConnectionClosedError."""
        ...


class PeerChannel:
    """A channel over any transport of `dragoman.wire`."""

    sends_headers = False
    can_ping = True
    version: str | None = None

    def __init__(self, transport: Transport, inbound: InboundHandler, eras: frozenset[Era]) -> None:
        self.closed = asyncio.Event()
        self.eras = eras
        self.peer = Peer(transport, self, cancel_method=CANCELLED, strict=False)
        self._inbound = inbound

    async def ask(
        self,
        method: str,
        params: dict[str, Any],
        *,
        cancellable: bool = True,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        del headers
        return decode_object(method, await self.peer.call(method, params, cancellable=cancellable))

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        await self.peer.notify(method, params)

    async def request(self, request: IncomingRequest) -> dict[str, Any]:
        """Answer a request from the server."""
        try:
            params = decode_object(request.method, request.params)
        except InvalidResultError:
            raise RpcError(ErrorCode.INVALID_PARAMS, "expected an object of parameters") from None
        return await self._inbound.answer(request.method, params)

    def notification(self, method: str, params: Raw) -> Awaitable[None] | None:
        """Handle a notification from the server."""
        try:
            return self._inbound.receive(method, decode_object(method, params))
        except InvalidResultError:
            _log.warning("a notification was ignored because its parameters are not an object")
            return None

    async def watch(self) -> None:
        """Set `closed` when the connection ends."""
        await self.peer.wait_ended()
        self.closed.set()


@asynccontextmanager
async def open_peer(
    transport: Transport, inbound: InboundHandler, eras: frozenset[Era] = BOTH_ERAS
) -> AsyncGenerator[PeerChannel]:
    """Open a channel over a transport."""
    channel = PeerChannel(transport, inbound, eras)
    async with channel.peer:
        watch = asyncio.create_task(channel.watch())
        try:
            yield channel
        finally:
            watch.cancel()
            channel.closed.set()


class McpMessageRouter:
    """Routes each `mcp/message` notification to the request that it belongs to. Others are dropped."""

    def __init__(self) -> None:
        self._inbounds: dict[tuple[str, str], InboundHandler] = {}

    def register(self, routes: Routes) -> None:
        """Register the handler for notifications of servers inside the client."""
        routes.on_notification(MCP_NOTIFICATION, self._receive)

    @contextmanager
    def requesting(self, server_id: str, inbound: InboundHandler) -> Generator[str]:
        """Yield the id of a new request and route its notifications to `inbound` until it is answered."""
        # No counter: a bridge may pass on requests of an earlier agent that its viewer is still busy with.
        request_id = str(uuid.uuid4())
        self._inbounds[server_id, request_id] = inbound
        try:
            yield request_id
        finally:
            del self._inbounds[server_id, request_id]

    async def _receive(self, params: v1.MessageMcpNotification) -> None:
        inbound = self._inbounds.get((params.server_id, params.request_id))
        if inbound is not None:
            await inbound.receive(params.method, params.params or {})


class AcpChannel:
    """A channel over the ACP connection. Each request is wrapped in one `mcp/message`.

    The binding has no connection and no handshake. The server sends no requests and receives no notifications. An ACP
    error means that the client could not pass the request on. An error from the server is inside a result.
    """

    eras = frozenset((Era.MODERN,))
    sends_headers = False
    can_ping = False
    version: str | None = None

    def __init__(
        self, connection: Connection, router: McpMessageRouter, server_id: str, inbound: InboundHandler
    ) -> None:
        self.closed = asyncio.Event()
        self._connection = connection
        self._router = router
        self._server_id = server_id
        self._inbound = inbound

    async def ask(
        self,
        method: str,
        params: dict[str, Any],
        *,
        cancellable: bool = True,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        del headers
        del cancellable  # cancelling cancels the outer request, and the client then cancels the inner one
        with self._router.requesting(self._server_id, self._inbound) as request_id:
            request = v1.MessageMcpRequest(
                server_id=self._server_id, request_id=request_id, method=method, params=params
            )
            try:
                outcome = await self._connection.call(MCP_MESSAGE, request)
            except RemoteError as failure:
                raise self._explain(failure) from None
        if isinstance(outcome, v1.MessageMcpError):
            error = outcome.error
            raise RemoteError(method, error.code, error.message, error.data)
        if not isinstance(outcome.result, dict):
            raise InvalidResultError(method, "expected an object")
        return cast("dict[str, Any]", outcome.result)

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        """Do nothing, because a server inside the client receives no notifications."""

    def _explain(self, failure: RemoteError) -> DragomanError:
        """Return the exception for an ACP error. Close the channel if the client does not have the server."""
        if failure.code == ErrorCode.MCP_SERVER_UNAVAILABLE:
            self.closed.set()
            return ConnectionClosedError(f"the client does not have this server ({failure.message})")
        meaning = _BINDING_FAILURES.get(failure.code, "the client refused the request for this server")
        return McpServerError(f"{meaning}: {_detail(failure)}")


def _detail(failure: RemoteError) -> str:
    """Return the message of an error, with the details that the TypeScript SDK puts into its data."""
    details: Any = cast("dict[str, Any]", failure.data).get("details") if isinstance(failure.data, dict) else None
    return f"{failure.message}: {details}" if isinstance(details, str) else failure.message


@asynccontextmanager
async def open_acp(
    connection: Connection, router: McpMessageRouter, server_id: str, inbound: InboundHandler
) -> AsyncGenerator[AcpChannel]:
    """Open a channel to a server inside the client. Nothing is sent."""
    channel = AcpChannel(connection, router, server_id, inbound)
    try:
        yield channel
    finally:
        channel.closed.set()


class TransportResources(msgspec.Struct, frozen=True):
    """The transport of a server's process, or the connection to the client that has the server."""

    stdio: Transport | None = None
    connection: Connection | None = None
    router: McpMessageRouter | None = None
    authoriser: "Authoriser | None" = None
    on_token: Callable[[str], None] | None = None
    """Called with each token that a request is sent with."""


@asynccontextmanager
async def open_channel(
    definition: Definition, resources: TransportResources, inbound: InboundHandler
) -> AsyncGenerator[Channel]:
    """Open a channel to a server.

    Raises McpServerError, ConnectionClosedError, RemoteError, or an exception group with an httpx2 error.
    """
    async with await _choose_channel(definition, resources, inbound) as channel:
        yield channel


async def _choose_channel(
    definition: Definition, resources: TransportResources, inbound: InboundHandler
) -> AbstractAsyncContextManager[Channel]:
    match definition:
        case StdioServer():
            assert resources.stdio is not None  # noqa: S101 -- the caller started the program
            return open_peer(resources.stdio, inbound)
        case AcpServer():
            if resources.connection is None or resources.router is None:
                raise McpServerError("it runs inside an ACP client, and no client is connected")
            return open_acp(resources.connection, resources.router, definition.server_id, inbound)
        case SseServer():
            sse = await _load("dragoman.mcp.sse")
            return open_peer(sse.SseTransport(definition.url, definition.headers), inbound, frozenset((Era.LEGACY,)))
        case HttpServer():
            return (await _load("dragoman.mcp.streamable_http")).open_http(
                definition, inbound, resources.authoriser, resources.on_token
            )


async def _load(module: str) -> Any:
    return await asyncio.wrap_future(load_in_background(lambda: importlib.import_module(module)))


def decode_object(method: str, raw: Raw) -> dict[str, Any]:
    """Return the decoded JSON object. Raises InvalidResultError for anything else."""
    try:
        return msgspec.json.decode(raw, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise InvalidResultError(method, str(error)) from None
