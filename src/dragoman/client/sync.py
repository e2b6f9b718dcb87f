"""The client without `async`, for scripts and notebooks.

An event loop of its own runs in a thread of its own: the agent is answered while the script computes or waits for its
user, and it does not matter whether the script, or the notebook around it, has a loop already.
"""

import ssl
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, Literal, TypeVar

from dragoman.client.agent import RemoteAgent
from dragoman.client.capability_check import Prompt, StrPath
from dragoman.client.connect import connect, connect_url
from dragoman.client.elicitation import Elicit
from dragoman.client.events import Event
from dragoman.client.handshake import START_TIMEOUT_S, Provision
from dragoman.client.policy import Policy
from dragoman.client.servers import McpServers
from dragoman.client.session import Session
from dragoman.client.turn import Turn
from dragoman.loop_thread import LoopThread
from dragoman.mcp.serving.function_server import ToolFunction
from dragoman.protocol import v1
from dragoman.protocol.url import TransportChoice

T = TypeVar("T")


@contextmanager
def connect_sync(
    command: str | Sequence[str],
    *,
    cwd: StrPath | None = None,
    env: Mapping[str, str] | None = None,
    policy: Policy | None = None,
    files: Literal["read", "write"] | Provision | None = None,
    terminals: bool | Provision = False,
    elicit: Elicit | None = None,
    on_stderr: Callable[[bytes], None] | None = None,
    record: StrPath | None = None,
    name: str = "dragoman",
    start_timeout_s: float = START_TIMEOUT_S,
) -> Generator["SyncAgent"]:
    """Connect as `connect` does, with `with`; policies and callbacks run in the thread of the loop."""
    connecting = connect(
        command,
        cwd=cwd,
        env=env,
        policy=policy,
        files=files,
        terminals=terminals,
        elicit=elicit,
        on_stderr=on_stderr,
        record=record,
        name=name,
        start_timeout_s=start_timeout_s,
    )
    with _entered(connecting) as agent:
        yield agent


@contextmanager
def connect_url_sync(
    url: str,
    *,
    token: str | None = None,
    headers: Mapping[str, str] | None = None,
    transport: TransportChoice = "auto",
    tls: ssl.SSLContext | None = None,
    policy: Policy | None = None,
    files: Literal["read", "write"] | Provision | None = None,
    terminals: bool | Provision = False,
    elicit: Elicit | None = None,
    record: StrPath | None = None,
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

    def fork(self, session: "SyncSession | str", cwd: StrPath | None = None) -> "SyncSession":
        """Open a copy of a session."""
        return self._wrap(self.agent.fork(session if isinstance(session, str) else session.session, cwd))

    def list_sessions(self, cwd: StrPath | None = None) -> Iterator[v1.SessionInfo]:
        """Yield the agent's sessions."""
        listing = self.agent.list_sessions(cwd)
        while (info := self._loop.run(_next(listing))) is not None:
            yield info

    def close(self, session: "SyncSession | str") -> None:
        """Let the agent put a session away."""
        self._loop.run(self.agent.close(session if isinstance(session, str) else session.session))

    def delete(self, session: "SyncSession | str") -> None:
        """Let the agent forget a session."""
        self._loop.run(self.agent.delete(session if isinstance(session, str) else session.session))

    def authenticate(self, method_id: str) -> None:
        """Log in."""
        self._loop.run(self.agent.authenticate(method_id))

    def logout(self) -> None:
        """Log out."""
        self._loop.run(self.agent.logout())

    def _wrap(self, opening: Coroutine[Any, Any, Session]) -> "SyncSession":
        return SyncSession(self._loop, self._loop.run(opening))


class SyncSession:
    """A `Session` whose methods wait; `session`, the one behind it, has its state."""

    def __init__(self, loop: LoopThread, session: Session) -> None:
        self.session = session
        self.id = session.id
        self._loop = loop

    def prompt(self, prompt: Prompt) -> Generator[Event]:
        """Send a prompt and yield the events of the turn; a reader who stops cancels it."""
        turn = self._loop.run(self._open(prompt))
        try:
            while events := self._loop.run(turn.take()):
                yield from events
        finally:
            self._loop.run(turn.aclose())

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


async def _next(listing: AsyncGenerator[v1.SessionInfo]) -> v1.SessionInfo | None:
    return await anext(listing, None)
