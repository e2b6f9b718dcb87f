"""The client without `async`, for scripts and notebooks.

An event loop runs in a separate thread. The agent gets its answers while the script computes or waits for its user, and
a script or notebook may already run another loop.
"""

import asyncio
import os
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from functools import wraps
from typing import IO, Any, Concatenate, Literal, ParamSpec, Protocol, Self, TypeVar

from dragoman.client.agent import AgentConnection, ArchiveFilter
from dragoman.client.connect import connect, connect_url
from dragoman.client.connection.capability_check import Prompt, StrPath
from dragoman.client.connection.handshake import START_TIMEOUT_S, ClientService, WireObserver
from dragoman.client.events import Event
from dragoman.client.permission.policy import Policy, PolicyCallback
from dragoman.client.services.elicitation import ElicitationHandler
from dragoman.client.sessions.entities import Entities
from dragoman.client.sessions.result import TurnResult
from dragoman.client.sessions.session import Session
from dragoman.client.sessions.tool_call import ToolCallState
from dragoman.client.sessions.turn import Turn
from dragoman.loop_thread import LoopThread
from dragoman.protocol import v1

P = ParamSpec("P")
T = TypeVar("T")


class OpenFile(Protocol):
    """An open file, pipe or socket."""

    def fileno(self) -> int:
        """Return the file descriptor."""
        ...


@contextmanager
def connect_sync(
    command: str | Sequence[str] | None = None,
    *,
    stream: tuple[OpenFile, OpenFile] | None = None,
    cwd: StrPath | None = None,
    env: Mapping[str, str] | None = None,
    policy: Policy | PolicyCallback | None = None,
    files: Literal["read", "write"] | ClientService | None = None,
    terminals: bool | ClientService = False,
    elicit: ElicitationHandler | None = None,
    on_stderr: Callable[[bytes], None] | None = None,
    record: StrPath | None = None,
    watch: WireObserver | None = None,
    name: str = "dragoman",
    start_timeout_s: float = START_TIMEOUT_S,
    protocol_version: Literal[1, 2] = 2,
) -> Generator["SyncAgent"]:
    """Connect as `connect` does, in a `with` block. Policies and callbacks run in the thread of the loop.

    `stream` is a pair of open files, `(reader, writer)`, such as `process.stdout` and `process.stdin` of a
    `subprocess.Popen`, or the same socket twice. No other code may use them during the connection.
    """
    connecting = _connect(
        command,
        stream,
        cwd=cwd,
        env=env,
        policy=policy,
        files=files,
        terminals=terminals,
        elicit=elicit,
        on_stderr=on_stderr,
        record=record,
        watch=watch,
        name=name,
        start_timeout_s=start_timeout_s,
        protocol_version=protocol_version,
    )
    with _entered(connecting) as agent:
        yield agent


@asynccontextmanager
async def _connect(
    command: str | Sequence[str] | None, pipes: tuple[OpenFile, OpenFile] | None, **options: Any
) -> AsyncGenerator[AgentConnection]:
    if pipes is None:
        async with connect(command, **options) as agent:
            yield agent
        return
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    source, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), _copy(pipes[0], "rb"))
    try:
        sink, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), _copy(pipes[1], "wb")
        )
        writer = asyncio.StreamWriter(sink, protocol, None, loop)
        async with connect(command, stream=(reader, writer), **options) as agent:
            yield agent
    finally:
        source.close()


def _copy(file: OpenFile, mode: str) -> IO[bytes]:
    """Return a duplicate of an open file. The loop closes the duplicate, and the caller's file stays open."""
    return os.fdopen(os.dup(file.fileno()), mode, 0)


def _without_async(
    connect_async: Callable[P, AbstractAsyncContextManager[AgentConnection]],
) -> Callable[P, AbstractContextManager["SyncAgent"]]:
    @wraps(connect_async)
    @contextmanager
    def enter(*args: P.args, **kwargs: P.kwargs) -> Generator["SyncAgent"]:
        with _entered(connect_async(*args, **kwargs)) as agent:
            yield agent

    return enter


connect_url_sync = _without_async(connect_url)
"""Connect as `connect_url` does, in a `with` block. Policies and callbacks run in the thread of the loop."""


@contextmanager
def _entered(connecting: AbstractAsyncContextManager[AgentConnection]) -> Generator["SyncAgent"]:
    loop = LoopThread()
    try:
        agent, leave = loop.enter(connecting)
        try:
            yield SyncAgent(loop, agent)
        finally:
            leave()
    finally:
        loop.stop()


def _of_agent(
    method: Callable[Concatenate[AgentConnection, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["SyncAgent", P], T]:
    """Return a method that runs an `AgentConnection` method and waits for its result."""

    @wraps(method)
    def wait(self: "SyncAgent", *args: P.args, **kwargs: P.kwargs) -> T:
        return self.loop.run(method(self.agent, *args, **kwargs))

    return wait


def _opens(
    method: Callable[Concatenate[AgentConnection, P], Coroutine[Any, Any, Session]],
) -> Callable[Concatenate["SyncAgent", P], "SyncSession"]:
    """Return a method that runs an `AgentConnection` method and wraps the session that it opens."""

    @wraps(method)
    def wait(self: "SyncAgent", *args: P.args, **kwargs: P.kwargs) -> "SyncSession":
        return SyncSession(self.loop, self.loop.run(method(self.agent, *args, **kwargs)))

    return wait


class SyncAgent:
    """An `AgentConnection` with synchronous methods. `agent` is the asynchronous connection."""

    def __init__(self, loop: LoopThread, agent: AgentConnection) -> None:
        self.agent = agent
        self.info = agent.info
        self.protocol_version = agent.protocol_version
        self.capabilities = agent.capabilities
        self.auth_methods = agent.auth_methods
        self.loop = loop

    def __repr__(self) -> str:
        return repr(self.agent).replace("AgentConnection", "SyncAgent", 1)

    @property
    def name(self) -> str:
        """The agent's name and version, or else the program's name."""
        return self.agent.name

    @property
    def withdraws(self) -> bool:
        """Whether the agent can withdraw its messages."""
        return self.agent.withdraws

    @property
    def auth(self) -> v1.AuthStatusResponse | None:
        """The agent's last report of its login. None if it sent none."""
        return self.agent.auth

    @property
    def open_sessions(self) -> "tuple[SyncSession, ...]":
        """The sessions that are open on this connection."""
        return tuple(SyncSession(self.loop, session) for session in self.agent.open_sessions)

    new_session = _opens(AgentConnection.new_session)
    load_session = _opens(AgentConnection.load_session)
    resume_session = _opens(AgentConnection.resume_session)
    reopen_session = _opens(AgentConnection.reopen_session)
    fork = _opens(AgentConnection.fork)
    close = _of_agent(AgentConnection.close)
    delete = _of_agent(AgentConnection.delete)
    set_title = _of_agent(AgentConnection.set_title)
    archive = _of_agent(AgentConnection.archive)
    unarchive = _of_agent(AgentConnection.unarchive)
    status = _of_agent(AgentConnection.status)
    auth_status = _of_agent(AgentConnection.auth_status)
    authenticate = _of_agent(AgentConnection.authenticate)
    logout = _of_agent(AgentConnection.logout)
    call_extension = _of_agent(AgentConnection.call_extension)

    def list_sessions(
        self, cwd: StrPath | None = None, *, archived: ArchiveFilter = "exclude"
    ) -> Iterator[v1.SessionInfo]:
        """Yield the agent's sessions, all or those of one directory."""
        listing = self.agent.list_sessions(cwd, archived=archived)
        while (info := self.loop.run(_next(listing))) is not None:
            yield info


async def _next(listing: AsyncGenerator[v1.SessionInfo]) -> v1.SessionInfo | None:
    return await anext(listing, None)


def _of_session(
    method: Callable[Concatenate[Session, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["SyncSession", P], T]:
    """Return a method that runs a `Session` method and waits for its result."""

    @wraps(method)
    def wait(self: "SyncSession", *args: P.args, **kwargs: P.kwargs) -> T:
        return self.loop.run(method(self.session, *args, **kwargs))

    return wait


class SyncSession:
    """A `Session` with synchronous methods. `session` is the asynchronous session, which has the state."""

    def __init__(self, loop: LoopThread, session: Session) -> None:
        self.session = session
        self.id = session.id
        self.cwd = session.cwd
        self.additional_directories = session.additional_directories
        self.mcp_servers = session.mcp_servers
        self.loop = loop

    def __repr__(self) -> str:
        return repr(self.session).replace("Session", "SyncSession", 1)

    @property
    def title(self) -> str | None:
        """The title, if the agent set one."""
        return self.session.title

    @property
    def updated_at(self) -> str | None:
        """The time of the last change, if the agent reported it."""
        return self.session.updated_at

    @property
    def modes(self) -> v1.SessionModeState | None:
        """The available modes and the current one."""
        return self.session.modes

    @property
    def config_options(self) -> tuple[v1.SessionConfigOption, ...]:
        """The config options with their values."""
        return self.session.config_options

    @property
    def commands(self) -> tuple[v1.AvailableCommand, ...]:
        """The available slash commands."""
        return self.session.commands

    @property
    def usage(self) -> v1.UsageUpdate | None:
        """The size of the context and the cost, if the agent reports them."""
        return self.session.usage

    @property
    def plan(self) -> tuple[v1.PlanEntry, ...]:
        """The agent's plan."""
        return self.session.plan

    @property
    def tool_calls(self) -> dict[str, ToolCallState]:
        """The tool calls by id, each with all its updates."""
        return self.session.tool_calls

    @property
    def entities(self) -> Entities:
        """The compactions, the subagents and the messages between them, by id."""
        return self.session.entities

    @property
    def history(self) -> list[Event]:
        """The events that a load replayed, in order and without withdrawn messages."""
        return self.session.history

    @property
    def events_between_turns(self) -> deque[Event]:
        """The latest events outside of any turn."""
        return self.session.events_between_turns

    @property
    def is_busy(self) -> bool:
        """Whether a turn is running."""
        return self.session.is_busy

    def prompt(self, prompt: Prompt) -> "SyncTurn":
        """Return the turn of a prompt. Read its events with `for`. The last one is `TurnFinished`."""
        return SyncTurn(self.loop, self.loop.run(self._open(prompt)))

    run = _of_session(Session.run)
    ask = _of_session(Session.ask)
    set_mode = _of_session(Session.set_mode)
    set_config_option = _of_session(Session.set_config_option)
    close = _of_session(Session.close)
    delete = _of_session(Session.delete)
    set_title = _of_session(Session.set_title)
    archive = _of_session(Session.archive)
    status = _of_session(Session.status)

    def cancel(self) -> None:
        """Cancel the running turn, from any thread."""
        self.loop.soon(self.session.cancel)

    def fork(self) -> "SyncSession":
        """Open a copy of this session."""
        return SyncSession(self.loop, self.loop.run(self.session.fork()))

    async def _open(self, prompt: Prompt) -> Turn:
        return self.session.prompt(prompt)


class SyncTurn:
    """A `Turn` that is read with `for`. A reader that stops cancels it. `with` waits for its end."""

    def __init__(self, loop: LoopThread, turn: Turn) -> None:
        self.turn = turn
        self.loop = loop
        self._events: deque[Event] = deque()

    def __repr__(self) -> str:
        return repr(self.turn).replace("Turn", "SyncTurn", 1)

    @property
    def waiting(self) -> int:
        """How many events wait to be read."""
        return len(self._events) + self.turn.waiting

    @property
    def is_held(self) -> bool:
        """Whether the agent has to wait because too many events are unread."""
        return self.turn.is_held

    @property
    def is_over(self) -> bool:
        """Whether the turn has ended or its prompt could not be sent."""
        return self.turn.is_over

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        if not self._events:
            try:
                self._events.extend(self.loop.run(self.turn.next_batch()))
            except BaseException:
                self.close()
                raise
        if not self._events:
            raise StopIteration
        return self._events.popleft()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def next_batch(self) -> list[Event]:
        """Wait for the next event and return all unread events. Return an empty list at the end."""
        batch = list(self._events) or self.loop.run(self.turn.next_batch())
        self._events.clear()
        return batch

    def result(self, *, timeout_s: float | None = None) -> TurnResult:
        """Read the turn to its end and return it as one value, as `Turn.result` does."""
        return self.loop.run(self.turn.result(timeout_s=timeout_s))

    def cancel(self) -> None:
        """Cancel this turn if it runs, from any thread."""
        self.loop.soon(self.turn.cancel)

    def close(self) -> None:
        """Cancel the turn if it still runs, and wait for its end. Raises CancelIgnoredError."""
        self.loop.run(self.turn.aclose())
