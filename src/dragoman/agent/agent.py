"""The agent that a program declares, and the ways to run it.

agent = Agent("notes", version="1.0.0")

@agent.on_prompt
async def answer(turn: Turn) -> None:
    await turn.say(f"You said: {turn.text}")

agent.run()
"""

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

from dragoman.agent.commands.command import COMMAND_NAME, SlashCommand
from dragoman.agent.program import CONTENT_KINDS, AgentProgram, Authenticator, PermissionDefaults, SystemPromptMode
from dragoman.protocol import v1

if TYPE_CHECKING:
    from pathlib import Path

    from dragoman.agent.connection.requests import SessionHandlers
    from dragoman.agent.servers.session_servers import OwnServer
    from dragoman.agent.sessions.settings import Mode, SessionOption
    from dragoman.client import AgentConnection
    from dragoman.mcp.definition import Definition
    from dragoman.protocol.connection import Connection
    from dragoman.store import Store
    from dragoman.wire import Transport

F = TypeVar("F", bound=Callable[..., Any])


class Agent:
    """An ACP agent made of functions. The kit handles sessions, replay, permission, MCP servers and cancellation."""

    def __init__(
        self,
        name: str,
        *,
        version: str = "0.0.0",
        title: str | None = None,
        modes: "Sequence[Mode]" = (),
        options: "Sequence[SessionOption]" = (),
        auth: Authenticator | Callable[[], Authenticator | None] | None = None,
        content_types: Collection[str] | Callable[[], Collection[str]] = (),
        system_prompt: SystemPromptMode | None = None,
        mcp_servers: "Sequence[OwnServer | Definition]" = (),
        permission: PermissionDefaults | None = None,
        store: "Store | Callable[[], Store] | str | None" = None,
        home: "Path | str | Callable[[], Path] | None" = None,
        protected_file: Callable[[], str | None] | None = None,
    ) -> None:
        """Declare an agent. The first mode is the default.

        `auth` is the login that the agent needs. `content_types` is the content that it accepts besides text (`image`,
        `audio`). Both may be functions, which are called when a client connects. `system_prompt` says that the program
        uses `Session.instructions`. With `append`, clients may add instructions. With `override`, they may also replace
        the agent's instructions. `mcp_servers` are the agent's servers, which its sessions share. `store` keeps the
        sessions and may be the address of a database. The default is the database in `$DRAGOMAN_STORE`, or else files
        in `home`, which is a directory per agent name below `$DRAGOMAN_HOME` (`~/.dragoman`). `protected_file` returns
        a file, such as the program's settings. Writing it asks for permission in every mode except `all`.

        Raises ValueError for modes and options with equal names, and for unknown content in `content_types`.
        """
        self.program = AgentProgram(v1.Implementation(name=name, title=title, version=version))
        self._store = store
        self._home = home
        self._protected_file = protected_file
        self.program.modes, self.program.options = modes, options
        if modes or options:
            from dragoman.agent.sessions.settings import check_declarations

            check_declarations(modes, options)
        self.program.permission = permission or PermissionDefaults()
        self.program.system_prompt = system_prompt
        self.program.find_auth = auth if callable(auth) else lambda: auth
        self.program.find_content_types = _find_content_types(content_types)
        self.program.servers = _own_servers(mcp_servers)

    @property
    def name(self) -> str:
        """The name of the agent, for programs."""
        return self.program.info.name

    def __repr__(self) -> str:
        return f"Agent({self.name!r}, version={self.program.info.version!r})"

    # ── functions ───────────────────────────────────────────────────────────────────────────────

    def on_prompt(self, function: F) -> F:
        """Register the coroutine function that answers prompts. It may also be an async generator that yields text.

        The function receives a `Turn` and may return a stop reason. None means `end_turn`.
        """
        self.program.on_prompt = _checked(function, "on_prompt", generators=True)
        return function

    def command(self, name: str, description: str, *, hint: str | None = None) -> Callable[[F], F]:
        """Register a function that answers a slash command, like `on_prompt`. `hint` describes its arguments."""
        if not COMMAND_NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} is not a valid command name; use letters, digits, `_`, `-`, `.` and `:`, without a slash"
            )

        def add(function: F) -> F:
            checked = _checked(function, f"command {name!r}", generators=True)
            self.program.commands[name] = SlashCommand(name, description, checked, hint)
            return function

        return add

    def on_extension(self, name: str) -> Callable[[F], F]:
        """Register `async function(params)` to answer the extension request `name`, which must begin with `_`.

        `params` and the result are JSON objects. Announce the extension to clients with `declare_meta`.
        """
        if not name.startswith("_"):
            raise ValueError(f"{name!r} is not an extension method; expected a name that begins with `_`")

        def add(function: F) -> F:
            self.program.extensions[name] = _checked(function, f"extension {name!r}")
            return function

        return add

    def declare_meta(self, key: str, value: Any) -> None:
        """Add a value to `_meta` of the capabilities, for clients that know more than the protocol."""
        self.program.meta[key] = value

    def on_session(self, function: F) -> F:
        """Call `async function(session, origin)` when a session becomes live, by `new`, `load`, `resume` or `fork`.

        It is called before the request is answered. An exception refuses the session.
        """
        self.program.on_session.append(_checked(function, "on_session"))
        return function

    def on_close(self, function: F) -> F:
        """Call `async function(session)` when a session is closed or deleted, or its client disconnects."""
        self.program.on_close.append(_checked(function, "on_close"))
        return function

    def on_open(self, function: F) -> F:
        """Call `async function(session)` before a session's log is created or read, and again if it is read again.

        Use it to choose the modes and options of this session with `session.declare`.
        """
        self.program.on_open.append(_checked(function, "on_open"))
        return function

    def on_record(self, function: F) -> F:
        """Call `function(session, data)` with the JSON bytes of each `Session.record` value in a log that is read."""
        self.program.on_record.append(function)
        return function

    def on_turn(self, function: F) -> F:
        """Call `async function(turn)` when a turn begins, before commands are parsed."""
        self.program.on_turn.append(_checked(function, "on_turn"))
        return function

    def on_option(self, function: F) -> F:
        """Call `async function(session, option, value)` before a client changes an option or the `mode`.

        An exception refuses the change.
        """
        self.program.on_option.append(_checked(function, "on_option"))
        return function

    def on_sample(self, function: F) -> F:
        """Register `async function(turn, params)` to answer an MCP server's model request, once the user has agreed.

        `params` and the result have the types of MCP's `sampling/createMessage`.
        """
        self.program.on_sample = _checked(function, "on_sample")
        return function

    def check_prompt(self, function: F) -> F:
        """Call `function(session, blocks)` before a prompt begins a turn. It replaces the check of `content_types`.

        An exception refuses the prompt.
        """
        self.program.check_prompt.append(function)
        return function

    def on_shutdown(self, function: F) -> F:
        """Call `async function()` after a client has disconnected and its sessions are closed."""
        self.program.on_shutdown.append(_checked(function, "on_shutdown"))
        return function

    # ── ways to run ─────────────────────────────────────────────────────────────────────────────

    def run(self) -> None:
        """Serve one client on stdin and stdout until it disconnects. Prints go to stderr."""
        from dragoman.agent.running import run_on_stdio

        run_on_stdio(self.name, self.serve)

    async def serve(self, transport: "Transport") -> None:
        """Serve one client over a transport until it disconnects."""
        from dragoman.agent.connection.served_connection import ServedConnection

        await ServedConnection(transport, self.program, self._make_handlers).serve()

    @asynccontextmanager
    async def connect(self, **options: Any) -> "AsyncGenerator[AgentConnection]":
        """Serve a client in this process and yield its `AgentConnection` of `dragoman.client`, for tests.

        `options` are the policy, files, terminals and elicitation options of `dragoman.client.connect`. The connection
        uses ACP version 1, unless `protocol_version=2` is given.

        Raises UnawaitedCallError at the end if a turn called a method such as `Turn.say` without `await`.
        """
        import asyncio

        from dragoman.client.connect import connect_transport
        from dragoman.wire import memory_pair

        options.setdefault("protocol_version", 1)
        near, far = memory_pair()
        # No task group, because it would wrap a test's failed assertion in an exception group.
        serving = asyncio.create_task(self.serve(far))
        try:
            async with connect_transport(near, **options) as remote:
                yield remote
        finally:
            await serving
        forgotten, self.program.unawaited = self.program.unawaited, []
        if forgotten:
            from dragoman.agent.turns.unawaited import UnawaitedCallError

            raise UnawaitedCallError(forgotten)

    def keep_sessions_in(self, address: str) -> None:
        """Store sessions in the database at an address from now on.

        Raises InvalidStoreAddressError and StoreNotInstalledError.
        """
        from dragoman.store import find_address

        self._store = find_address(address)

    def _make_handlers(
        self, connection: "Connection", request: v1.InitializeRequest, content_types: frozenset[str]
    ) -> "SessionHandlers":
        from dragoman.agent.connection.requests import SessionHandlers
        from dragoman.agent.servers.agent_resources import AgentResources
        from dragoman.agent.sessions.session import SessionClient
        from dragoman.store import SharesApprovals, find_address, log_scope, open_store
        from dragoman.telemetry.setup import start_loading

        start_loading(self.name)
        home = self._find_home()
        store, owned = self._store, None
        if store is None or isinstance(store, str):
            store = owned = open_store(find_address(store), home, log_scope(self.name))
        elif callable(store):
            store = owned = store()
        resources = AgentResources(
            home,
            self._protected_file and self._protected_file(),
            shared_approvals=store if isinstance(store, SharesApprovals) else None,
        )
        client = SessionClient(request.client_capabilities, request.client_info)
        return SessionHandlers(
            connection, store, resources, client, self.program, content_types=content_types, owned_store=owned
        )

    def _find_home(self) -> "Path":
        from pathlib import Path

        from dragoman.agent.sessions.directories import agent_home

        if self._home is None:
            return agent_home(self.name)
        return self._home() if callable(self._home) else Path(self._home).absolute()


def _checked(function: F, what: str, *, generators: bool = False) -> F:
    """Check that a function can be awaited and return it. Raises TypeError."""
    inner: Any = function
    while isinstance(inner, functools.partial):
        inner = cast("functools.partial[Any]", inner).func
    called = inner if inspect.isroutine(inner) else getattr(inner, "__call__", inner)  # noqa: B004 -- an object may have an async __call__
    if inspect.iscoroutinefunction(called) or (generators and inspect.isasyncgenfunction(called)):
        return function
    name = getattr(function, "__name__", repr(function))
    expected = "a coroutine function, or an async generator function" if generators else "a coroutine function"
    raise TypeError(f"{what}: {name} is not async; expected {expected}: write `async def {name}(…)`")


def _find_content_types(content_types: Collection[str] | Callable[[], Collection[str]]) -> Callable[[], frozenset[str]]:
    if callable(content_types):
        return lambda: _check_content_types(content_types())
    checked = _check_content_types(content_types)
    return lambda: checked


def _check_content_types(content_types: Collection[str]) -> frozenset[str]:
    """Return the kinds of content. Raises ValueError for unknown kinds, and for a string instead of a list."""
    if isinstance(content_types, str):
        problem = f"content_types={content_types!r} is a string; expected a list: content_types=[{content_types!r}]"
        raise ValueError(problem)  # noqa: TRY004 -- a str is a Collection[str]: its type is right
    unknown = sorted(set(content_types) - set(CONTENT_KINDS.values()))
    if unknown:
        raise ValueError(f"content_types: unknown type {unknown[0]!r}; expected {' or '.join(CONTENT_KINDS.values())}")
    return frozenset(content_types)


def _own_servers(servers: "Sequence[OwnServer | Definition]") -> "Sequence[OwnServer]":
    if not servers:
        return ()
    from dragoman.agent.servers.session_servers import AgentMcpServer
    from dragoman.mcp.definition import AcpServer, HttpServer, SseServer, StdioServer

    def own(server: "OwnServer | Definition") -> "OwnServer":
        if isinstance(server, StdioServer | HttpServer | SseServer | AcpServer):
            return AgentMcpServer(server)
        return server

    return [own(server) for server in servers]
