"""The agent of a program: what it declares, and the ways to run it.

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

    from dragoman.agent.requests import SessionHandlers
    from dragoman.agent.servers.session_servers import OwnServer
    from dragoman.agent.settings import Mode, SessionOption
    from dragoman.client import RemoteAgent
    from dragoman.mcp.definition import Definition
    from dragoman.protocol.connection import Connection
    from dragoman.store import Store
    from dragoman.wire import Transport

F = TypeVar("F", bound=Callable[..., Any])


class Agent:
    """An ACP agent made of functions: sessions, replay, permission, MCP servers and cancellation are done for it."""

    def __init__(
        self,
        name: str,
        *,
        version: str = "0.0.0",
        title: str | None = None,
        modes: "Sequence[Mode]" = (),
        options: "Sequence[SessionOption]" = (),
        auth: Authenticator | Callable[[], Authenticator | None] | None = None,
        takes: Collection[str] | Callable[[], Collection[str]] = (),
        system_prompt: SystemPromptMode | None = None,
        mcp_servers: "Sequence[OwnServer | Definition]" = (),
        permission: PermissionDefaults | None = None,
        store: "Store | Callable[[], Store] | str | None" = None,
        home: "Path | str | Callable[[], Path] | None" = None,
        protected_file: Callable[[], str | None] | None = None,
    ) -> None:
        """Declare an agent; the first mode is the default.

        `auth` is the login that it needs, `takes` the content beyond text that it can be given (`image`, `audio`);
        both may be functions, which are called when a client connects. `system_prompt` says that the program uses
        `Session.instructions`: clients may then `append` instructions, or even `override` its own. `mcp_servers` are
        the agent's own, shared by its sessions. `store` keeps the sessions: the address of a database, by default that
        in `$DRAGOMAN_STORE`, else files in `home`, which is a directory for each name of an agent below
        `$DRAGOMAN_HOME` (`~/.dragoman`). `protected_file` gives a file that is asked about in every mode but `all`
        before it is written, such as the program's own settings.

        Raises ValueError for modes and options that cannot be told apart, and for other content in `takes`.
        """
        self.program = AgentProgram(v1.Implementation(name=name, title=title, version=version))
        self._store = store
        self._home = home
        self._protected_file = protected_file
        self.program.modes, self.program.options = modes, options
        if modes or options:
            from dragoman.agent.settings import check_declarations

            check_declarations(modes, options)
        self.program.permission = permission or PermissionDefaults()
        self.program.system_prompt = system_prompt
        self.program.find_auth = auth if callable(auth) else lambda: auth
        self.program.find_takes = _find_takes(takes)
        self.program.servers = _own_servers(mcp_servers)

    @property
    def name(self) -> str:
        """The name, for programs."""
        return self.program.info.name

    def __repr__(self) -> str:
        return f"Agent({self.name!r}, version={self.program.info.version!r})"

    # ── functions ───────────────────────────────────────────────────────────────────────────────

    def on_prompt(self, function: F) -> F:
        """Let a coroutine function, or an async generator function that yields text, answer prompts.

        It gets a `Turn`, and may return a stop reason; None is `end_turn`.
        """
        self.program.hooks.prompt = _checked(function, "on_prompt", generators=True)
        return function

    def command(self, name: str, description: str, *, hint: str | None = None) -> Callable[[F], F]:
        """Let a function answer the slash command of this name, as `on_prompt` does; `hint` shows its arguments."""
        if not COMMAND_NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} is no name of a command; write letters, digits, `_`, `-`, `.` and `:`, no slash"
            )

        def add(function: F) -> F:
            checked = _checked(function, f"command {name!r}", generators=True)
            self.program.commands[name] = SlashCommand(name, description, checked, hint)
            return function

        return add

    def on_extension(self, name: str) -> Callable[[F], F]:
        """Let `async function(params)` answer the extension request of this name, which begins with `_`.

        `params` is an object of JSON, and so is the result. `declare_meta` tells clients of it.
        """
        if not name.startswith("_"):
            raise ValueError(f"{name!r} is no extension of the protocol; expected a name that begins with `_`")

        def add(function: F) -> F:
            self.program.extensions.functions[name] = _checked(function, f"extension {name!r}")
            return function

        return add

    def declare_meta(self, key: str, value: Any) -> None:
        """Put a value into `_meta` of the capabilities, for clients that know more than the protocol."""
        self.program.extensions.meta[key] = value

    def on_session(self, function: F) -> F:
        """Call `async function(session, origin)` when a session has become live: `new`, `load`, `resume` or `fork`.

        It is called before the request is answered; an exception refuses the session.
        """
        self.program.hooks.session.append(_checked(function, "on_session"))
        return function

    def on_close(self, function: F) -> F:
        """Call `async function(session)` when a session is closed, deleted, or its client is gone."""
        self.program.hooks.close.append(_checked(function, "on_close"))
        return function

    def on_open(self, function: F) -> F:
        """Call `async function(session)` before a session's log is begun or read, and again if it is read anew.

        The place to choose the modes and options of this session, with `session.declare`.
        """
        self.program.hooks.open.append(_checked(function, "on_open"))
        return function

    def on_record(self, function: F) -> F:
        """Call `function(session, data)` for each value of `Session.record` in a log that is read, as JSON bytes."""
        self.program.hooks.record.append(function)
        return function

    def on_turn(self, function: F) -> F:
        """Call `async function(turn)` when a turn begins, before commands are looked for."""
        self.program.hooks.turn.append(_checked(function, "on_turn"))
        return function

    def on_option(self, function: F) -> F:
        """Call `async function(session, option, value)` before a client's change of an option, or of `mode`.

        An exception refuses the change.
        """
        self.program.hooks.option.append(_checked(function, "on_option"))
        return function

    def on_sample(self, function: F) -> F:
        """Let `async function(turn, params)` answer an MCP server's question to the model, once the person agreed.

        `params` are those of MCP's `sampling/createMessage`, and so is the result.
        """
        self.program.hooks.sample = _checked(function, "on_sample")
        return function

    def check_prompt(self, function: F) -> F:
        """Call `function(session, blocks)` before a prompt begins a turn, in place of the check against `takes`.

        An exception refuses the prompt.
        """
        self.program.hooks.check.append(function)
        return function

    def on_shutdown(self, function: F) -> F:
        """Call `async function()` when a client is gone and its sessions are closed."""
        self.program.hooks.shutdown.append(_checked(function, "on_shutdown"))
        return function

    # ── ways to run ─────────────────────────────────────────────────────────────────────────────

    def run(self) -> None:
        """Serve one client on stdin and stdout until it is gone; prints go to stderr."""
        from dragoman.agent.running import run_on_stdio

        run_on_stdio(self.name, self.serve)

    async def serve(self, transport: "Transport") -> None:
        """Serve one client over a transport until it is gone."""
        from dragoman.agent.agent_connection import AgentConnection

        await AgentConnection(transport, self.program, self._make_handlers).serve()

    @asynccontextmanager
    async def connect(self, **options: Any) -> "AsyncGenerator[RemoteAgent]":
        """Serve a client in this process, and give it: the `RemoteAgent` of `dragoman.client`, for tests.

        `options` are those of `dragoman.client.connect` for policy, files, terminals and elicitation. They talk in
        version 1 of ACP, unless `protocol_version=2` is among them.
        """
        import asyncio

        from dragoman.client.connect import connect_transport
        from dragoman.wire import memory_pair

        options.setdefault("protocol_version", 1)
        near, far = memory_pair()
        # No task group: it would put a failed assertion of a test into an exception group.
        serving = asyncio.create_task(self.serve(far))
        try:
            async with connect_transport(near, **options) as remote:
                yield remote
        finally:
            await serving

    def keep_sessions_in(self, address: str) -> None:
        """Keep sessions in the database at an address from now on; raises BadStoreAddress, StoreNotInstalled."""
        from dragoman.store import find_address

        self._store = find_address(address)

    def _make_handlers(
        self, connection: "Connection", request: v1.InitializeRequest, takes: frozenset[str]
    ) -> "SessionHandlers":
        from dragoman.agent.requests import SessionHandlers
        from dragoman.agent.resources import AgentResources
        from dragoman.agent.session import SessionClient
        from dragoman.store import SharesApprovals, find_address, log_scope, open_store
        from dragoman.telemetry.setup import begin_start

        begin_start(self.name)
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
        return SessionHandlers(connection, store, resources, client, self.program, takes=takes, owned_store=owned)

    def _find_home(self) -> "Path":
        from pathlib import Path

        from dragoman.agent.directories import agent_home

        if self._home is None:
            return agent_home(self.name)
        return self._home() if callable(self._home) else Path(self._home).absolute()


def _checked(function: F, what: str, *, generators: bool = False) -> F:
    """Return a function that can be awaited; raises TypeError."""
    inner: Any = function
    while isinstance(inner, functools.partial):
        inner = cast("functools.partial[Any]", inner).func
    called = inner if inspect.isroutine(inner) else getattr(inner, "__call__", inner)  # noqa: B004 -- an object may have an async __call__
    if inspect.iscoroutinefunction(called) or (generators and inspect.isasyncgenfunction(called)):
        return function
    name = getattr(function, "__name__", repr(function))
    wanted = "a coroutine function, or an async generator function" if generators else "a coroutine function"
    raise TypeError(f"{what}: {name} is not async; expected {wanted}: write `async def {name}(…)`")


def _find_takes(takes: Collection[str] | Callable[[], Collection[str]]) -> Callable[[], frozenset[str]]:
    if callable(takes):
        return lambda: _check_takes(takes())
    checked = _check_takes(takes)
    return lambda: checked


def _check_takes(takes: Collection[str]) -> frozenset[str]:
    """Return the kinds of content; raises ValueError for a text, which is a collection of letters, and other kinds."""
    if isinstance(takes, str):
        problem = f"takes={takes!r} is one text; expected a list of kinds of content: takes=[{takes!r}]"
        raise ValueError(problem)  # noqa: TRY004 -- a str is a Collection[str]: its type is right
    unknown = sorted(set(takes) - set(CONTENT_KINDS.values()))
    if unknown:
        raise ValueError(f"takes: there is no content {unknown[0]!r}; expected {' or '.join(CONTENT_KINDS.values())}")
    return frozenset(takes)


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
