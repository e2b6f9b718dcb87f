"""The stage: it starts the agent for the scenes, which play one after the other.

Some scenes need a fresh agent. Others go on in the conversation of the scene before, because the start of an agent is
most of the cost of a check. They do so only if nothing was wrong there: a fault must not be blamed on a later scene.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from dragoman import __version__
from dragoman.check.conversation import RecordedConversation
from dragoman.check.driver.client_services import ClientServices
from dragoman.check.driver.connection import AgentAnswer, AgentGone, ProbeConnection
from dragoman.check.driver.options import AgentOptions
from dragoman.check.driver.transport import PipeTransport, ProbeTransport, open_url
from dragoman.check.judge import Judge, Memory
from dragoman.check.judge.dialect import Dialect, dialect_of
from dragoman.check.judge.message import Object, offered, part
from dragoman.check.rule import Version
from dragoman.proc import EVERYTHING, Supervisor


class Knowledge:
    """The facts about the agent that all scenes of a check in one version of the protocol share."""

    def __init__(self, version: Version = 1, memory: Memory | None = None) -> None:
        self.dialect = dialect_of(version)
        self.judges: list[Judge] = []
        self.memory = memory or Memory()
        self.greeting: Object | None = None
        """The agent's answer to `initialize`, once it has given a good one."""
        self.start_s = 0.0
        """The time from the start of the agent to its first answer, when nothing else was running."""
        self.has_answered = False
        """Whether it has given any answer, even with another version."""
        self.refusal: int | None = None
        """The error with which it refused the version."""
        self.permission_prompt: str | None = None
        """A prompt that has led to a permission request."""
        self.has_conversed = asyncio.Event()
        """Set once the first conversation is over, and `permission_prompt` is known if there is one."""


def is_agreed(reply: AgentAnswer, version: Version) -> bool:
    """Tell whether to go on after an answer to `initialize`: with our version, or with one that is no number."""
    given = reply.fields.get("protocolVersion")
    return reply.ok and (not isinstance(given, int) or given == version)


class Stage:
    """Starts the agent, or connects to it, for scenes; an async context manager."""

    def __init__(self, options: AgentOptions, supervisor: Supervisor, root: Path, knowledge: Knowledge) -> None:
        self.options = options
        self.root = root.resolve()
        """Our own directory, with the directories of the sessions in it."""
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
        """Tell whether the agent is a process of ours, that can be closed and killed."""
        return not self.options.url

    @property
    def dialect(self) -> Dialect:
        """Return the version of the protocol that is spoken with the agent."""
        return self.knowledge.dialect

    def offers(self, path: str) -> bool:
        """Tell whether the agent has advertised a capability, given by its path in version 1."""
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
            connection.note_event(f"started in {Path.cwd()}" if self.has_process else "started")
            try:
                yield connection
            finally:
                connection.stop()
                connection.judge.end()

    @asynccontextmanager
    async def greeted(self, name: str, *, without: frozenset[str] | None = None) -> AsyncGenerator[ProbeConnection]:
        """Open a conversation, agree on the version, and log in if an auth method was chosen. Raises AgentGone."""
        async with self.open(name, without=without) as connection:
            reply = await self.initialize(connection)
            if reply is None or not is_agreed(reply, self.dialect.version):
                raise AgentGone
            await self.authenticate(connection)
            yield connection

    @asynccontextmanager
    async def joined(self, name: str) -> AsyncGenerator[ProbeConnection]:
        """Go on in the conversation of the scene before, or open one for this scene and those that follow."""
        connection = self._connection
        if connection is not None and connection.is_well:
            connection.join(name)
        else:
            self._connection = None
            await self._leaving.aclose()
            connection = self._connection = await self._leaving.enter_async_context(self.greeted(name))
        yield connection

    async def initialize(self, connection: ProbeConnection, more: Object | None = None) -> AgentAnswer | None:
        """Send `initialize` as every client does, with more capabilities if given."""
        capabilities = {**connection.services.capabilities, **(more or {})}
        params = self.hello(self.dialect.version, capabilities)
        return await connection.request("initialize", params, self.options.start_timeout_s)

    def hello(self, version: int, capabilities: Object) -> Object:
        """Return the parameters of `initialize`, which asks for a version."""
        info = {"name": "dragoman-check", "title": "dragoman check", "version": __version__}
        who = "clientInfo" if self.dialect.version == 1 else "info"
        return {"protocolVersion": version, self.dialect.client_capabilities: capabilities, who: info}

    async def authenticate(self, connection: ProbeConnection) -> None:
        """Log in, if an auth method was chosen."""
        if self.options.auth is not None:
            params = {"methodId": self.options.auth}
            await connection.request(self.dialect.login, params, self.options.turn_timeout_s)

    async def new_session(
        self, connection: ProbeConnection, name: str, servers: list[Object] | None = None
    ) -> str | None:
        """Open a session in a directory of its own; None when the agent gives none."""
        params = {"cwd": str(self.directory(name)), "mcpServers": servers or []}
        reply = await connection.request("session/new", params, self.options.turn_timeout_s)
        session_id = None if reply is None else reply.fields.get("sessionId")
        return session_id if isinstance(session_id, str) else None

    async def tidy(self, connection: ProbeConnection, session_id: str) -> None:
        """Delete a session if the agent can, so that the check leaves nothing in its lists."""
        if self.offers("sessionCapabilities.delete"):
            await connection.request("session/delete", {"sessionId": session_id}, self.options.timeout_s)

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
