"""One connection to a server at a time: its process or transport, the handshake, and why it ended."""

import logging
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import cast

import msgspec

from dragoman.errors import ConnectionClosed, DragomanError
from dragoman.mcp.channel import McpMessageRouter, TransportResources, open_channel
from dragoman.mcp.client import ClientCallbacks, McpClient
from dragoman.mcp.definition import Definition, StdioServer, hider_of
from dragoman.proc import Child, Supervisor
from dragoman.protocol.connection import Connection
from dragoman.text import clean_text
from dragoman.wire import StdioTransport

MAX_REASON = 600
"""Characters of a reason. Its end matters, because programs say there why they died."""

_log = logging.getLogger("dragoman.mcp")


class ServerEnvironment(msgspec.Struct, frozen=True):
    """The directory and the supervisor for servers that are started, and the connection to the client that has others.

    Without a connection and a router a server inside the client cannot be reached.
    """

    cwd: str
    supervise: Callable[[], Awaitable[Supervisor]]
    connection: Connection | None = None
    router: McpMessageRouter | None = None


class ServerConnector:
    """Opens connections to one server, one after the other."""

    def __init__(self, definition: Definition, environment: ServerEnvironment) -> None:
        self._definition = definition
        self._environment = environment
        self._redactor = hider_of(definition)
        self._child: Child | None = None

    @asynccontextmanager
    async def open(self, callbacks: ClientCallbacks) -> AsyncGenerator[McpClient]:
        """Start the server's process if it has one, and shake hands; leaving ends both. Raises all kinds of errors."""
        client = McpClient(callbacks)
        definition = self._definition
        child = self._child = await self._start(definition) if isinstance(definition, StdioServer) else None
        try:
            resources = TransportResources(_stdio(child), self._environment.connection, self._environment.router)
            async with open_channel(definition, resources, client) as channel:
                await client.greet(channel)
                yield client
        finally:
            if child is not None:
                await child.stop()

    async def explain(self, error: BaseException, *, timeout_s: float) -> str:
        """Return the reason why a connection failed, did not get ready in time, or ended; it is fit to be shown."""
        error = _first_cause(error)
        if isinstance(error, TimeoutError):
            said = self._child.stderr_tail.strip() if self._child else ""
            tail = f"; its stderr ends:\n{said}" if said else ""
            return self.show(f"it did not get ready within {timeout_s:.0f} s{tail}")
        if isinstance(error, ConnectionClosed) and self._child is not None:
            return self.show(str(await self._child.death()))
        if isinstance(error, DragomanError):
            return self.show(str(error))
        return self.show(_explain_foreign(error, self.redact))

    def redact(self, text: str) -> str:
        """Hide the server's secrets in a text."""
        return self._redactor.clean(text)

    def show(self, text: str) -> str:
        """Make a text of unknown origin fit to be shown."""
        # Redacted twice, because a secret may hold characters that `clean_text` removes, and its remains may be one.
        text = self.redact(clean_text(self.redact(text))).strip()
        if len(text) <= MAX_REASON:
            return text
        head, _, tail = text.partition("\n")
        return f"{head[: MAX_REASON // 3]}\n… {tail[-MAX_REASON * 2 // 3 :]}" if tail else f"{head[:MAX_REASON]}…"

    async def _start(self, definition: StdioServer) -> Child:
        supervisor = await self._environment.supervise()
        command = [definition.command, *definition.args]
        return await supervisor.start(command, cwd=definition.cwd or self._environment.cwd, env=dict(definition.env))


def _stdio(child: Child | None) -> StdioTransport | None:
    if child is None:
        return None
    read_fd, write_fd = child.take_stdio()
    return StdioTransport(read_fd, write_fd, explain_end=child.death)


def _explain_foreign(error: BaseException, redact: Callable[[str], str]) -> str:
    """Say why a server could not be reached, without its address; an unknown error is logged."""
    from dragoman.mcp.http_errors import explain_http

    known = explain_http(error)
    if known is not None:
        return known
    _log.error("an MCP server failed in an unknown way: %s", redact("".join(traceback.format_exception(error))))
    return f"it failed in a way that is not known here ({type(error).__name__}); the log on stderr has the details"


def _first_cause(error: BaseException) -> BaseException:
    """Return the error inside the groups that the SDK's tasks wrap their errors in."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseException", error.exceptions[0])
    return error
