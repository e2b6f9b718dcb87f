"""One connection to a server at a time: its process or transport, the handshake, and why it ended."""

import fcntl
import logging
import termios
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, cast

import msgspec

from dragoman.errors import ConnectionClosed, DragomanError
from dragoman.mcp.channel import HttpRefusal, McpMessageRouter, TransportResources, open_channel
from dragoman.mcp.client import ClientCallbacks, McpClient
from dragoman.mcp.definition import Definition, HttpServer, SseServer, StdioServer, hider_of, identity, result_hider_of
from dragoman.mcp.era import Era, EraMemory
from dragoman.proc import Child, Supervisor
from dragoman.protocol.connection import Connection
from dragoman.text import clean_text
from dragoman.wire import StdioTransport

if TYPE_CHECKING:
    from dragoman.mcp.authorisation import Authoriser

MAX_REASON = 600
"""Characters of a reason. Its end matters, because programs say there why they died."""

_NO_STREAMABLE_HTTP = frozenset((400, 404, 405))
"""Refusals with which a server of the older transport answers a post to its stream."""

ERAS = EraMemory()
"""The eras of the servers that this process has met."""

_log = logging.getLogger("dragoman.mcp")


class _DiedOfProbe(ConnectionClosed):
    """The server ended on a question of an era that it does not know."""


class ServerEnvironment(msgspec.Struct, frozen=True):
    """The directory and the supervisor for servers that are started, and the connection to the client that has others.

    Without a connection and a router a server inside the client cannot be reached.
    """

    cwd: str
    supervise: Callable[[], Awaitable[Supervisor]]
    connection: Connection | None = None
    router: McpMessageRouter | None = None
    authoriser: "Authoriser | None" = None
    """Asks the person where a server at an address wants them to agree; without one such a server fails."""


class ServerConnector:
    """Opens connections to one server, one after the other."""

    def __init__(self, definition: Definition, environment: ServerEnvironment, eras: EraMemory = ERAS) -> None:
        self._definition = definition
        self._identity = identity(definition)
        self._eras = eras
        self._environment = environment
        self._redactor = hider_of(definition)
        self._result_hider = result_hider_of(definition)
        self._child: Child | None = None

    @asynccontextmanager
    async def open(self, callbacks: ClientCallbacks) -> AsyncGenerator[McpClient]:
        """Start the server's process if it has one, and agree on a version; leaving ends both. Raises all errors.

        A server that does not take the first question is asked in another way: one that died of a question that it
        did not know is started again for the older one, and one that turns out to speak the older transport gets it.
        """
        known = self._eras.recall(self._identity)
        async with AsyncExitStack() as stack:
            try:
                client = await self._enter(stack, callbacks, self._definition, known)
            except _DiedOfProbe:
                client = await self._enter(stack, callbacks, self._definition, Era.LEGACY)
            except HttpRefusal as refusal:
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
                stdio, environment.connection, environment.router, environment.authoriser, self._note_token
            )
            channel = await own.enter_async_context(open_channel(definition, resources, client))
            try:
                agreement = await client.greet(channel, known, process.has_read_all if process else None)
            except ConnectionClosed:
                if known is None and process is not None and process.has_read_all():
                    raise _DiedOfProbe from None
                raise
            self._eras.remember(self._identity, agreement.era)
            stack.push_async_exit(own.pop_all())
        return client

    @asynccontextmanager
    async def _running(self, definition: StdioServer) -> "AsyncGenerator[_Process]":
        child = self._child = await self._start(definition)
        try:
            yield _Process(*child.take_stdio(), child)
        finally:
            await child.stop()

    async def explain(self, error: BaseException, *, timeout_s: float) -> str:
        """Return the reason why a connection failed, did not get ready in time, or ended; it is fit to be shown."""
        error = first_cause(error)
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

    def hide_in_result(self, text: str) -> str:
        """Hide the server's secrets in a text of a result."""
        return self._result_hider.clean(text)

    def _note_token(self, token: str) -> None:
        """Hide a token that was got for the server wherever the server repeats it."""
        self._redactor.add(token)
        self._result_hider.add(token)

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


class _Process:
    """The pipes of a server's process."""

    def __init__(self, read_fd: int, write_fd: int, child: Child) -> None:
        self._write_fd = write_fd
        self.transport = StdioTransport(read_fd, write_fd, explain_end=child.death)

    def has_read_all(self) -> bool:
        """Tell whether the process has read all that it was sent; one that is gone can only have died of that."""
        if not self.transport.can_write or self.transport.unsent_bytes:
            return False
        try:
            unread = fcntl.ioctl(self._write_fd, termios.FIONREAD, bytes(4))
        except OSError:
            return False
        return not any(unread)


async def _older_transport(definition: Definition, refusal: HttpRefusal) -> SseServer | None:
    """Return the definition for the older transport, where a server refused streamable HTTP and speaks that."""
    if not isinstance(definition, HttpServer) or refusal.status not in _NO_STREAMABLE_HTTP:
        return None
    from dragoman.mcp.sse import serves_sse

    if not await serves_sse(definition.url, definition.headers):
        return None
    _log.warning("MCP server %s speaks the older transport, which is used; give it as sse", definition.name)
    return SseServer(definition.name, definition.url, definition.headers, definition.secret_path, definition.roots)


def _explain_foreign(error: BaseException, redact: Callable[[str], str]) -> str:
    """Say why a server could not be reached, without its address; an unknown error is logged."""
    from dragoman.mcp.http_errors import explain_http

    known = explain_http(error)
    if known is not None:
        return known
    _log.error("an MCP server failed in an unknown way: %s", redact("".join(traceback.format_exception(error))))
    return f"it failed in a way that is not known here ({type(error).__name__}); the log on stderr has the details"


def first_cause(error: BaseException) -> BaseException:
    """Return the error inside the groups that the SDK's tasks wrap their errors in."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseException", error.exceptions[0])
    return error
