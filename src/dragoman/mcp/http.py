"""A server at an address, by streamable HTTP: the SDK's own transport, with words for what goes wrong."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.abc
import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.dispatcher import OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext

from dragoman.errors import ServerFailure
from dragoman.mcp.definition import HttpServer

TIMEOUT_S = 30.0
READ_TIMEOUT_S = 3600.0
"""A tool may work for long before it says anything; calls have a timeout of their own."""

GOODBYE_TIMEOUT_S = 2.0
"""A server that does not let go of a session this soon has gone or does not care."""


class HttpDispatcher(JSONRPCDispatcher[TransportContext]):
    """The SDK's dispatcher, that says when it is done and which status was no success."""

    def __init__(self, read: Any, write: Any) -> None:
        super().__init__(read, write)
        self.closed = asyncio.Event()
        self.bad_status: int | None = None
        self._greeted = False

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        try:
            await super().run(on_request, on_notify, on_notify_intercept, task_status=task_status)
        finally:
            self.closed.set()

    @property
    def has_forgotten_us(self) -> bool:
        """Whether the server no longer knows the conversation, as after a restart of its own."""
        return self._greeted and self.bad_status == 404

    def explain(self, message: str) -> str:
        """Return a message of the SDK in better words, where the status says more."""
        return message if self.bad_status is None else explain_status(self.bad_status)

    async def look(self, response: httpx2.Response) -> None:
        """Remember how a post was answered; many servers have no stream to get."""
        if response.request.method == "POST":
            self.bad_status = response.status_code if response.status_code >= 300 else None
            self._greeted = self._greeted or self.bad_status is None


@asynccontextmanager
async def open_http(definition: HttpServer) -> AsyncGenerator[HttpDispatcher]:
    """Speak with a server at an address; raises what httpx2 raises, inside a group."""
    timeout = httpx2.Timeout(TIMEOUT_S, read=READ_TIMEOUT_S)
    async with (
        httpx2.AsyncClient(headers=check_headers(definition.headers), timeout=timeout) as client,
        streamable_http_client(definition.url, http_client=client, max_sse_event_size=None) as (read, write),
    ):
        dispatcher = HttpDispatcher(read, write)
        client.event_hooks = {"request": [_hurry], "response": [dispatcher.look]}
        yield dispatcher


async def _hurry(request: httpx2.Request) -> None:
    """Wait less for the answer to a goodbye."""
    if request.method == "DELETE":
        request.extensions["timeout"] = httpx2.Timeout(GOODBYE_TIMEOUT_S).as_dict()


def check_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return headers that can be sent; raises ServerFailure without their values, which are secret."""
    for name, value in headers:
        if not (name.isascii() and value.isascii()) or not name or any(letter in name + value for letter in "\r\n\0"):
            raise ServerFailure(f"its header {name!r} cannot be sent; expected one line of ASCII characters")
    return dict(headers)


def explain_status(status: int) -> str:
    """Say what an HTTP status means for somebody who gave the address of a server."""
    match status:
        case 401 | 403:
            return f"the server answered HTTP {status}: it wants other credentials; check the headers given for it"
        case 404 | 405:
            return f"the server answered HTTP {status}: there is no MCP server at this address; check its path"
        case _ if 300 <= status < 400:
            return f"the server answered HTTP {status}: it has moved; give the address that it redirects to"
        case _:
            return f"the server answered HTTP {status}"


def explain_http(error: Exception) -> str:
    """Say what went wrong between us and a server, without its address, which may hold secrets."""
    match error:
        case httpx2.ConnectError():
            return "nothing answers at its address; check that the server runs"
        case httpx2.TimeoutException():
            return "the server did not answer in time"
        case httpx2.InvalidURL() | httpx2.UnsupportedProtocol():
            return "its address is no http or https URL"
        case _:
            return f"the connection to the server failed ({type(error).__name__})"
