"""A server as its users see it: connecting, ready or failed, and brought back when it breaks."""

import asyncio
import logging
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, TypeVar, cast

import msgspec

from dragoman.errors import ConnectionClosed, DragomanError, ServerFailure
from dragoman.mcp.channel import McpMessageRouter, TransportResources, open_channel
from dragoman.mcp.client import ClientCallbacks, Host, McpClient
from dragoman.mcp.definition import Definition, Redactor, StdioServer
from dragoman.mcp.info import CallResult, ProgressListener, PromptInfo, PromptText, ServerState, ServerStatus, ToolInfo
from dragoman.proc import Child, Supervisor
from dragoman.protocol.connection import Connection
from dragoman.text import clean_text
from dragoman.wire import StdioTransport

CONNECT_TIMEOUT_S = 60.0
"""How long a server may take to get ready: package runners may have to fetch it first."""

STEADY_S = 60.0
"""A server that ran this long, or answered a call, has earned another restart."""

LIST_PAUSE_S = 0.5
"""Between two lists: a server that says with each of them that it has changed would keep us at it for ever."""

REASON_TIMEOUT_S = 2.0
"""Longer than it takes to learn how a process ended."""

MAX_REASON = 600
"""Letters of a reason, of which the end matters: it is where programs say why they died."""

R = TypeVar("R")

_log = logging.getLogger("dragoman.mcp")


class ServerEnvironment(msgspec.Struct, frozen=True):
    """Where servers are started, and over what those inside the client are reached."""

    cwd: str
    supervise: Callable[[], Awaitable[Supervisor]]
    connection: Connection | None = None
    router: McpMessageRouter | None = None


class ServerConnection:
    """One server. `on_change` is called whenever its state or what it offers has changed."""

    def __init__(
        self,
        definition: Definition,
        environment: ServerEnvironment,
        host: Host,
        on_change: "Callable[[ServerConnection], None]",
    ) -> None:
        self.definition = definition
        self.state: ServerState = "stopped"
        self.reason: str | None = None
        self.tools: Sequence[ToolInfo] = ()
        self.prompts: Sequence[PromptInfo] = ()
        self._environment = environment
        self._host = host
        self._callers: list[Host] = []
        self._on_change = on_change
        self._redactor = Redactor([definition])
        self._task: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._stops = 0
        self._child: Child | None = None
        self._client: McpClient | None = None
        self._settled = asyncio.Event()
        self._outdated = asyncio.Event()
        self._may_restart = True
        self.attempts = 0
        """How often it has begun to connect."""
        self._broken = asyncio.Event()
        self._last_reason = "the server closed the connection"

    @property
    def name(self) -> str:
        return self.definition.name

    def __repr__(self) -> str:
        return f"Server({self.name!r}, {self.state})"

    def status(self) -> ServerStatus:
        """Say how it is."""
        return ServerStatus(self.name, self.definition.transport, self.state, len(self.tools), self.reason)

    # ── coming and going ────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """Begin to connect."""
        self._may_restart = True
        self._set("connecting")
        self._task = asyncio.create_task(self._run(), name=f"mcp {self.name}")

    async def settled(self) -> None:
        """Wait until it is no longer connecting."""
        await self._settled.wait()

    async def restart(self) -> None:
        """End it, and begin anew, unless somebody stops or starts it meanwhile."""
        stops = self._stops
        await self._end()
        if self._stops == stops and self._task is None:
            self.start()

    async def stop(self) -> None:
        """End it and all that it started, in bounded time."""
        self._stops += 1
        await self._end()

    async def _end(self) -> None:
        task, self._task = self._task, None
        # First, because whoever waits here may be cancelled, and it ends all the same.
        self._set("stopped")
        if task is not None:
            task.cancel()
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
        if self._ending:
            await asyncio.wait(self._ending)

    async def _run(self) -> None:
        await asyncio.sleep(0)  # the answer to whoever asked for the server goes out before any work for it
        while True:
            began = asyncio.get_running_loop().time()
            reason = await self._connect()
            if self._task is not asyncio.current_task():
                return  # stopped in the very moment in which it failed
            was_ready, self._client = self._client is not None, None
            self._may_restart = self._may_restart or asyncio.get_running_loop().time() - began > STEADY_S
            if not (was_ready and self._may_restart):
                _log.warning("MCP server %s failed: %s", self.name, reason)
                self._set("failed", reason)
                return
            _log.warning("MCP server %s is restarted: %s", self.name, reason)
            self._may_restart = False
            self._set("connecting", reason)

    async def _connect(self) -> str:
        """Connect, and stay so; return why that is over."""
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S) as patience, self._open() as client:
                await self._list(client)
                self._client = client
                patience.reschedule(None)
                self._set("ready")
                await self._keep(client)
                end = ConnectionClosed(client.end)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 -- a task top, and the edge to a foreign library
            return await self._explain(_first_cause(error))
        return await self._explain(end)

    async def _keep(self, client: McpClient) -> None:
        """List anew whenever the server says so, until it is gone."""
        while True:
            await _either(client.closed, self._outdated)
            if client.closed.is_set():
                return
            self._outdated.clear()
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT_S):
                    await self._list(client)
            except (ServerFailure, TimeoutError) as failure:
                _log.warning("MCP server %s did not list its tools anew: %s", self.name, self._show(str(failure)))
            else:
                self._on_change(self)
            with suppress(TimeoutError):
                async with asyncio.timeout(LIST_PAUSE_S):
                    await client.closed.wait()

    async def _list(self, client: McpClient) -> None:
        self.tools, self.prompts = await client.tools(), await client.prompts()

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[McpClient]:
        client = McpClient(ClientCallbacks(self.name, self._asked, self._outdated.set, self._redactor.clean))
        child = await self._start(self.definition) if isinstance(self.definition, StdioServer) else None
        self._child = child
        try:
            resources = TransportResources(_stdio(child), self._environment.connection, self._environment.router)
            async with open_channel(self.definition, resources, client) as channel:
                await client.greet(channel)
                yield client
        finally:
            if child is not None:
                await child.stop()

    async def _start(self, definition: StdioServer) -> Child:
        supervisor = await self._environment.supervise()
        command = [definition.command, *definition.args]
        return await supervisor.start(command, cwd=definition.cwd or self._environment.cwd, env=dict(definition.env))

    async def _explain(self, error: BaseException) -> str:
        if isinstance(error, TimeoutError):
            said = self._child.stderr_tail.strip() if self._child else ""
            tail = f"; its stderr ends:\n{said}" if said else ""
            return self._show(f"it did not get ready within {CONNECT_TIMEOUT_S:.0f} s{tail}")
        if isinstance(error, ConnectionClosed) and self._child is not None:
            return self._show(str(await self._child.death()))
        if isinstance(error, DragomanError):
            return self._show(str(error))
        return self._show(_explain_foreign(error, self._redactor.clean))

    def _show(self, text: str) -> str:
        """Make a text of unknown origin fit to be shown."""
        # Before as well: a secret may hold what is taken out.
        text = self._redactor.clean(clean_text(self._redactor.clean(text))).strip()
        if len(text) <= MAX_REASON:
            return text
        head, _, tail = text.partition("\n")
        return f"{head[: MAX_REASON // 3]}\n… {tail[-MAX_REASON * 2 // 3 :]}" if tail else f"{head[:MAX_REASON]}…"

    def _set(self, state: ServerState, reason: str | None = None) -> None:
        self.state, self.reason = state, reason
        if state == "ready":
            self._broken.clear()
        else:
            self._client = None
            self.tools, self.prompts = (), ()
            self._last_reason = reason or self._last_reason
            self._broken.set()
        if state == "connecting":
            self.attempts += 1
            self._settled.clear()
        else:
            self._settled.set()
        self._on_change(self)

    # ── using it ────────────────────────────────────────────────────────────────────────────────

    async def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        *,
        progress: ProgressListener | None = None,
        timeout_s: float | None = None,
        host: Host | None = None,
    ) -> CallResult:
        """Call a tool; what the server asks meanwhile, `host` answers. Cancelling the wait cancels the call.

        Raises ServerFailure.
        """
        with self._asked_by(host):
            result = await self._ask(lambda client: client.call(tool, arguments, progress), timeout_s)
        self._may_restart = True
        return result

    async def prompt(self, name: str, arguments: dict[str, str], *, timeout_s: float | None = None) -> list[PromptText]:
        """Have a prompt filled in; raises ServerFailure."""
        return await self._ask(lambda client: client.prompt(name, arguments), timeout_s)

    async def tell_roots(self) -> None:
        """Tell it that its roots are other ones now."""
        if self._client is not None:
            await self._client.tell_roots()

    async def _ask(self, ask: Callable[[McpClient], Awaitable[R]], timeout_s: float | None) -> R:
        try:
            async with asyncio.timeout(timeout_s):
                await self.settled()
                if self._client is None:
                    raise ServerFailure(f"the MCP server {self.name} is not there: {self.reason or self.state}")
                return await ask(self._client)
        except TimeoutError:
            raise ServerFailure(f"{self.name} did not answer within {timeout_s:g} s; the call was cancelled") from None
        except ConnectionClosed:
            raise ServerFailure(f"{self.name} broke down: {await self._why_broken()}") from None
        except DragomanError as failure:
            raise ServerFailure(self._show(str(failure))) from None

    async def _why_broken(self) -> str:
        """Wait for the reason, which is known once the end of the process is."""
        with suppress(TimeoutError):
            async with asyncio.timeout(REASON_TIMEOUT_S):
                await self._broken.wait()
        return self._last_reason

    @contextmanager
    def _asked_by(self, host: Host | None) -> Generator[None]:
        if host is None:
            yield
            return
        self._callers.append(host)
        try:
            yield
        finally:
            self._callers.remove(host)

    def _asked(self) -> Host:
        """Return who answers the server: its one caller, for of several nobody knows whom it means."""
        return self._callers[0] if len(self._callers) == 1 else self._host


def _stdio(child: Child | None) -> StdioTransport | None:
    if child is None:
        return None
    read_fd, write_fd = child.take_stdio()
    return StdioTransport(read_fd, write_fd, explain_end=child.death)


async def _either(*events: asyncio.Event) -> None:
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()


def _explain_foreign(error: BaseException, clean: Callable[[str], str]) -> str:
    """Say what kept a server from being reached, in words without its address; what is not known here is logged."""
    from dragoman.mcp.http_errors import explain_http

    known = explain_http(error)
    if known is not None:
        return known
    _log.error("an MCP server failed in an unknown way: %s", clean("".join(traceback.format_exception(error))))
    return f"it failed in a way that is not known here ({type(error).__name__}); the log on stderr has the details"


def _first_cause(error: BaseException) -> BaseException:
    """Look into the groups that the SDK's tasks wrap their errors in."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseException", error.exceptions[0])
    return error
