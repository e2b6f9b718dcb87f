"""The stage, which starts the agent for the scenes. The scenes of a stage run one after another.

Some scenes need a fresh agent. Others continue the conversation of the previous scene, because starting an agent is
most of the cost of a check. They only continue if nothing went wrong, so that a fault is not blamed on a later scene.
"""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from dragoman import __version__
from dragoman.check.conversation import RecordedConversation
from dragoman.check.driver.client_services import ClientServices
from dragoman.check.driver.connection import AgentAnswer, AgentGoneError, ProbeConnection
from dragoman.check.driver.options import AgentOptions
from dragoman.check.driver.transport import PipeTransport, ProbeTransport, open_url
from dragoman.check.judge import AgentMemory, Judge
from dragoman.check.judge.dialect import Dialect, dialect_of
from dragoman.check.judge.message import Object, offered, part
from dragoman.check.rule import Version
from dragoman.proc import EVERYTHING, Supervisor

T = TypeVar("T")


class Knowledge:
    """Facts about the agent that all scenes of a check in one protocol version share."""

    def __init__(self, version: Version = 1, memory: AgentMemory | None = None) -> None:
        self.dialect = dialect_of(version)
        self.judges: list[Judge] = []
        self.memory = memory or AgentMemory()
        self.greeting: Object | None = None
        """The agent's response to `initialize`, once a valid one has arrived."""
        self.start_s = 0.0
        """Time from the start of the agent to its first response, when nothing else was running."""
        self.has_answered = False
        """Whether the agent has answered at all, even with another version."""
        self.is_deaf = False
        """Whether the event streams of an agent at a URL carry nothing, so that no scene can be played."""
        self.is_mute = False
        """Whether POSTs to an agent at a URL get no response, so that no HTTP scene can be played."""
        self.has_silent_sessions = False
        """Whether only the event streams of its sessions carry nothing, so that no scene can use a session."""
        self.never_idles = asyncio.Event()
        """Set once a turn has ended neither in time nor after a cancel. Scenes must not wait for other turns then."""
        self.refusal: int | None = None
        """The error with which the agent refused the version."""
        self.permission_prompt: str | None = None
        """A prompt that has led to a permission request."""
        self.has_conversed = asyncio.Event()
        """Set once the first conversation has ended, and `permission_prompt` is known if there is one."""


def is_agreed(reply: AgentAnswer, version: Version) -> bool:
    """Return whether to continue after a response to `initialize`: with our version, or one that is not a number."""
    answered = reply.fields.get("protocolVersion")
    return reply.ok and (not isinstance(answered, int) or answered == version)


class Stage:
    """Starts the agent, or connects to it, for scenes. Use it as an async context manager."""

    def __init__(self, options: AgentOptions, supervisor: Supervisor, root: Path, knowledge: Knowledge) -> None:
        self.options = options
        self.root = root.resolve()
        """Our own directory, which contains the directories of the sessions."""
        self.knowledge = knowledge
        self._supervisor = supervisor
        self._connection: ProbeConnection | None = None
        self._leaving = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._leaving.__aexit__(kind, error, trace)

    @property
    def has_process(self) -> bool:
        """Return whether the agent is our child process, which can be closed and killed."""
        return not self.options.url

    @property
    def dialect(self) -> Dialect:
        """The protocol version that the agent speaks."""
        return self.knowledge.dialect

    def offers(self, path: str) -> bool:
        """Return whether the agent advertised a capability, given by its path in version 1."""
        capabilities = part(self.knowledge.greeting or {}, self.dialect.agent_capabilities)
        return offered(capabilities, self.dialect.path(path))

    def directory(self, name: str) -> Path:
        """Make a directory for a session, with a file in it."""
        directory = self.root / name
        directory.mkdir(exist_ok=True)
        (directory / "notes.txt").write_text("first line\nsecond line\n")
        return directory

    @asynccontextmanager
    async def open(self, name: str, *, without: frozenset[str] | None = None) -> AsyncGenerator[ProbeConnection]:
        """Start the agent, or connect to it, for one conversation."""
        conversation = RecordedConversation(name)
        left_out = self.options.without if without is None else without
        services = ClientServices(self.root, left_out, self.dialect.version)
        async with self._open_transport() as transport, asyncio.TaskGroup() as tasks:
            judge = Judge(conversation, memory=self.knowledge.memory)
            judge.assume(self.dialect.version)
            connection = ProbeConnection(transport, judge, services, tasks)
            self.knowledge.judges.append(connection.judge)
            connection.record_event(f"started in {Path.cwd()}" if self.has_process else "started")
            try:
                yield connection
            finally:
                connection.stop()
                connection.judge.end()

    @asynccontextmanager
    async def greeted(self, name: str, *, without: frozenset[str] | None = None) -> AsyncGenerator[ProbeConnection]:
        """Open a conversation, agree on the version, and log in if an auth method was chosen. Raises AgentGoneError."""
        async with self.open(name, without=without) as connection:
            reply = await self.initialize(connection)
            if reply is None or not is_agreed(reply, self.dialect.version):
                raise AgentGoneError
            await self.authenticate(connection)
            yield connection

    @asynccontextmanager
    async def joined(self, name: str) -> AsyncGenerator[ProbeConnection]:
        """Continue the conversation of the previous scene, or open one for this scene and the following ones."""
        connection = self._connection
        if connection is not None and connection.is_healthy:
            connection.join(name)
        else:
            self._connection = None
            await self._leaving.aclose()
            connection = self._connection = await self._leaving.enter_async_context(self.greeted(name))
        yield connection

    async def initialize(self, connection: ProbeConnection, more: Object | None = None) -> AgentAnswer | None:
        """Send `initialize` as every client does, with additional capabilities if given."""
        capabilities = {**connection.services.capabilities, **(more or {})}
        params = self.initialize_params(self.dialect.version, capabilities)
        return await connection.request("initialize", params, self.options.start_timeout_s)

    def initialize_params(self, version: int, capabilities: Object) -> Object:
        """Return the parameters of `initialize` that request a version."""
        info = {"name": "dragoman-check", "title": "dragoman check", "version": __version__}
        who = "clientInfo" if self.dialect.version == 1 else "info"
        return {"protocolVersion": version, self.dialect.client_capabilities: capabilities, who: info}

    async def authenticate(self, connection: ProbeConnection) -> None:
        """Log in if an auth method was chosen."""
        if self.options.auth is not None:
            params = {"methodId": self.options.auth}
            await connection.request(self.dialect.login, params, self.options.turn_timeout_s)

    async def new_session(
        self, connection: ProbeConnection, name: str, servers: list[Object] | None = None
    ) -> str | None:
        """Open a session in its own directory. Return None if the agent opens none."""
        params = {"cwd": str(self.directory(name)), "mcpServers": servers or []}
        reply = await connection.request("session/new", params, self.options.turn_timeout_s)
        session_id = None if reply is None else reply.fields.get("sessionId")
        return session_id if isinstance(session_id, str) else None

    async def clean_up(self, connection: ProbeConnection, session_id: str) -> None:
        """Delete a session if the agent can, so that the check leaves nothing in its lists."""
        if self.offers("sessionCapabilities.delete"):
            await connection.request("session/delete", {"sessionId": session_id}, self.options.timeout_s)

    async def await_turn(self, awaited: Coroutine[Any, Any, T]) -> T:
        """Wait for the end of a turn. Raises AgentGoneError once another scene has found that turns never end."""
        ending = asyncio.ensure_future(awaited)
        found = asyncio.ensure_future(self.knowledge.never_idles.wait())
        try:
            await asyncio.wait((ending, found), return_when=asyncio.FIRST_COMPLETED)
        finally:
            ending.cancel()
            found.cancel()
        if not ending.done():
            raise AgentGoneError
        return ending.result()

    @asynccontextmanager
    async def _open_transport(self) -> AsyncGenerator[ProbeTransport]:
        options = self.options
        if options.url:
            async with open_url(options.url, options.token) as transport:
                yield transport
            return
        child = await self._supervisor.start(options.command, env=options.env or None, inherit=EVERYTHING)
        transport = PipeTransport(child)
        try:
            await transport.open()
            yield transport
        finally:
            await transport.close()
