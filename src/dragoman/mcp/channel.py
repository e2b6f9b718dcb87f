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
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol, cast

import msgspec
from msgspec import Raw

from dragoman.errors import ConnectionClosed, DragomanError, ErrorCode, InvalidResult, RpcError, ServerFailure
from dragoman.loading import load_in_background
from dragoman.mcp.definition import AcpServer, Definition, HttpServer, SseServer, StdioServer
from dragoman.mcp.era import BOTH_ERAS, Era
from dragoman.protocol.connection import Connection, Routes
from dragoman.protocol.mcp_connections import (
    MCP_CONNECT,
    MCP_CONNECTION_NOTIFICATION,
    MCP_CONNECTION_REQUEST,
    MCP_DISCONNECT,
    ConnectMcpRequest,
    DisconnectMcpRequest,
    McpConnectionNotification,
    McpConnectionRequest,
)
from dragoman.wire import IncomingRequest, Peer, Transport

if TYPE_CHECKING:
    from dragoman.mcp.authorisation import Authoriser

CANCELLED = "notifications/cancelled"

DISCONNECT_TIMEOUT_S = 1.0
"""A client that does not answer `mcp/disconnect` this soon is gone, or never will."""

_log = logging.getLogger("dragoman.mcp")


class HttpRefusal(ServerFailure):
    """The server refused a post by its status alone."""

    def __init__(self, status: int, words: str) -> None:
        self.status = status
        super().__init__(words)


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
    """Routes each `mcp/message` of the client to the MCP connection that it names."""

    def __init__(self) -> None:
        self._inbounds: dict[str, InboundHandler] = {}

    def register(self, routes: Routes) -> None:
        """Handle the methods for messages of MCP."""
        routes.on_request(MCP_CONNECTION_REQUEST, self._answer)
        routes.on_notification(MCP_CONNECTION_NOTIFICATION, self._take)

    def connect(self, connection_id: str, inbound: InboundHandler) -> None:
        """Route the messages of a connection to this handler from now on."""
        self._inbounds[connection_id] = inbound

    def disconnect(self, connection_id: str) -> None:
        """Route no more messages of a connection."""
        self._inbounds.pop(connection_id, None)

    async def _answer(self, params: McpConnectionRequest, request: IncomingRequest) -> Any:
        del request
        inbound = self._inbounds.get(params.connection_id)
        if inbound is None:
            problem = f"there is no MCP connection {params.connection_id!r}; mcp/connect makes one"
            raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, {"connectionId": params.connection_id, "problem": problem})
        return await inbound.answer(params.method, params.params or {})

    async def _take(self, params: McpConnectionNotification) -> None:
        inbound = self._inbounds.get(params.connection_id)
        if inbound is not None:
            await inbound.take(params.method, params.params or {})


class AcpChannel:
    """A channel over the ACP connection: MCP inside `mcp/message`, until it is closed or the client is gone."""

    eras = frozenset((Era.LEGACY,))
    sends_headers = False
    can_ping = False
    version: str | None = None

    def __init__(self, connection: Connection, connection_id: str) -> None:
        self.closed = asyncio.Event()
        self._connection = connection
        self._connection_id = connection_id

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
        request = McpConnectionRequest(connection_id=self._connection_id, method=method, params=params)
        result = await self._connection.call(MCP_CONNECTION_REQUEST, request)
        if not isinstance(result, dict):
            raise InvalidResult(method, "expected an object")
        return cast("dict[str, Any]", result)

    async def tell(self, method: str, params: dict[str, Any]) -> None:
        notice = McpConnectionNotification(connection_id=self._connection_id, method=method, params=params)
        await self._connection.notify(MCP_CONNECTION_NOTIFICATION, notice)


@asynccontextmanager
async def open_acp(
    connection: Connection, router: McpMessageRouter, server_id: str, inbound: InboundHandler
) -> AsyncGenerator[AcpChannel]:
    """Connect to a server inside the client; raises RemoteError, InvalidResult and ConnectionClosed."""
    opened = await connection.call(MCP_CONNECT, ConnectMcpRequest(server_id=server_id))
    channel = AcpChannel(connection, opened.connection_id)
    router.connect(opened.connection_id, inbound)
    try:
        yield channel
    finally:
        channel.closed.set()
        router.disconnect(opened.connection_id)
        # A task of its own: a cancellation of the caller does not reach it, and it has a timeout.
        await asyncio.wait([asyncio.create_task(_disconnect(connection, opened.connection_id))])


async def _disconnect(connection: Connection, connection_id: str) -> None:
    with suppress(DragomanError, TimeoutError):
        async with asyncio.timeout(DISCONNECT_TIMEOUT_S):
            await connection.call(MCP_DISCONNECT, DisconnectMcpRequest(connection_id=connection_id))


class TransportResources(msgspec.Struct, frozen=True):
    """The transport of a server's process, or the connection to the client that has the server."""

    stdio: Transport | None = None
    connection: Connection | None = None
    router: McpMessageRouter | None = None
    authoriser: "Authoriser | None" = None


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
            return (await _load("dragoman.mcp.streamable_http")).open_http(definition, inbound, resources.authoriser)


async def _load(module: str) -> Any:
    return await asyncio.wrap_future(load_in_background(lambda: importlib.import_module(module)))


def decode_object(method: str, raw: Raw) -> dict[str, Any]:
    """Return a JSON object; raises InvalidResult for anything else."""
    try:
        return msgspec.json.decode(raw, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise InvalidResult(method, str(error)) from None
