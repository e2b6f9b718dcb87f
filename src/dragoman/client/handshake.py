"""The first exchange with an agent: our offers, its answer to `initialize`, the errors for a program that is none."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Literal, Protocol

import msgspec

from dragoman import __version__
from dragoman.client.agent import RemoteAgent
from dragoman.client.asking import Asking
from dragoman.client.elicitation import Elicit, answer_with
from dragoman.client.functions import FunctionHost
from dragoman.client.link import Link
from dragoman.client.policy import Policy
from dragoman.client.problem import ConnectFailed, WrongVersion
from dragoman.client.sessions import ClientRoutes, Sessions
from dragoman.errors import ConnectionClosed, InvalidResult, RemoteError
from dragoman.mcp.serving.over_acp import AcpFunctionServers
from dragoman.protocol import v1
from dragoman.protocol.connection import Connection, Routes
from dragoman.protocol.methods import AUTH_STATUS_UPDATE, ELICITATION_CREATE, INITIALIZE, SESSION_REQUEST_PERMISSION
from dragoman.protocol.negotiation import AskingTransport, speaks_v2
from dragoman.telemetry.setup import begin_start
from dragoman.wire import LayeredTransport, Malformed, Oversized, Transport, parse

PROTOCOL_VERSION = 1

START_TIMEOUT_S = 60.0
"""From the start of an agent to its answer: the slowest take three seconds, a download before that far longer."""


MAX_LINES = 20
MAX_LINE_CHARACTERS = 200


class TrafficWatch(Protocol):
    """Gets every line of a conversation as it passes."""

    def sent(self, lines: bytes | bytearray | memoryview) -> None:
        """Take lines to the agent, each with its newline."""
        ...

    def received(self, lines: Sequence[bytes | Oversized]) -> None:
        """Take lines from the agent."""
        ...


class WatchedTransport(LayeredTransport):
    """A transport that shows its lines to others, and keeps lines that are no messages until the agent has answered."""

    def __init__(self, transport: Transport, watches: Sequence[TrafficWatch] = ()) -> None:
        super().__init__(transport)
        self.printed: list[str] = []
        self.link: Link | None = None
        """The link whose reads are counted, once the agent has answered."""
        self._watches = watches

    def lines_received(self, lines: Sequence[bytes | Oversized]) -> None:
        """Take the next lines, from the transport."""
        for watch in self._watches:
            watch.received(lines)
        if self.link is None:
            self._look(lines)
        else:
            self.link.reads += 1
        self._receiver.lines_received(lines)

    def write(self, lines: bytes | bytearray | memoryview) -> None:
        for watch in self._watches:
            watch.sent(lines)
        self._transport.write(lines)

    def _look(self, lines: Sequence[bytes | Oversized]) -> None:
        for line in lines:
            if len(self.printed) < MAX_LINES and isinstance(line, bytes) and isinstance(parse(line), Malformed):
                self.printed.append(line.decode(errors="replace").strip()[:MAX_LINE_CHARACTERS])


class Provision(Protocol):
    """A service of the client for its agent, such as files or terminals."""

    def advertise(self, capabilities: v1.ClientCapabilities) -> v1.ClientCapabilities:
        """Return the capabilities with those of this service."""
        ...

    def install(self, routes: Routes, sessions: Sessions, asking: Asking) -> None:
        """Add the handlers of its methods."""
        ...


class AgentEndpoint(Protocol):
    """A program or an address that should be an agent, with the errors for one that is none."""

    @property
    def command(self) -> Sequence[str]:
        """The command or the address, as words."""
        ...

    def is_silent(self, timeout_s: float) -> ConnectFailed:
        """Return the error for no answer in time."""
        ...

    def is_no_agent(self, problem: str) -> ConnectFailed:
        """Return the error for an answer that no agent gives."""
        ...

    def is_gone(self, end: ConnectionClosed) -> ConnectFailed:
        """Return the error for an end before the first answer."""
        ...


class OfferedServices:
    """The services that the agent can use: answers to its questions, files, terminals; closed with `stack`."""

    def __init__(self, policy: Policy, elicit: Elicit | None, stack: AsyncExitStack) -> None:
        self.sessions = Sessions()
        self.routes = ClientRoutes(self.sessions.receive)
        self.function_servers = AcpFunctionServers()
        self.function_servers.register(self.routes)
        options = v1.SessionConfigOptionsCapabilities(boolean=v1.BooleanConfigOptionCapabilities())
        session = v1.ClientSessionCapabilities(
            config_options=options, notices=v1.NoticeCapabilities(), compaction=v1.CompactionCapabilities()
        )
        self.capabilities = v1.ClientCapabilities(session=session, subagents=v1.SubagentCapabilities())
        self._policy = policy
        self._provides = False
        self._stack = stack
        self._asking = Asking(self.sessions, policy, None if elicit is None else answer_with(elicit))
        self.routes.on_request(SESSION_REQUEST_PERMISSION, self._asking.permission)
        if elicit is not None:
            self.routes.on_request(ELICITATION_CREATE, self._asking.elicitation)
            elicitation = v1.ElicitationCapabilities(
                form=v1.ElicitationFormCapabilities(), url=v1.ElicitationUrlCapabilities()
            )
            self.capabilities = msgspec.structs.replace(self.capabilities, elicitation=elicitation)

    def provide(self, files: Literal["read", "write"] | Provision | None, terminals: bool | Provision) -> None:
        """Add files and terminals, if there are to be any."""
        if isinstance(files, str):
            from dragoman.client.files import ProvidedFiles

            files = ProvidedFiles(write=files == "write", policy=self._policy)
        for provision in (files, self._terminals() if terminals is True else terminals):
            if provision:
                self._provides = True
                self.capabilities = provision.advertise(self.capabilities)
                provision.install(self.routes, self.sessions, self._asking)

    def _terminals(self) -> Provision:
        from dragoman.client.terminals import ProvidedTerminals

        terminals = ProvidedTerminals()
        self.sessions.on_end.append(terminals.end_session)
        self._stack.push_async_callback(terminals.close)
        return terminals

    async def initialize(
        self, transport: WatchedTransport, endpoint: AgentEndpoint, name: str, timeout_s: float, newest: Literal[1, 2]
    ) -> RemoteAgent:
        """Open the connection, until the stack is left, and agree on its capabilities; raises ConnectFailed.

        `newest` is the version to ask for. Files and terminals are of version 1 alone, and whoever offers them means
        them to be used.
        """
        asks_for_v2 = newest == 2 and not self._provides and speaks_v2()
        spoken = AskingTransport(transport) if asks_for_v2 else None
        connection = Connection(spoken or transport, self.routes)
        link = Link(connection, endpoint.command)
        self.routes.on_notification(AUTH_STATUS_UPDATE, link.note_auth)
        self._stack.push_async_callback(link.settle)
        await self._stack.enter_async_context(connection)
        self.function_servers.attach(connection)
        functions = await self._stack.enter_async_context(FunctionHost(self.function_servers))
        request = v1.InitializeRequest(
            protocol_version=PROTOCOL_VERSION,
            client_capabilities=self.capabilities,
            client_info=v1.Implementation(name=name, version=__version__),
        )
        answer = await _initialize(link, request, endpoint, timeout_s)
        link.auth_methods = answer.auth_methods
        link.agent_name = answer.agent_info.name if answer.agent_info else endpoint.command[0]
        begin_start(f"{name}-client")
        transport.link = link
        return RemoteAgent(link, self.sessions, functions, answer, spoken.version if spoken else PROTOCOL_VERSION)


async def _initialize(
    link: Link, request: v1.InitializeRequest, endpoint: AgentEndpoint, timeout_s: float
) -> v1.InitializeResponse:
    """Send `initialize` to a program that may be anything."""
    try:
        async with asyncio.timeout(timeout_s):
            answer = await link.call(INITIALIZE, request)
    except TimeoutError:
        raise endpoint.is_silent(timeout_s) from None
    except ConnectionClosed as end:
        raise endpoint.is_gone(end) from end
    except RemoteError as error:
        raise endpoint.is_no_agent(f"refused to begin: {error.words}") from error
    except InvalidResult as error:
        raise endpoint.is_no_agent(f"answered, but {error}") from error
    if answer.protocol_version != request.protocol_version:
        raise WrongVersion(endpoint.command[0], request.protocol_version, answer.protocol_version)
    return answer
