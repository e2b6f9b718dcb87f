"""A channel to a server at an address over streamable HTTP: the SDK's own transport, imported for nothing else."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.dispatcher import CallOptions, DispatchContext
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types import CONNECTION_CLOSED

from dragoman.errors import ConnectionClosed, RemoteError, RpcError
from dragoman.library_logs import unlogged
from dragoman.mcp.channel import InboundHandler
from dragoman.mcp.definition import HttpServer
from dragoman.mcp.http_errors import check_headers, explain_status
from dragoman.wire import MAX_LINE_BYTES, error_object

TIMEOUT = httpx2.Timeout(30.0, read=3600.0)
"""A tool may work for long before it sends anything; calls have a timeout of their own."""

GOODBYE_TIMEOUT_S = 2.0
"""A server that does not answer the DELETE of a session this soon is gone, or never will."""


class HttpChannel:
    """A channel over the SDK's transport and dispatcher; it knows the status of the last post, which the SDK hides."""

    version: str | None = None

    def __init__(self, dispatcher: JSONRPCDispatcher[TransportContext], inbound: InboundHandler) -> None:
        self.closed = asyncio.Event()
        self._dispatcher = dispatcher
        self._inbound = inbound
        self._bad_status: int | None = None
        self._greeted = False

    async def ask(self, method: str, params: dict[str, Any], *, cancellable: bool = True) -> dict[str, Any]:
        options: CallOptions = {"headers": self._headers(), "cancel_on_abandon": cancellable}
        try:
            with unlogged():  # the SDK's tasks run in the context of the sender
                return await self._dispatcher.send_raw_request(method, params, options)
        except MCPError as error:
            if error.code == CONNECTION_CLOSED:
                raise ConnectionClosed("the server closed the connection") from None
            raise RemoteError(method, error.code, error.message, error.data) from None

    async def tell(self, method: str, params: dict[str, Any]) -> None:
        with unlogged():
            await self._dispatcher.notify(method, params, {"headers": self._headers()})

    def explain(self, message: str) -> str:
        return message if self._bad_status is None else explain_status(self._bad_status)

    @property
    def has_forgotten_us(self) -> bool:
        return self._greeted and self._bad_status == 404

    async def look(self, response: httpx2.Response) -> None:
        """Remember the status of a post; a GET may fail, because many servers have no stream to get."""
        if response.request.method == "POST":
            self._bad_status = response.status_code if response.status_code >= 300 else None
            self._greeted = self._greeted or self._bad_status is None

    async def run(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Handle the server's messages until it is gone."""
        try:
            await self._dispatcher.run(self._answer, self._take, task_status=task_status)
        finally:
            self.closed.set()

    def _headers(self) -> dict[str, str]:
        return {} if self.version is None else {MCP_PROTOCOL_VERSION_HEADER: self.version}

    async def _answer(
        self, context: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        del context
        try:
            return await self._inbound.answer(method, dict(params or {}))
        except RpcError as error:
            raise MCPError(code=error.code, message=error_object(error).message, data=error.data) from None

    async def _take(
        self, context: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None
    ) -> None:
        del context
        await self._inbound.take(method, dict(params or {}))


@asynccontextmanager
async def open_http(definition: HttpServer, inbound: InboundHandler) -> AsyncGenerator[HttpChannel]:
    """Open a channel to a server at an address; raises errors of httpx2, inside groups."""
    with unlogged():
        async with (
            _HttpClient(headers=check_headers(definition.headers), timeout=TIMEOUT) as client,
            streamable_http_client(definition.url, http_client=client, max_sse_event_size=MAX_LINE_BYTES) as streams,
            anyio.create_task_group() as tasks,
        ):
            channel = HttpChannel(JSONRPCDispatcher(*streams), inbound)
            client.event_hooks = {"response": [channel.look]}
            await tasks.start(channel.run)
            try:
                yield channel
            finally:
                tasks.cancel_scope.cancel()


class _HttpClient(httpx2.AsyncClient):
    """Bounds the wait for the whole answer to a DELETE, also when it comes byte by byte."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        if request.method != "DELETE":
            return await super().send(request, **options)
        async with asyncio.timeout(GOODBYE_TIMEOUT_S):
            response = await super().send(request, **options)
            await response.aclose()
        return response
