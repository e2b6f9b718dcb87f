"""Channels to an MCP server: requests and notifications, over pipes, an event stream, HTTP or the ACP connection.

`open_channel` chooses by the definition of the server:

    StdioServer   PeerChannel over the pipes of its process
    SseServer     PeerChannel over `sse.SseTransport`
    HttpServer    `streamable_http.HttpChannel`
    AcpServer     AcpChannel: `mcp/message` over the connection to the client that has the server

The two that use the network are imported on first need, in a thread, because they are large.
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
    ConnectionClosed,
    DragomanError,
    ErrorCode,
    InvalidResult,
    RemoteError,
    RpcError,
    ServerFailure,
)
from dragoman.loading import load_in_background
from dragoman.mcp.definition import AcpServer, Definition, HttpServer, SseServer, StdioServer
from dragoman.mcp.era import BOTH_ERAS, Era
from dragoman.protocol import v1
from dragoman.protocol.connection import Connection, Routes
from dragoman.protocol.methods import MCP_MESSAGE, MCP_NOTIFICATION
from dragoman.wire import IncomingRequest, Peer, Transport

if TYPE_CHECKING:
    from dragoman.mcp.authorisation import Authoriser

CANCELLED = "notifications/cancelled"

_BINDING_FAILURES: Mapping[int, str] = {
    ErrorCode.METHOD_NOT_FOUND: "the client cannot be asked for a server of its own",
    ErrorCode.REQUEST_CANCELLED: "the client cancelled the request",
    ErrorCode.MCP_LIMIT_EXCEEDED: "the client takes no more requests for this server now",
    ErrorCode.MCP_BACKEND_FAILED: "the server inside the client failed",
}

_log = logging.getLogger("dragoman.mcp")


class HttpRefusal(ServerFailure):
    """The server refused a post by its status alone."""

    def __init__(self, status: int, words: str) -> None:
        self.status = status
        super().__init__(words)


class AuthorisationFailed(ServerFailure):
    """The server was not asked at all: there is no token for it, and why."""


class NeedsAuthorisation(AuthorisationFailed):
    """The server wants a person to log in, and this is no moment to ask one."""

    ASKED = ("it wants you to log in", "it waits for you to log in")
    """Reasons of a server whose person is asked meanwhile, and needs no other word."""

    def __init__(self, server: str, words: str | None = None) -> None:
        super().__init__(words or f"it wants you to log in: run `dragoman mcp login {server}`")


class SessionForgotten(ConnectionClosed):
    """The server no longer knows the session, as after a restart of its own; it has not handled the request."""

    def __init__(self) -> None:
        super().__init__("the server has forgotten this session, as after a restart of its own")


class InboundHandler(Protocol):
    """Handles the requests and notifications that a server sends by itself."""

    async def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Answer a request; raises RpcError."""
        ...

    async def take(self, method: str, params: dict[str, Any]) -> None:
        """Take a notification."""
        ...


class Channel(Protocol):
    """An open connection to a server; `closed` is set when the server is gone."""

    closed: asyncio.Event
    version: str | None
    """The agreed version of MCP, for transports that send it with each message."""

    @property
    def eras(self) -> frozenset[Era]:
        """The eras that this transport is part of."""
        ...

    @property
    def sends_headers(self) -> bool:
        """Whether requests have headers."""
        ...

    @property
    def can_ping(self) -> bool:
        """Whether messages arrive in order, so that a ping behind a request tells that it was ignored."""
        ...

    async def ask(
        self,
        method: str,
        params: dict[str, Any],
        *,
        cancellable: bool = True,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Send a request; cancelling the wait cancels the request, if it is cancellable. Headers are for HTTP alone.

        Raises RemoteError, InvalidResult, ServerFailure and ConnectionClosed.
        """
        ...

    async def tell(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification; raises ConnectionClosed."""
        ...


class PeerChannel:
    """A channel over any of our transports."""

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

    async def tell(self, method: str, params: dict[str, Any]) -> None:
        await self.peer.notify(method, params)

    async def request(self, request: IncomingRequest) -> dict[str, Any]:
        """Answer a request of the server, for the peer."""
        try:
            params = decode_object(request.method, request.params)
        except InvalidResult:
            raise RpcError(ErrorCode.INVALID_PARAMS, "expected an object of parameters") from None
        return await self._inbound.answer(request.method, params)

    def notification(self, method: str, params: Raw) -> Awaitable[None] | None:
        """Take a notification of the server, for the peer."""
        try:
            return self._inbound.take(method, decode_object(method, params))
        except InvalidResult:
            _log.warning("a notification whose parameters are no object was ignored")
            return None

    async def watch(self) -> None:
        """Set `closed` when the server is gone."""
        await self.peer.wait_ended()
        self.closed.set()


@asynccontextmanager
async def open_peer(
    transport: Transport, inbound: InboundHandler, eras: frozenset[Era] = BOTH_ERAS
) -> AsyncGenerator[PeerChannel]:
    """Open a channel over a transport of ours."""
    channel = PeerChannel(transport, inbound, eras)
    async with channel.peer:
        watch = asyncio.create_task(channel.watch())
        try:
            yield channel
        finally:
            watch.cancel()
            channel.closed.set()


class McpMessageRouter:
    """Routes each `mcp/message` of the client to the request that it belongs to; others are dropped."""

    def __init__(self) -> None:
        self._inbounds: dict[tuple[str, str], InboundHandler] = {}

    def register(self, routes: Routes) -> None:
        """Handle the notifications of servers inside the client."""
        routes.on_notification(MCP_NOTIFICATION, self._take)

    @contextmanager
    def requesting(self, server_id: str, inbound: InboundHandler) -> Generator[str]:
        """Yield the id of a new request, and route its notifications to this handler until it is answered."""
        # No counter: a bridge may pass on requests of an earlier agent that its viewer is still busy with.
        request_id = str(uuid.uuid4())
        self._inbounds[server_id, request_id] = inbound
        try:
            yield request_id
        finally:
            del self._inbounds[server_id, request_id]

    async def _take(self, params: v1.MessageMcpNotification) -> None:
        inbound = self._inbounds.get((params.server_id, params.request_id))
        if inbound is not None:
            await inbound.take(params.method, params.params or {})


class AcpChannel:
    """A channel over the ACP connection: each request inside one `mcp/message`.

    The binding has no connection and no handshake, and its server neither asks nor takes notifications: an ACP error
    says that the binding failed, an error of the server is inside a result.
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
        del cancellable  # cancelling cancels the outer request, and the client cancels the inner one by itself
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
            raise InvalidResult(method, "expected an object")
        return cast("dict[str, Any]", outcome.result)

    async def tell(self, method: str, params: dict[str, Any]) -> None:
        """Do nothing: a server inside the client takes no notifications."""

    def _explain(self, failure: RemoteError) -> DragomanError:
        """Return the meaning of an error of the binding; a server that the client does not have is gone."""
        if failure.code == ErrorCode.MCP_SERVER_UNAVAILABLE:
            self.closed.set()
            return ConnectionClosed(f"the client does not have this server, or no longer ({failure.message})")
        meaning = _BINDING_FAILURES.get(failure.code, "the client refused the request for this server")
        return ServerFailure(f"{meaning}: {_detail(failure)}")


def _detail(failure: RemoteError) -> str:
    """Return the words of an error, with the details that the TypeScript SDK has in its data."""
    details: Any = cast("dict[str, Any]", failure.data).get("details") if isinstance(failure.data, dict) else None
    return f"{failure.message}: {details}" if isinstance(details, str) else failure.message


@asynccontextmanager
async def open_acp(
    connection: Connection, router: McpMessageRouter, server_id: str, inbound: InboundHandler
) -> AsyncGenerator[AcpChannel]:
    """Open a channel to a server inside the client; nothing is sent for it."""
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
    note_token: Callable[[str], None] | None = None
    """Is told each token that requests are sent with."""


@asynccontextmanager
async def open_channel(
    definition: Definition, resources: TransportResources, inbound: InboundHandler
) -> AsyncGenerator[Channel]:
    """Open a channel to a server. Raises ServerFailure, ConnectionClosed, RemoteError, or an httpx2 error in groups."""
    async with await _choose_channel(definition, resources, inbound) as channel:
        yield channel


async def _choose_channel(
    definition: Definition, resources: TransportResources, inbound: InboundHandler
) -> AbstractAsyncContextManager[Channel]:
    match definition:
        case StdioServer():
            assert resources.stdio is not None  # noqa: S101 -- the caller has started the program
            return open_peer(resources.stdio, inbound)
        case AcpServer():
            if resources.connection is None or resources.router is None:
                raise ServerFailure("it lives inside an ACP client, and there is none here")
            return open_acp(resources.connection, resources.router, definition.server_id, inbound)
        case SseServer():
            sse = await _load("dragoman.mcp.sse")
            return open_peer(sse.SseTransport(definition.url, definition.headers), inbound, frozenset((Era.LEGACY,)))
        case HttpServer():
            return (await _load("dragoman.mcp.streamable_http")).open_http(
                definition, inbound, resources.authoriser, resources.note_token
            )


async def _load(module: str) -> Any:
    return await asyncio.wrap_future(load_in_background(lambda: importlib.import_module(module)))


def decode_object(method: str, raw: Raw) -> dict[str, Any]:
    """Return a JSON object; raises InvalidResult for anything else."""
    try:
        return msgspec.json.decode(raw, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise InvalidResult(method, str(error)) from None
