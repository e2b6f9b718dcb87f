"""A server as its users see it: connecting, ready or failed, and brought back when it breaks.

Nothing here imports the SDK: `link`, which does, is loaded in a thread when the first server connects, while the
server's own process is starting already.
"""

import asyncio
import importlib
import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec

from dragoman.errors import ConnectionClosed, DragomanError, ServerFailure
from dragoman.loading import load_in_background
from dragoman.mcp.definition import Definition, Redactor, StdioServer
from dragoman.mcp.host import Host
from dragoman.mcp.info import CallResult, Progress, PromptInfo, PromptText, State, Status, ToolInfo
from dragoman.mcp.switchboard import Switchboard
from dragoman.proc import Child, Supervisor
from dragoman.protocol.connection import Connection
from dragoman.wire import StdioTransport

if TYPE_CHECKING:
    from dragoman.mcp.link import Link

CONNECT_TIMEOUT_S = 60.0
"""How long a server may take to get ready: package runners may have to fetch it first."""

STEADY_S = 60.0
"""A server that ran this long, or answered a call, has earned another restart."""

REASON_TIMEOUT_S = 2.0
"""Longer than it takes to learn how a process ended."""

MAX_REASON = 600
"""Letters of a reason, of which the end matters: it is where programs say why they died."""

R = TypeVar("R")

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")

_log = logging.getLogger("dragoman.mcp")


class Place(msgspec.Struct, frozen=True):
    """Where servers are started, and over what those inside the client are reached."""

    cwd: str
    supervise: Callable[[], Awaitable[Supervisor]]
    connection: Connection | None = None
    switchboard: Switchboard = Switchboard()


class Server:
    """One server. `on_change` is called whenever its state or what it offers has changed."""

    def __init__(self, definition: Definition, place: Place, host: Host, on_change: "Callable[[Server], None]") -> None:
        self.definition = definition
        self.state: State = "stopped"
        self.reason: str | None = None
        self.tools: Sequence[ToolInfo] = ()
        self.prompts: Sequence[PromptInfo] = ()
        self._place = place
        self._host = host
        self._callers: list[Host] = []
        self._on_change = on_change
        self._redactor = Redactor([definition])
        self._task: asyncio.Task[None] | None = None
        self._child: Child | None = None
        self._link: Link | None = None
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

    def status(self) -> Status:
        """Say how it is."""
        return Status(self.name, self.definition.transport, self.state, len(self.tools), self.reason)

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
        """Stop it, and begin anew."""
        await self.stop()
        self.start()

    async def stop(self) -> None:
        """End it and all that it started, in bounded time."""
        task, self._task = self._task, None
        # First, because whoever waits here may be cancelled, and it ends all the same.
        self._set("stopped")
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _run(self) -> None:
        while True:
            began = asyncio.get_running_loop().time()
            reason = await self._connect()
            if self._task is not asyncio.current_task():
                return  # stopped in the very moment in which it failed
            was_ready, self._link = self._link is not None, None
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
            async with asyncio.timeout(CONNECT_TIMEOUT_S) as patience, self._open() as link:
                await self._list(link)
                self._link = link
                patience.reschedule(None)
                self._set("ready")
                await self._keep(link)
                end = ConnectionClosed(link.end)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 -- a task top, and the edge to a foreign library
            return await self._explain(_first_cause(error))
        return await self._explain(end)

    async def _keep(self, link: "Link") -> None:
        """List anew whenever the server says so, until it is gone."""
        while True:
            await _either(link.closed, self._outdated)
            if link.closed.is_set():
                return
            self._outdated.clear()
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT_S):
                    await self._list(link)
            except (ServerFailure, TimeoutError) as failure:
                _log.warning("MCP server %s did not list its tools anew: %s", self.name, self._show(str(failure)))
            else:
                self._on_change(self)

    async def _list(self, link: "Link") -> None:
        self.tools, self.prompts = await link.tools(), await link.prompts()

    @asynccontextmanager
    async def _open(self) -> "AsyncGenerator[Link]":
        loading, child = _load_link(), None
        if isinstance(self.definition, StdioServer):
            child = await self._start(self.definition)
        self._child = child
        try:
            module = await asyncio.wrap_future(loading)
            way = module.Way(_stdio(child), self._place.connection, self._place.switchboard)
            listener = module.Listener(self.name, self._asked, self._outdated.set, self._redactor.clean)
            async with module.open_link(self.definition, way, listener) as link:
                yield link
        finally:
            if child is not None:
                await child.stop()

    async def _start(self, definition: StdioServer) -> Child:
        supervisor = await self._place.supervise()
        command = [definition.command, *definition.args]
        return await supervisor.start(command, cwd=definition.cwd or self._place.cwd, env=dict(definition.env))

    async def _explain(self, error: BaseException) -> str:
        if isinstance(error, TimeoutError):
            said = self._child.stderr_tail.strip() if self._child else ""
            tail = f"; its stderr ends:\n{said}" if said else ""
            return self._show(f"it did not get ready within {CONNECT_TIMEOUT_S:.0f} s{tail}")
        if isinstance(error, ConnectionClosed) and self._child is not None:
            return self._show(str(await self._child.death()))
        if isinstance(error, DragomanError):
            return self._show(str(error))
        module = await asyncio.wrap_future(_load_link())
        return self._show(module.explain(error, self._redactor.clean))

    def _show(self, text: str) -> str:
        """Make a text of unknown origin fit to be shown."""
        text = self._redactor.clean(_CONTROL.sub("", text)).strip()
        if len(text) <= MAX_REASON:
            return text
        head, _, tail = text.partition("\n")
        return f"{head[: MAX_REASON // 3]}\n… {tail[-MAX_REASON * 2 // 3 :]}" if tail else f"{head[:MAX_REASON]}…"

    def _set(self, state: State, reason: str | None = None) -> None:
        self.state, self.reason = state, reason
        if state == "ready":
            self._broken.clear()
        else:
            self._link = None
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
        progress: Progress | None = None,
        timeout_s: float | None = None,
        host: Host | None = None,
    ) -> CallResult:
        """Call a tool; what the server asks meanwhile, `host` answers. Cancelling the wait cancels the call.

        Raises ServerFailure.
        """
        with self._asked_by(host):
            result = await self._ask(lambda link: link.call(tool, arguments, progress), timeout_s)
        self._may_restart = True
        return result

    async def prompt(self, name: str, arguments: dict[str, str], *, timeout_s: float | None = None) -> list[PromptText]:
        """Have a prompt filled in; raises ServerFailure."""
        return await self._ask(lambda link: link.prompt(name, arguments), timeout_s)

    async def tell_roots(self) -> None:
        """Tell it that its roots are other ones now."""
        if self._link is not None:
            await self._link.tell_roots()

    async def _ask(self, ask: "Callable[[Link], Awaitable[R]]", timeout_s: float | None) -> R:
        try:
            async with asyncio.timeout(timeout_s):
                await self.settled()
                if self._link is None:
                    raise ServerFailure(f"the MCP server {self.name} is not there: {self.reason or self.state}")
                return await ask(self._link)
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


_loading: "Future[Any] | None" = None


def _load_link() -> "Future[Any]":
    """Import what speaks MCP, once."""
    global _loading  # noqa: PLW0603 -- an import is global too
    if _loading is None:
        _loading = load_in_background(lambda: importlib.import_module("dragoman.mcp.link"))
    return _loading


def _first_cause(error: BaseException) -> BaseException:
    """Look into the groups that the SDK's tasks wrap their errors in."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseException", error.exceptions[0])
    return error
