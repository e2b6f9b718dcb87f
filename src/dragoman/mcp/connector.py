"""Opens one connection to a server at a time: its process or transport, the handshake, and the reason for its end."""

import fcntl
import logging
import termios
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, cast

import msgspec

from dragoman.errors import ConnectionClosedError, DragomanError
from dragoman.mcp.channel import HttpStatusError, McpMessageRouter, TransportResources, open_channel
from dragoman.mcp.client import ClientCallbacks, McpClient
from dragoman.mcp.definition import Definition, HttpServer, SseServer, StdioServer, identity, redactor_of
from dragoman.mcp.era import Era, EraMemory
from dragoman.proc import Child, Supervisor
from dragoman.protocol.connection import Connection
from dragoman.text import clean_text
from dragoman.wire import StdioTransport

if TYPE_CHECKING:
    from dragoman.mcp.authorisation import Authoriser

MAX_REASON = 600
"""Maximum length of a reason in characters. Its end matters, because programs print the cause of an exit there."""

_NO_STREAMABLE_HTTP = frozenset((400, 404, 405))
"""Statuses with which a server of the older transport answers a POST to its stream."""

ERAS = EraMemory()
"""The eras of the servers that this process has connected to."""

_log = logging.getLogger("dragoman.mcp")


class _ProbeExitError(ConnectionClosedError):
    """The server exited when it received a method of an era that it does not know."""


class ServerEnvironment(msgspec.Struct, frozen=True):
    """The directory and supervisor for server processes, and the connection to a client that has servers.

    A server inside the client needs both `connection` and `router`.
    """

    cwd: str
    supervise: Callable[[], Awaitable[Supervisor]]
    connection: Connection | None = None
    router: McpMessageRouter | None = None
    authoriser: "Authoriser | None" = None
    """Asks the user to log in at a server. Without it, servers that require a login fail."""


class ServerConnector:
    """Opens connections to one server, one after another."""

    def __init__(self, definition: Definition, environment: ServerEnvironment, eras: EraMemory = ERAS) -> None:
        self._definition = definition
        self._identity = identity(definition)
        self._eras = eras
        self._environment = environment
        self._redactor = redactor_of(definition)
        self._child: Child | None = None

    @asynccontextmanager
    async def open(self, callbacks: ClientCallbacks) -> AsyncGenerator[McpClient]:
        """Start the server's process if it has one, and agree on a version. Leaving the context ends both.

        A server may fail on the modern request. If its process exited, start it again in the legacy era. If it refused
        the HTTP POST and serves the older SSE transport, use that. Errors are raised unchanged.
        """
        known = self._eras.recall(self._identity)
        async with AsyncExitStack() as stack:
            try:
                client = await self._enter(stack, callbacks, self._definition, known)
            except _ProbeExitError:
                client = await self._enter(stack, callbacks, self._definition, Era.LEGACY)
            except HttpStatusError as refusal:
                older = await _older_transport(self._definition, refusal)
                if older is None:
                    raise
                client = await self._enter(stack, callbacks, older, Era.LEGACY)
            yield client

    async def _enter(
        self, stack: AsyncExitStack, callbacks: ClientCallbacks, definition: Definition, known: Era | None
    ) -> McpClient:
        client = McpClient(callbacks)
        async with AsyncExitStack() as own:
            process = None
            if isinstance(definition, StdioServer):
                process = await own.enter_async_context(self._running(definition))
            stdio = process.transport if process else None
            environment = self._environment
            resources = TransportResources(
                stdio, environment.connection, environment.router, environment.authoriser, self._add_secret
            )
            channel = await own.enter_async_context(open_channel(definition, resources, client))
            try:
                agreement = await client.negotiate(channel, known, process.has_read_all if process else None)
            except ConnectionClosedError:
                if known is None and process is not None and process.has_read_all():
                    raise _ProbeExitError from None
                raise
            self._eras.remember(self._identity, agreement.era)
            stack.push_async_exit(own.pop_all())
        return client

    @asynccontextmanager
    async def _running(self, definition: StdioServer) -> "AsyncGenerator[_Process]":
        child = self._child = await self._start(definition)
        try:
            yield _Process(child)
        finally:
            await child.stop()

    async def explain(self, error: BaseException, *, timeout_s: float) -> str:
        """Return why a connection failed, was not ready in time, or ended. The text is safe to show."""
        error = first_cause(error)
        if isinstance(error, TimeoutError):
            stderr = self._child.stderr_tail.strip() if self._child else ""
            tail = f"; its stderr ends:\n{stderr}" if stderr else ""
            return self.show(f"it was not ready within {timeout_s:.0f} s{tail}")
        if isinstance(error, ConnectionClosedError) and self._child is not None:
            return self.show(str(await self._child.death()))
        if isinstance(error, DragomanError):
            return self.show(str(error))
        return self.show(_explain_foreign(error, self.redact))

    def redact(self, text: str) -> str:
        """Redact the server's secrets in a text."""
        return self._redactor.clean(text)

    def _add_secret(self, token: str) -> None:
        """Redact an access token from now on."""
        self._redactor.add(token)

    def show(self, text: str) -> str:
        """Make text of unknown origin safe to show."""
        # Redacted twice, because a secret may contain characters that `clean_text` removes, and the rest may still be a
        # secret.
        text = self.redact(clean_text(self.redact(text))).strip()
        if len(text) <= MAX_REASON:
            return text
        head, _, tail = text.partition("\n")
        return f"{head[: MAX_REASON // 3]}\n… {tail[-MAX_REASON * 2 // 3 :]}" if tail else f"{head[:MAX_REASON]}…"

    async def _start(self, definition: StdioServer) -> Child:
        supervisor = await self._environment.supervise()
        command = [definition.command, *definition.args]
        return await supervisor.start(command, cwd=definition.cwd or self._environment.cwd, env=dict(definition.env))


class _Process:
    """The pipes of a server's process."""

    def __init__(self, child: Child) -> None:
        self._write_fd = child.stdin
        self.transport = StdioTransport.for_child(child)

    def has_read_all(self) -> bool:
        """Return whether the process has read everything that it was sent.

        If it has and then exited, the last request caused the exit.
        """
        if not self.transport.can_write or self.transport.unsent_bytes:
            return False
        try:
            unread = fcntl.ioctl(self._write_fd, termios.FIONREAD, bytes(4))
        except OSError:
            return False
        return not any(unread)


async def _older_transport(definition: Definition, refusal: HttpStatusError) -> SseServer | None:
    """Return a definition for the older transport if the server refused streamable HTTP and supports SSE."""
    if not isinstance(definition, HttpServer) or refusal.status not in _NO_STREAMABLE_HTTP:
        return None
    from dragoman.mcp.sse import serves_sse

    if not await serves_sse(definition.url, definition.headers):
        return None
    _log.warning("MCP server %s speaks the older transport, which is used; set its type to sse", definition.name)
    return SseServer(definition.name, definition.url, definition.headers, definition.secrets, definition.roots)


def _explain_foreign(error: BaseException, redact: Callable[[str], str]) -> str:
    """Return why a server could not be reached, without its address. Log an unknown error."""
    from dragoman.mcp.http_errors import explain_http

    known = explain_http(error)
    if known is not None:
        return known
    _log.error("an MCP server failed unexpectedly: %s", redact("".join(traceback.format_exception(error))))
    return f"it failed unexpectedly ({type(error).__name__}); see the log on stderr"


def first_cause(error: BaseException) -> BaseException:
    """Return the first error inside nested exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseException", error.exceptions[0])
    return error
