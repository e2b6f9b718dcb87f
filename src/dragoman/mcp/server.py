"""A server as its users see it: connecting, ready or failed, and restarted when it breaks.

stopped ──start──▶ connecting ──version and lists──▶ ready
   ▲                   │  ▲                            │ ▲
   │                 fails └─────── ends, if it has ───┤ │
   │                   ▼            earned a restart   │ │
   └───── stop ───── failed ◀─────── ends, else ───────┘ │
                       └── at an address: it is there ───┘
                           again, tried with back-off
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from dragoman.errors import ConnectionClosed, DragomanError, ServerFailure
from dragoman.mcp.channel import SessionForgotten
from dragoman.mcp.client import ClientCallbacks, Host, McpClient
from dragoman.mcp.connector import ServerConnector, ServerEnvironment
from dragoman.mcp.definition import Definition, HttpServer, SseServer
from dragoman.mcp.info import (
    CallResult,
    ProgressListener,
    PromptInfo,
    PromptText,
    ResourceInfo,
    ServerState,
    ServerStatus,
    ToolInfo,
)
from dragoman.protocol import v1

CONNECT_TIMEOUT_S = 60.0
"""How long a server may take to get ready: package runners may have to fetch it first."""

STEADY_S = 60.0
"""A server that ran this long, or answered a call, has earned another restart."""

LIST_PAUSE_S = 0.5
"""Pause between two lists, because a server may say with each list that it has changed."""

RETRY_S, MAX_RETRY_S = 1.0, 60.0
"""The pause before a server at an address is tried again; it doubles up to the second."""

MIN_TTL_S = 10.0
"""Lists are read anew at most this often, whatever a server says of how long they stay true."""

REASON_TIMEOUT_S = 2.0
"""Longer than it takes to learn how a process ended."""

R = TypeVar("R")

_log = logging.getLogger("dragoman.mcp")


class _State:
    """The state of a server, with the events that others wait for."""

    def __init__(self) -> None:
        self.name: ServerState = "stopped"
        self.reason: str | None = None
        self.last_reason = "the server closed the connection"
        self.settled = asyncio.Event()
        """Set when it is not connecting."""
        self.broken = asyncio.Event()
        """Set when it is not ready."""
        self.attempts = 0
        self.may_restart = True

    def change(self, name: ServerState, reason: str | None) -> None:
        self.name, self.reason = name, reason
        if name == "ready":
            self.broken.clear()
        else:
            self.last_reason = reason or self.last_reason
            self.broken.set()
        if name == "connecting":
            self.attempts += 1
            self.settled.clear()
        else:
            self.settled.set()


class _Hosts:
    """Chooses the host that answers a server."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._callers: list[Host] = []

    @contextmanager
    def calling(self, host: Host | None) -> Generator[None]:
        """Let the host of a call answer while the call runs."""
        if host is None:
            yield
            return
        self._callers.append(host)
        try:
            yield
        finally:
            self._callers.remove(host)

    def current(self) -> Host:
        """Return the host of the one caller; with several, nobody knows which of them the server means."""
        return self._callers[0] if len(self._callers) == 1 else self._host


class ServerConnection:
    """One server. `on_change` is called whenever its state, tools or prompts have changed."""

    def __init__(
        self,
        definition: Definition,
        environment: ServerEnvironment,
        host: Host,
        on_change: "Callable[[ServerConnection], None]",
    ) -> None:
        self.definition = definition
        self.tools: Sequence[ToolInfo] = ()
        self.prompts: Sequence[PromptInfo] = ()
        self._connector = ServerConnector(definition, environment)
        self._hosts = _Hosts(host)
        self._on_change = on_change
        self._state = _State()
        self._client: McpClient | None = None
        self._outdated = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._stops = 0

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def state(self) -> ServerState:
        return self._state.name

    @property
    def reason(self) -> str | None:
        """Why it failed, or is connecting anew."""
        return self._state.reason

    @property
    def attempts(self) -> int:
        """How often it has begun to connect."""
        return self._state.attempts

    def __repr__(self) -> str:
        return f"ServerConnection({self.name!r}, {self.state})"

    def status(self) -> ServerStatus:
        """Return its state, for people and clients."""
        return ServerStatus(self.name, self.definition.transport, self.state, len(self.tools), self.reason)

    # ── starting and stopping ───────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """Begin to connect."""
        self._state.may_restart = True
        self._set("connecting")
        self._task = asyncio.create_task(self._run(), name=f"mcp {self.name}")

    async def settled(self) -> None:
        """Wait until it is no longer connecting."""
        await self._state.settled.wait()

    async def restart(self) -> None:
        """Stop and start it, unless another caller stops or starts it meanwhile."""
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
        # The state changes first: the caller may be cancelled in the wait below, and the server ends all the same.
        self._set("stopped")
        if task is not None:
            task.cancel()
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
        if self._ending:
            await asyncio.wait(self._ending)

    async def _run(self) -> None:
        await asyncio.sleep(0)  # the answer to the request for the server goes out before any work for it
        pause_s = RETRY_S
        while True:
            began = asyncio.get_running_loop().time()
            reason = await self._connect()
            if self._task is not asyncio.current_task():
                return  # it was stopped in the moment in which it failed
            was_ready, self._client = self._client is not None, None
            self._state.may_restart |= asyncio.get_running_loop().time() - began > STEADY_S
            if was_ready and self._state.may_restart:
                _log.warning("MCP server %s is restarted: %s", self.name, reason)
                self._state.may_restart = False
                self._set("connecting", reason)
                continue
            pause_s = RETRY_S if was_ready else pause_s
            if self.state != "failed" or self.reason != reason:
                _log.warning("MCP server %s failed: %s", self.name, reason)
                self._set("failed", reason)
            if not isinstance(self.definition, HttpServer | SseServer):
                return
            # Nobody else starts a server at an address again, and a look at it costs little.
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, MAX_RETRY_S)

    async def _connect(self) -> str:
        """Connect, and stay connected; return the reason of the end."""
        callbacks = ClientCallbacks(self.name, self._hosts.current, self._outdated.set, self._connector.hide_in_result)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S) as timeout, self._connector.open(callbacks) as client:
                await self._list(client)
                self._client = client
                timeout.reschedule(None)
                self._set("ready")
                await self._keep(client)
                end = ConnectionClosed(client.end)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 -- a task top, and the edge to a foreign library
            return await self._connector.explain(error, timeout_s=CONNECT_TIMEOUT_S)
        return await self._connector.explain(end, timeout_s=CONNECT_TIMEOUT_S)

    async def _keep(self, client: McpClient) -> None:
        """List the tools and prompts anew whenever they have changed, until the server is gone."""
        listening = asyncio.create_task(self._listen(client))
        try:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(client.ttl_s and max(client.ttl_s, MIN_TTL_S)):
                        await _either(client.closed, self._outdated)
                if client.closed.is_set():
                    return
                self._outdated.clear()
                await self._list_anew(client)
                with suppress(TimeoutError):
                    async with asyncio.timeout(LIST_PAUSE_S):
                        await client.closed.wait()
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def _listen(self, client: McpClient) -> None:
        """Have a modern server tell of changes; whatever happened while it did not is in the next list."""
        pause_s = RETRY_S
        while not client.closed.is_set():
            began = asyncio.get_running_loop().time()
            try:
                await client.listen()
            except (ServerFailure, ConnectionClosed) as end:
                _log.debug("MCP server %s tells of no more changes: %s", self.name, type(end).__name__)
            pause_s = RETRY_S if asyncio.get_running_loop().time() - began > STEADY_S else pause_s
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, MAX_RETRY_S)
            self._outdated.set()

    async def _list_anew(self, client: McpClient) -> None:
        before = self.tools, self.prompts
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await self._list(client)
        except ConnectionClosed:
            return  # the wait for changes ends on it
        except (ServerFailure, TimeoutError) as failure:
            problem = self._connector.show(str(failure))
            _log.warning("MCP server %s did not list its tools anew: %s", self.name, problem)
        else:
            if (self.tools, self.prompts) != before:
                self._on_change(self)

    async def _list(self, client: McpClient) -> None:
        self.tools, self.prompts = await client.tools(), await client.prompts()

    def _set(self, state: ServerState, reason: str | None = None) -> None:
        self._state.change(state, reason)
        if state != "ready":
            self._client = None
            self.tools, self.prompts = (), ()
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
        """Call a tool; `host` answers the server's requests meanwhile. Cancelling the wait cancels the call.

        Raises ServerFailure.
        """
        with self._hosts.calling(host):
            result = await self._ask(lambda client: client.call(tool, arguments, progress), timeout_s)
        self._state.may_restart = True
        return result

    async def prompt(self, name: str, arguments: dict[str, str], *, timeout_s: float | None = None) -> list[PromptText]:
        """Get a prompt, filled in with arguments; raises ServerFailure."""
        return await self._ask(lambda client: client.prompt(name, arguments), timeout_s)

    @property
    def instructions(self) -> str:
        """What the server says about its use, as it says it; empty while it is not ready."""
        return self._client.agreement.instructions if self._client else ""

    @property
    def version(self) -> str | None:
        """The version of MCP that is spoken with it; None while it is not ready."""
        return self._client.agreement.version if self._client else None

    async def resources(self, *, timeout_s: float | None = None) -> list[ResourceInfo]:
        """List its resources; raises ServerFailure."""
        return await self._ask(lambda client: client.resources(), timeout_s)

    async def read(self, uri: str, *, timeout_s: float | None = None) -> list[v1.EmbeddedResource]:
        """Read one of its resources; raises ServerFailure."""
        return await self._ask(lambda client: client.read(uri), timeout_s)

    async def tell_roots(self) -> None:
        """Tell it that its roots have changed."""
        if self._client is not None:
            await self._client.tell_roots()

    async def _ask(self, ask: Callable[[McpClient], Awaitable[R]], timeout_s: float | None) -> R:
        try:
            async with asyncio.timeout(timeout_s):
                try:
                    return await ask(await self._ready_client())
                except SessionForgotten:  # it has not begun, so it is safe to send it again
                    await self._state.broken.wait()
                    return await ask(await self._ready_client())
        except TimeoutError:
            raise ServerFailure(f"{self.name} did not answer within {timeout_s:g} s; the call was cancelled") from None
        except ConnectionClosed:
            raise ServerFailure(f"{self.name} broke down: {await self._why_broken()}") from None
        except DragomanError as failure:
            raise ServerFailure(self._connector.show(str(failure))) from None

    async def _ready_client(self) -> McpClient:
        await self.settled()
        if self._client is None:
            raise ServerFailure(f"the MCP server {self.name} is not there: {self.reason or self.state}")
        return self._client

    async def _why_broken(self) -> str:
        """Wait for the reason, which is known when the end of the process is."""
        with suppress(TimeoutError):
            async with asyncio.timeout(REASON_TIMEOUT_S):
                await self._state.broken.wait()
        return self._state.last_reason


async def _either(*events: asyncio.Event) -> None:
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()
