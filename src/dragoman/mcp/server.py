"""A server as its users see it: connecting, ready or failed, and restarted when it breaks.

stopped ──start──▶ connecting ──version and lists──▶ ready
   ▲                   │  ▲                            │ ▲
   │                 fails └─────── ends, if it has ───┤ │
   │                   ▼            earned a restart   │ │
   └───── stop ───── failed ◀─────── ends, else ───────┘ │
                       └── not a process: it is there ───┘
                           again, tried with back-off
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeVar

from dragoman.errors import ConnectionClosed, DragomanError, ErrorCode, RpcError, ServerFailure
from dragoman.mcp.channel import NeedsAuthorisation, SessionForgotten
from dragoman.mcp.client import ClientCallbacks, Host, McpClient
from dragoman.mcp.connector import ServerConnector, ServerEnvironment, first_cause
from dragoman.mcp.definition import AcpServer, Definition, HttpServer, SseServer
from dragoman.mcp.info import (
    CallResult,
    ProgressListener,
    PromptInfo,
    PromptText,
    ResourceInfo,
    ResourceTemplate,
    ServerState,
    ServerStatus,
    ToolInfo,
)
from dragoman.mcp.server_lists import ServerLists
from dragoman.mcp.server_resources import ServerResources
from dragoman.protocol import v1

CONNECT_TIMEOUT_S = 60.0
"""How long a server may take to get ready: package runners may have to fetch it first."""

STEADY_S = 60.0
"""A server that ran this long, or answered a call, has earned another restart."""

RETRY_S, MAX_RETRY_S = 1.0, 60.0
"""The pause before a server at an address is tried again; it doubles up to the second."""

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
        self.wants_login = False
        self.retry = asyncio.Event()
        """Set to try a server again before its pause is over."""

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


_caller: ContextVar[Host | None] = ContextVar("caller", default=None)
"""The host of the call that a task works for; questions that come as results of a call are asked in its task."""


class _Hosts:
    """Chooses the host that answers a server."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._callers: list[Host] = []
        self._is_idle = asyncio.Event()

    @contextmanager
    def calling(self, host: Host | None) -> Generator[None]:
        """Let the host of a call answer while the call runs."""
        if host is None:
            yield
            return
        self._callers.append(host)
        self._is_idle.clear()
        before = _caller.set(host)
        try:
            yield
        finally:
            _caller.reset(before)
            self._callers.remove(host)
            if not self._callers:
                self._is_idle.set()

    def current(self) -> Host:
        """Return the host of the call that the server asks for, or of the one call."""
        caller = _caller.get()
        if caller is not None and caller in self._callers:
            return caller
        match self._callers:
            case []:
                return self._host
            case [one]:
                return one
            case _:
                return _JointHost(self._host, self._is_idle)


class _JointHost:
    """Answers while several calls run: nobody knows which of them a question belongs to, so it ends with the last."""

    def __init__(self, host: Host, is_idle: asyncio.Event) -> None:
        self._host = host
        self._is_idle = is_idle

    def roots(self) -> list[str]:
        return self._host.roots()

    async def elicit(self, server: str, params: dict[str, Any]) -> dict[str, Any]:
        return await self._until_idle(self._host.elicit(server, params)) or {"action": "cancel"}

    async def sample(self, server: str, params: dict[str, Any]) -> dict[str, Any]:
        answer = await self._until_idle(self._host.sample(server, params))
        if answer is None:
            raise RpcError(ErrorCode.REQUEST_CANCELLED, "the calls in which this was asked have ended")
        return answer

    async def _until_idle(self, work: Coroutine[Any, Any, R]) -> R | None:
        """Return the result of the work, or None when the last call has ended first."""
        asking, ending = asyncio.create_task(work), asyncio.create_task(self._is_idle.wait())
        try:
            await asyncio.wait([asking, ending], return_when=asyncio.FIRST_COMPLETED)
            return asking.result() if asking.done() else None
        finally:
            for task in (asking, ending):
                task.cancel()
            await asyncio.gather(asking, ending, return_exceptions=True)


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
        self._connector = ServerConnector(definition, environment)
        self._lists = ServerLists(definition.name, lambda: on_change(self), self._connector.show)
        self._resources = ServerResources(lambda: on_change(self))
        self._hosts = _Hosts(host)
        self._on_change = on_change
        self._state = _State()
        self._client: McpClient | None = None
        self._task: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._stops = 0

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def tools(self) -> Sequence[ToolInfo]:
        """Its tools; a list is replaced and never changed."""
        return self._lists.tools

    @property
    def prompts(self) -> Sequence[PromptInfo]:
        return self._lists.prompts

    @property
    def state(self) -> ServerState:
        return self._state.name

    @property
    def reason(self) -> str | None:
        """Why it failed, or is connecting anew."""
        return self._state.reason

    @property
    def revision(self) -> tuple[int, int]:
        """How often it has begun to connect, and how often it has announced a change."""
        return self._state.attempts, self._lists.announced

    @property
    def wants_login(self) -> bool:
        """Whether it failed because a person has to log in."""
        return self.state == "failed" and self._state.wants_login

    def retry(self) -> None:
        """Try a server at an address again at once, where it would be tried again later."""
        self._state.retry.set()

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

    async def up_to_date(self) -> None:
        """Wait until it is no longer connecting, and its lists have every change that it has announced."""
        await self._state.settled.wait()
        await self._lists.fresh()

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
            if not isinstance(self.definition, HttpServer | SseServer | AcpServer):
                return
            # Nobody else starts a server at an address or inside a client again, and a look at it costs little.
            self._state.retry.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._state.retry.wait()
            pause_s = min(2 * pause_s, MAX_RETRY_S)

    async def _connect(self) -> str:
        """Connect, and stay connected; return the reason of the end."""
        self._state.wants_login = False
        callbacks = ClientCallbacks(
            self.name,
            self._hosts.current,
            self._lists.announce,
            self._connector.hide_in_result,
            roots=getattr(self.definition, "roots", True),
            on_resource=self._resources.note_change,
        )
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S) as timeout, self._connector.open(callbacks) as client:
                await self._lists.read(client)
                self._client = client
                timeout.reschedule(None)
                self._set("ready")
                await self._keep(client)
                end = ConnectionClosed(client.end)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 -- a task top, and the edge to a foreign library
            self._state.wants_login = isinstance(first_cause(error), NeedsAuthorisation)
            return await self._connector.explain(error, timeout_s=CONNECT_TIMEOUT_S)
        return await self._connector.explain(end, timeout_s=CONNECT_TIMEOUT_S)

    async def _keep(self, client: McpClient) -> None:
        """Hear of changes until the server is gone."""
        watching = asyncio.create_task(self._resources.keep(client))
        try:
            await self._lists.keep(client)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    def _set(self, state: ServerState, reason: str | None = None) -> None:
        self._state.change(state, reason)
        if state != "ready":
            self._client = None
            self._lists.clear()
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
        self._resources.offer(content=result.content)
        return result

    async def prompt(self, name: str, arguments: dict[str, str], *, timeout_s: float | None = None) -> list[PromptText]:
        """Get a prompt, filled in with arguments; raises ServerFailure."""
        return await self._ask(lambda client: client.prompt(name, arguments), timeout_s)

    @property
    def instructions(self) -> str:
        """What the server says about its use, without its secrets; empty while it is not ready."""
        return self._connector.hide_in_result(self._client.agreement.instructions) if self._client else ""

    @property
    def version(self) -> str | None:
        """The version of MCP that is spoken with it; None while it is not ready."""
        return self._client.agreement.version if self._client else None

    async def resources(self, *, timeout_s: float | None = None) -> list[ResourceInfo]:
        """List its resources; raises ServerFailure."""
        listed = await self._ask(lambda client: client.resources(), timeout_s)
        self._resources.offer(listed)
        return listed

    async def templates(self, *, timeout_s: float | None = None) -> list[ResourceTemplate]:
        """List the templates of its resources; raises ServerFailure."""
        return await self._ask(lambda client: client.templates(), timeout_s)

    async def complete(
        self,
        reference: Mapping[str, str],
        argument: str,
        value: str,
        *,
        known: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> list[str]:
        """Return completions for an argument of a prompt or a template, which `reference` names; raises ServerFailure.

        `known` are the arguments that have their values already.
        """
        return await self._ask(lambda client: client.complete(reference, argument, value, known or {}), timeout_s)

    @property
    def has_resources(self) -> bool:
        """Whether it has resources; False while it is not ready."""
        return self._client is not None and self._client.has_resources

    def is_offered(self, uri: str) -> bool:
        """Tell whether it has listed or linked to a resource of this address itself."""
        return self._resources.is_offered(uri)

    def watch(self, uri: str) -> None:
        """Count the changes of a resource from now on, as far as the server tells of them."""
        self._resources.watch(uri)

    def changes(self, uri: str) -> int:
        """Return how often a watched resource has changed, or may have."""
        return self._resources.changes(uri)

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
            words = self._connector.show(str(failure))
            raise ServerFailure(words if self.name in words else f"{self.name}: {words}") from None

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
