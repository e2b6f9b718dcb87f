"""A connection to an MCP server over its whole life: connecting, ready, failed and restarted.

stopped ──start──▶ connecting ──version and lists──▶ ready
   ▲                   │  ▲                            │ ▲
   │                 fails └── connection ends, and ───┤ │
   │                   ▼        a restart is allowed   │ │
   └───── stop ───── failed ◀── connection ends ───────┘ │
                       └── retry with back-off, unless ──┘
                           the server is a process

A restart is allowed once after each successful call, and after the server was steady for a minute. A process that fails
without that stays failed until the user starts it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeVar

from dragoman.backoff import Backoff
from dragoman.errors import ConnectionClosedError, DragomanError, ErrorCode, McpServerError, RpcError
from dragoman.mcp.channel import AuthorizationRequiredError, SessionForgottenError
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
"""How long a server may need to get ready. Package runners may have to download it first."""

STEADY_S = 60.0
"""A server that ran this long, or answered a call, may be restarted again."""

RETRY_S, MAX_RETRY_S = 1.0, 60.0
"""The pause before connecting to a server at a URL again. It doubles up to the maximum."""

REASON_TIMEOUT_S = 2.0
"""How long to wait for the reason of a process's end."""

R = TypeVar("R")

_log = logging.getLogger("dragoman.mcp")


class _State:
    """The state of a server, with the events that other tasks wait for."""

    def __init__(self) -> None:
        self.name: ServerState = "stopped"
        self.reason: str | None = None
        self.last_reason = "the server closed the connection"
        self.settled = asyncio.Event()
        """Set when the server is not connecting."""
        self.broken = asyncio.Event()
        """Set when the server is not ready."""
        self.attempts = 0
        self.may_restart = True
        self.wants_login = False
        self.calls_with_possible_changes = self.calls_waited_for = 0
        """Number of calls that may have changed the lists, and how many of these we waited for announcements after."""

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
"""The host of the call that a task works for. Input requested by a call's result is answered in the call's task."""


class _Hosts:
    """Chooses the host that answers a server."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._callers: list[Host] = []
        self._is_idle = asyncio.Event()

    @contextmanager
    def calling(self, host: Host | None) -> Generator[None]:
        """Route requests from the server to the host of a call while the call runs."""
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
        """Return the host of the current call, or of the only running call, or the session's host."""
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
    """Answers while several calls run. A request cannot be matched to one call, so it ends with the last one."""

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
            raise RpcError(ErrorCode.REQUEST_CANCELLED, "the tool calls that caused this request have ended")
        return answer

    async def _until_idle(self, work: Coroutine[Any, Any, R]) -> R | None:
        """Return the result of the work, or None if the last call ended first."""
        asking, ending = asyncio.create_task(work), asyncio.create_task(self._is_idle.wait())
        try:
            await asyncio.wait([asking, ending], return_when=asyncio.FIRST_COMPLETED)
            return asking.result() if asking.done() else None
        finally:
            for task in (asking, ending):
                task.cancel()
            await asyncio.gather(asking, ending, return_exceptions=True)


class ServerConnection:
    """One server. `on_change` is called whenever its state, tools or prompts changed."""

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
        """The server's tools. The list is replaced, never changed in place."""
        return self._lists.tools

    @property
    def prompts(self) -> Sequence[PromptInfo]:
        return self._lists.prompts

    @property
    def state(self) -> ServerState:
        return self._state.name

    @property
    def reason(self) -> str | None:
        """Why the server failed or is reconnecting."""
        return self._state.reason

    @property
    def revision(self) -> tuple[int, int, int]:
        """The number of connection attempts, of announced changes, and of calls that may have caused another change."""
        return self._state.attempts, self._lists.announced, self._state.calls_with_possible_changes

    @property
    def wants_login(self) -> bool:
        """Whether the connection failed because the user must log in."""
        return self.state == "failed" and self._state.wants_login

    def __repr__(self) -> str:
        return f"ServerConnection({self.name!r}, {self.state})"

    def status(self) -> ServerStatus:
        """Return the state, for users and clients."""
        return ServerStatus(self.name, self.definition.transport, self.state, len(self.tools), self.reason)

    # ── starting and stopping ───────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """Start connecting."""
        self._state.may_restart = True
        self._set("connecting")
        self._task = asyncio.create_task(self._run(), name=f"mcp {self.name}")

    async def settled(self) -> None:
        """Wait until the server is no longer connecting."""
        await self._state.settled.wait()

    async def up_to_date(self) -> None:
        """Wait until the server is not connecting and its lists include every announced change.

        This includes a change that a server at a URL announced during a call, which may arrive after the call's result.
        """
        await self._state.settled.wait()
        if self._state.calls_waited_for < self._state.calls_with_possible_changes and self._client is not None:
            self._state.calls_waited_for = self._state.calls_with_possible_changes
            await self._client.wait_for_late_announcements()
        await self._lists.fresh()

    async def restart(self) -> None:
        """Stop and start the server, unless another caller stops or starts it first."""
        stops = self._stops
        await self._end()
        if self._stops == stops and self._task is None:
            self.start()

    async def stop(self) -> None:
        """Stop the server and everything that it started, in bounded time."""
        self._stops += 1
        await self._end()

    async def _end(self) -> None:
        task, self._task = self._task, None
        # Change the state first. The caller may be cancelled during the wait below, and the server still ends.
        self._set("stopped")
        if task is not None:
            task.cancel()
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
        if self._ending:
            await asyncio.wait(self._ending)

    async def _run(self) -> None:
        await asyncio.sleep(0)  # first answer the request that added this server
        backoff = Backoff(RETRY_S, MAX_RETRY_S)
        while True:
            began = asyncio.get_running_loop().time()
            reason = await self._connect()
            if self._task is not asyncio.current_task():
                return  # it was stopped while it failed
            was_ready, self._client = self._client is not None, None
            self._state.may_restart |= asyncio.get_running_loop().time() - began > STEADY_S
            if was_ready and self._state.may_restart:
                _log.warning("MCP server %s is restarted: %s", self.name, reason)
                self._state.may_restart = False
                self._set("connecting", reason)
                continue
            if was_ready:
                backoff.reset()
            if self.state != "failed" or self.reason != reason:
                _log.warning("MCP server %s failed: %s", self.name, reason)
                self._set("failed", reason)
            if not isinstance(self.definition, HttpServer | SseServer | AcpServer):
                return
            # Nothing else restarts a server at a URL or inside a client, and a retry is cheap.
            await asyncio.sleep(backoff.next_s())

    async def _connect(self) -> str:
        """Connect and stay connected. Return the reason for the end."""
        self._state.wants_login = False
        callbacks = ClientCallbacks(
            self.name,
            self._hosts.current,
            self._lists.announce,
            self._connector.redact,
            roots=getattr(self.definition, "roots", True),
            on_resource=self._resources.record_change,
        )
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S) as timeout, self._connector.open(callbacks) as client:
                await self._lists.read(client)
                self._client = client
                timeout.reschedule(None)
                self._set("ready")
                await self._keep(client)
                end = ConnectionClosedError(client.end)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 -- a task top, and the edge to a foreign library
            self._state.wants_login = isinstance(first_cause(error), AuthorizationRequiredError)
            return await self._connector.explain(error, timeout_s=CONNECT_TIMEOUT_S)
        return await self._connector.explain(end, timeout_s=CONNECT_TIMEOUT_S)

    async def _keep(self, client: McpClient) -> None:
        """Process changes until the server is gone."""
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
        """Call a tool. `host` answers the server's requests during the call. Cancelling the wait cancels the call.

        Raises McpServerError.
        """
        with self._hosts.calling(host):
            result = await self._ask(lambda client: client.call(tool, arguments, progress), timeout_s)
        self._state.may_restart = True
        self._state.calls_with_possible_changes += self._client is not None and self._client.may_announce_late
        self._resources.offer(content=result.content)
        return result

    async def prompt(self, name: str, arguments: dict[str, str], *, timeout_s: float | None = None) -> list[PromptText]:
        """Return the messages of a prompt, filled in with arguments. Raises McpServerError."""
        return await self._ask(lambda client: client.prompt(name, arguments), timeout_s)

    @property
    def instructions(self) -> str:
        """The server's instructions for its use, without its secrets. Empty while it is not ready."""
        return self._connector.redact(self._client.agreement.instructions) if self._client else ""

    @property
    def version(self) -> str | None:
        """The agreed MCP version. None while the server is not ready."""
        return self._client.agreement.version if self._client else None

    async def resources(self, *, timeout_s: float | None = None) -> list[ResourceInfo]:
        """List the server's resources. Raises McpServerError."""
        listed = await self._ask(lambda client: client.resources(), timeout_s)
        self._resources.offer(listed)
        return listed

    async def templates(self, *, timeout_s: float | None = None) -> list[ResourceTemplate]:
        """List the server's resource templates. Raises McpServerError."""
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
        """Return completions for an argument of the prompt or template named by `reference`. Raises McpServerError.

        `known` contains the arguments that already have a value.
        """
        return await self._ask(lambda client: client.complete(reference, argument, value, known or {}), timeout_s)

    @property
    def has_resources(self) -> bool:
        """Whether the server has resources. False while it is not ready."""
        return self._client is not None and self._client.has_resources

    def is_offered(self, uri: str) -> bool:
        """Return whether the server has listed or linked to this URI."""
        return self._resources.is_offered(uri)

    def watch(self, uri: str) -> None:
        """Count the changes of a resource from now on, as far as the server reports them."""
        self._resources.watch(uri)

    def changes(self, uri: str) -> int:
        """Return how often a watched resource has changed, or may have changed."""
        return self._resources.changes(uri)

    async def read(self, uri: str, *, timeout_s: float | None = None) -> list[v1.EmbeddedResource]:
        """Read a resource. Raises McpServerError."""
        return await self._ask(lambda client: client.read(uri), timeout_s)

    async def notify_roots_changed(self) -> None:
        """Notify the server that its roots have changed."""
        if self._client is not None:
            await self._client.notify_roots_changed()

    async def _ask(self, ask: Callable[[McpClient], Awaitable[R]], timeout_s: float | None) -> R:
        try:
            async with asyncio.timeout(timeout_s):
                try:
                    return await ask(await self._ready_client())
                except SessionForgottenError:  # the server did not start this request, so it is safe to send it again
                    await self._state.broken.wait()
                    return await ask(await self._ready_client())
        except TimeoutError:
            raise McpServerError(f"{self.name} did not answer within {timeout_s:g} s; the call was cancelled") from None
        except ConnectionClosedError:
            raise McpServerError(f"{self.name} failed: {await self._failure_reason()}") from None
        except DragomanError as failure:
            reason = self._connector.show(str(failure))
            raise McpServerError(reason if self.name in reason else f"{self.name}: {reason}") from None

    async def _ready_client(self) -> McpClient:
        await self.settled()
        if self._client is None:
            raise McpServerError(f"the MCP server {self.name} is not available: {self.reason or self.state}")
        return self._client

    async def _failure_reason(self) -> str:
        """Wait for the reason of the end, which is known once the process has ended."""
        with suppress(TimeoutError):
            async with asyncio.timeout(REASON_TIMEOUT_S):
                await self._state.broken.wait()
        return self._state.last_reason
