"""The client without `async`, for scripts and notebooks.

An event loop of its own runs in a thread of its own: the agent is answered while the script computes or waits for its
user, and it does not matter whether the script, or the notebook around it, has a loop already.
"""

import asyncio
import os
import ssl
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import IO, Any, Literal, Protocol, Self, TypeVar

from dragoman.client.agent import RemoteAgent
from dragoman.client.capability_check import Prompt, StrPath
from dragoman.client.connect import connect, connect_url
from dragoman.client.elicitation import Elicit
from dragoman.client.events import Event
from dragoman.client.handshake import START_TIMEOUT_S, Provision, TrafficWatch
from dragoman.client.policy import Callback, Policy
from dragoman.client.result import TurnResult
from dragoman.client.servers import McpServers
from dragoman.client.session import Session
from dragoman.client.tool_call import ToolCallState
from dragoman.client.turn import Turn
from dragoman.loop_thread import LoopThread
from dragoman.mcp.serving.function_server import ToolFunction
from dragoman.protocol import v1
from dragoman.protocol.url import TransportChoice

T = TypeVar("T")


class OpenFile(Protocol):
    """A file, pipe or socket that is open."""

    def fileno(self) -> int:
        """Return its descriptor."""
        ...


@contextmanager
def connect_sync(
    command: str | Sequence[str] | None = None,
    *,
    stream: tuple[OpenFile, OpenFile] | None = None,
    cwd: StrPath | None = None,
    env: Mapping[str, str] | None = None,
    policy: Policy | Callback | None = None,
    files: Literal["read", "write"] | Provision | None = None,
    terminals: bool | Provision = False,
    elicit: Elicit | None = None,
    on_stderr: Callable[[bytes], None] | None = None,
    record: StrPath | None = None,
    watch: TrafficWatch | None = None,
    name: str = "dragoman",
    start_timeout_s: float = START_TIMEOUT_S,
) -> Generator["SyncAgent"]:
    """Connect as `connect` does, with `with`; policies and callbacks run in the thread of the loop.

    `stream` is a pair of open files, `(reader, writer)`: pipes such as `process.stdout` and `process.stdin` of a
    `subprocess.Popen`, or a socket twice. Nobody else may read or write them meanwhile.
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
    )
    with _entered(connecting) as agent:
        yield agent


@asynccontextmanager
async def _connect(
    command: str | Sequence[str] | None, pipes: tuple[OpenFile, OpenFile] | None, **options: Any
) -> AsyncGenerator[RemoteAgent]:
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
    """Open the same pipe once more: the copy is closed in the end, and the caller's own stays open."""
    return os.fdopen(os.dup(file.fileno()), mode, 0)


@contextmanager
def connect_url_sync(
    url: str,
    *,
    token: str | None = None,
    headers: Mapping[str, str] | None = None,
    transport: TransportChoice = "auto",
    tls: ssl.SSLContext | None = None,
    policy: Policy | Callback | None = None,
    files: Literal["read", "write"] | Provision | None = None,
    terminals: bool | Provision = False,
    elicit: Elicit | None = None,
    record: StrPath | None = None,
    watch: TrafficWatch | None = None,
    name: str = "dragoman",
    start_timeout_s: float = START_TIMEOUT_S,
) -> Generator["SyncAgent"]:
    """Connect as `connect_url` does, with `with`; policies and callbacks run in the thread of the loop."""
    connecting = connect_url(
        url,
        token=token,
        headers=headers,
        transport=transport,
        tls=tls,
        policy=policy,
        files=files,
        terminals=terminals,
        elicit=elicit,
        record=record,
        watch=watch,
        name=name,
        start_timeout_s=start_timeout_s,
    )
    with _entered(connecting) as agent:
        yield agent


@contextmanager
def _entered(connecting: AbstractAsyncContextManager[RemoteAgent]) -> Generator["SyncAgent"]:
    loop = LoopThread()
    try:
        agent, leave = loop.enter(connecting)
        try:
            yield SyncAgent(loop, agent)
        finally:
            leave()
    finally:
        loop.stop()


class SyncAgent:
    """A `RemoteAgent` whose methods wait; `agent` is the one behind it."""

    def __init__(self, loop: LoopThread, agent: RemoteAgent) -> None:
        self.agent = agent
        self.info = agent.info
        self.capabilities = agent.capabilities
        self.auth_methods = agent.auth_methods
        self._loop = loop

    def __repr__(self) -> str:
        return repr(self.agent).replace("RemoteAgent", "SyncAgent", 1)

    @property
    def name(self) -> str:
        """How to call it in a sentence."""
        return self.agent.name

    @property
    def withdraws(self) -> bool:
        """Whether it says so when a message of it is void."""
        return self.agent.withdraws

    @property
    def open_sessions(self) -> "tuple[SyncSession, ...]":
        """The sessions that are open on this connection."""
        return tuple(SyncSession(self._loop, session) for session in self.agent.open_sessions)

    def new_session(
        self,
        cwd: StrPath | None = None,
        *,
        mcp_servers: McpServers = (),
        tools: Iterable[ToolFunction] = (),
        additional_directories: Iterable[StrPath] = (),
    ) -> "SyncSession":
        """Open a new session."""
        opening = self.agent.new_session(
            cwd, mcp_servers=mcp_servers, tools=tools, additional_directories=additional_directories
        )
        return self._wrap(opening)

    def load_session(
        self,
        session_id: str,
        cwd: StrPath | None = None,
        *,
        mcp_servers: McpServers = (),
        tools: Iterable[ToolFunction] = (),
        additional_directories: Iterable[StrPath] = (),
    ) -> "SyncSession":
        """Open a session that there was before, with its history."""
        opening = self.agent.load_session(
            session_id, cwd, mcp_servers=mcp_servers, tools=tools, additional_directories=additional_directories
        )
        return self._wrap(opening)

    def resume_session(
        self,
        session_id: str,
        cwd: StrPath | None = None,
        *,
        mcp_servers: McpServers = (),
        tools: Iterable[ToolFunction] = (),
        additional_directories: Iterable[StrPath] = (),
    ) -> "SyncSession":
        """Open a session that there was before, without a replay."""
        opening = self.agent.resume_session(
            session_id, cwd, mcp_servers=mcp_servers, tools=tools, additional_directories=additional_directories
        )
        return self._wrap(opening)

    def reopen_session(
        self,
        session_id: str,
        cwd: StrPath | None = None,
        *,
        replay: bool = False,
        mcp_servers: McpServers = (),
        tools: Iterable[ToolFunction] = (),
        additional_directories: Iterable[StrPath] = (),
    ) -> "SyncSession":
        """Open a session that there was before in whichever way the agent can."""
        opening = self.agent.reopen_session(
            session_id,
            cwd,
            replay=replay,
            mcp_servers=mcp_servers,
            tools=tools,
            additional_directories=additional_directories,
        )
        return self._wrap(opening)

    def fork(
        self,
        session: "SyncSession | str",
        cwd: StrPath | None = None,
        *,
        mcp_servers: McpServers | None = None,
        additional_directories: Iterable[StrPath] | None = None,
    ) -> "SyncSession":
        """Open a copy of a session; of one that is open here, with the directories and servers that it has."""
        opening = self.agent.fork(
            _behind(session), cwd, mcp_servers=mcp_servers, additional_directories=additional_directories
        )
        return self._wrap(opening)

    def list_sessions(self, cwd: StrPath | None = None) -> Iterator[v1.SessionInfo]:
        """Yield the agent's sessions, all or those of one directory."""
        listing = self.agent.list_sessions(cwd)
        while (info := self._loop.run(_next(listing))) is not None:
            yield info

    def close(self, session: "SyncSession | str") -> None:
        """Let the agent put a session away, to be loaded again later."""
        self._loop.run(self.agent.close(_behind(session)))

    def delete(self, session: "SyncSession | str") -> None:
        """Let the agent forget a session for good."""
        self._loop.run(self.agent.delete(_behind(session)))

    def authenticate(self, method_id: str) -> None:
        """Log in, by one of the agent's `auth_methods`."""
        self._loop.run(self.agent.authenticate(method_id))

    def logout(self) -> None:
        """Log out."""
        self._loop.run(self.agent.logout())

    def _wrap(self, opening: Coroutine[Any, Any, Session]) -> "SyncSession":
        return SyncSession(self._loop, self._loop.run(opening))


class SyncSession:
    """A `Session` whose methods wait; `session` is the one behind it, and has its state."""

    def __init__(self, loop: LoopThread, session: Session) -> None:
        self.session = session
        self.id = session.id
        self.cwd = session.cwd
        self.additional_directories = session.additional_directories
        self.mcp_servers = session.mcp_servers
        self._loop = loop

    def __repr__(self) -> str:
        return repr(self.session).replace("Session", "SyncSession", 1)

    @property
    def title(self) -> str | None:
        """The title, if the agent gave one."""
        return self.session.title

    @property
    def updated_at(self) -> str | None:
        """When the agent changed it last, if it said."""
        return self.session.updated_at

    @property
    def modes(self) -> v1.SessionModeState | None:
        """The modes on offer and the current one."""
        return self.session.modes

    @property
    def config_options(self) -> tuple[v1.SessionConfigOption, ...]:
        """The options, with their values."""
        return self.session.config_options

    @property
    def commands(self) -> tuple[v1.AvailableCommand, ...]:
        """The slash commands on offer."""
        return self.session.commands

    @property
    def usage(self) -> v1.UsageUpdate | None:
        """The size of the context and the cost, if the agent tells them."""
        return self.session.usage

    @property
    def plan(self) -> tuple[v1.PlanEntry, ...]:
        """The agent's plan."""
        return self.session.plan

    @property
    def tool_calls(self) -> dict[str, ToolCallState]:
        """Every tool call, by its id, with all that was said of it."""
        return self.session.tool_calls

    @property
    def history(self) -> list[Event]:
        """What a load replayed, in order, without the messages that were withdrawn."""
        return self.session.history

    @property
    def events_between_turns(self) -> deque[Event]:
        """The last events that came outside of any turn."""
        return self.session.events_between_turns

    @property
    def is_busy(self) -> bool:
        """Whether a turn is running."""
        return self.session.is_busy

    def prompt(self, prompt: Prompt) -> "SyncTurn":
        """Say something; the events of the turn that follows are read with `for`, and the last one is `Done`."""
        return SyncTurn(self._loop, self._loop.run(self._open(prompt)))

    def run(self, prompt: Prompt, *, timeout_s: float | None = None) -> TurnResult:
        """Say something and return the whole turn: text, tool calls, changed files, usage, stop reason and error."""
        return self._loop.run(self.session.run(prompt, timeout_s=timeout_s))

    def ask(self, prompt: Prompt) -> str:
        """Say something and return the text of the answer."""
        return self._loop.run(self.session.ask(prompt))

    def cancel(self) -> None:
        """Cancel the running turn, from any thread."""
        self._loop.soon(self.session.cancel)

    def set_mode(self, mode_id: str) -> None:
        """Switch to another mode."""
        self._loop.run(self.session.set_mode(mode_id))

    def set_config_option(self, option_id: str, value: str | bool) -> None:
        """Set an option."""
        self._loop.run(self.session.set_config_option(option_id, value))

    def fork(self) -> "SyncSession":
        """Open a copy of this session."""
        return SyncSession(self._loop, self._loop.run(self.session.fork()))

    def close(self) -> None:
        """Let the agent put the session away."""
        self._loop.run(self.session.close())

    def delete(self) -> None:
        """Let the agent forget the session."""
        self._loop.run(self.session.delete())

    async def _open(self, prompt: Prompt) -> Turn:
        return self.session.prompt(prompt)


class SyncTurn:
    """A `Turn` that is read with `for`; a reader who stops cancels it. With `with`, its end is waited for there."""

    def __init__(self, loop: LoopThread, turn: Turn) -> None:
        self.turn = turn
        self._loop = loop
        self._events: deque[Event] = deque()

    def __repr__(self) -> str:
        return repr(self.turn).replace("Turn", "SyncTurn", 1)

    @property
    def waiting(self) -> int:
        """How many events wait to be read."""
        return len(self._events) + self.turn.waiting

    @property
    def is_held(self) -> bool:
        """Whether the agent is made to wait, because so much waits to be read."""
        return self.turn.is_held

    @property
    def is_over(self) -> bool:
        """Whether the turn has come to its end, or never began."""
        return self.turn.is_over

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        if not self._events:
            try:
                self._events.extend(self._loop.run(self.turn.take()))
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

    def take(self) -> list[Event]:
        """Wait for the next event and return it with all that wait behind it; nothing at the end."""
        taken = list(self._events) or self._loop.run(self.turn.take())
        self._events.clear()
        return taken

    def result(self, *, timeout_s: float | None = None) -> TurnResult:
        """Read the turn to its end and return it as one value, as `Turn.result` does."""
        return self._loop.run(self.turn.result(timeout_s=timeout_s))

    def cancel(self) -> None:
        """Cancel this turn if it runs, from any thread."""
        self._loop.soon(self.turn.cancel)

    def close(self) -> None:
        """Leave: cancel the turn if it still runs, and wait for its end. Raises CancelIgnored."""
        self._loop.run(self.turn.aclose())


def _behind(session: SyncSession | str) -> Session | str:
    return session if isinstance(session, str) else session.session


async def _next(listing: AsyncGenerator[v1.SessionInfo]) -> v1.SessionInfo | None:
    return await anext(listing, None)
