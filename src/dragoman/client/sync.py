"""The client without `async`, for scripts and notebooks.

An event loop of its own runs in a thread of its own: the agent is answered while the script computes or waits for its
user, and it does not matter whether the script, or the notebook around it, has a loop already.
"""

import asyncio
import os
import ssl
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import IO, Any, Literal, Protocol, TypeVar

from dragoman.client.agent import ArchiveFilter, RemoteAgent
from dragoman.client.capability_check import StrPath
from dragoman.client.connect import connect, connect_url
from dragoman.client.elicitation import Elicit
from dragoman.client.handshake import START_TIMEOUT_S, Provision, TrafficWatch
from dragoman.client.policy import Callback, Policy
from dragoman.client.servers import McpServers
from dragoman.client.session import Session
from dragoman.client.sync_session import SyncSession
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
    protocol_version: Literal[1, 2] = 2,
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
        protocol_version=protocol_version,
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
    protocol_version: Literal[1, 2] = 2,
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
        protocol_version=protocol_version,
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
        self.protocol_version = agent.protocol_version
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
    def auth(self) -> v1.AuthStatusResponse | None:
        """Its login as it last told it; None when it did not."""
        return self.agent.auth

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
        system_prompt: str | v1.SystemPrompt | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> "SyncSession":
        """Open a new session."""
        opening = self.agent.new_session(
            cwd,
            mcp_servers=mcp_servers,
            tools=tools,
            additional_directories=additional_directories,
            system_prompt=system_prompt,
            meta=meta,
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
        system_prompt: str | v1.SystemPrompt | None = None,
    ) -> "SyncSession":
        """Open a session that there was before, with its history."""
        opening = self.agent.load_session(
            session_id,
            cwd,
            mcp_servers=mcp_servers,
            tools=tools,
            additional_directories=additional_directories,
            system_prompt=system_prompt,
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
        system_prompt: str | v1.SystemPrompt | None = None,
    ) -> "SyncSession":
        """Open a session that there was before, without a replay."""
        opening = self.agent.resume_session(
            session_id,
            cwd,
            mcp_servers=mcp_servers,
            tools=tools,
            additional_directories=additional_directories,
            system_prompt=system_prompt,
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
        system_prompt: str | v1.SystemPrompt | None = None,
    ) -> "SyncSession":
        """Open a session that there was before in whichever way the agent can."""
        opening = self.agent.reopen_session(
            session_id,
            cwd,
            replay=replay,
            mcp_servers=mcp_servers,
            tools=tools,
            additional_directories=additional_directories,
            system_prompt=system_prompt,
        )
        return self._wrap(opening)

    def fork(
        self,
        session: "SyncSession | str",
        cwd: StrPath | None = None,
        *,
        mcp_servers: McpServers | None = None,
        additional_directories: Iterable[StrPath] | None = None,
        system_prompt: str | v1.SystemPrompt | None = None,
    ) -> "SyncSession":
        """Open a copy of a session; of one that is open here, with the directories and servers that it has."""
        opening = self.agent.fork(
            _behind(session),
            cwd,
            mcp_servers=mcp_servers,
            additional_directories=additional_directories,
            system_prompt=system_prompt,
        )
        return self._wrap(opening)

    def list_sessions(
        self, cwd: StrPath | None = None, *, archived: ArchiveFilter = "exclude"
    ) -> Iterator[v1.SessionInfo]:
        """Yield the agent's sessions, all or those of one directory."""
        listing = self.agent.list_sessions(cwd, archived=archived)
        while (info := self._loop.run(_next(listing))) is not None:
            yield info

    def close(self, session: "SyncSession | str") -> None:
        """Let the agent put a session away, to be loaded again later."""
        self._loop.run(self.agent.close(_behind(session)))

    def delete(self, session: "SyncSession | str") -> None:
        """Let the agent forget a session for good."""
        self._loop.run(self.agent.delete(_behind(session)))

    def set_title(self, session: "SyncSession | str", title: str) -> str:
        """Give a session, open or not, a title, and return the one that the agent has kept."""
        return self._loop.run(self.agent.set_title(_behind(session), title))

    def archive(self, session: "SyncSession | str") -> None:
        """Let the agent put a session away, and leave it out of lists."""
        self._loop.run(self.agent.archive(_behind(session)))

    def unarchive(self, session: "SyncSession | str") -> None:
        """Have a session in lists again; it is not opened."""
        self._loop.run(self.agent.unarchive(_behind(session)))

    def status(self, session: "SyncSession | str") -> Literal["open", "saved"]:
        """Ask whether the agent has a session in memory (`open`), or would have to load it (`saved`)."""
        return self._loop.run(self.agent.status(_behind(session)))

    def auth_status(self) -> v1.AuthStatusResponse:
        """Ask whether sessions can be begun without a login, and which accounts the agent has."""
        return self._loop.run(self.agent.auth_status())

    def authenticate(self, method_id: str) -> None:
        """Log in, by one of the agent's `auth_methods`."""
        self._loop.run(self.agent.authenticate(method_id))

    def logout(self) -> None:
        """Log out."""
        self._loop.run(self.agent.logout())

    def call_extension(self, name: str, params: Mapping[str, Any]) -> Any:
        """Send a request beyond the protocol, whose name begins with `_`, and return its result as plain JSON."""
        return self._loop.run(self.agent.call_extension(name, params))

    def _wrap(self, opening: Coroutine[Any, Any, Session]) -> "SyncSession":
        return SyncSession(self._loop, self._loop.run(opening))


def _behind(session: SyncSession | str) -> Session | str:
    return session if isinstance(session, str) else session.session


async def _next(listing: AsyncGenerator[v1.SessionInfo]) -> v1.SessionInfo | None:
    return await anext(listing, None)
