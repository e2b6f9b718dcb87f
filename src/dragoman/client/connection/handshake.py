"""The `initialize` exchange with an agent, and the errors for a program that turns out not to be an agent."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Literal, Protocol

import msgspec

from dragoman import __version__
from dragoman.client.agent import AgentConnection
from dragoman.client.connection.link import Link
from dragoman.client.permission.policy import Policy
from dragoman.client.permission.questions import AgentQuestions
from dragoman.client.problem import ConnectError, WrongVersionError
from dragoman.client.services.elicitation import ElicitationHandler, answer_with
from dragoman.client.services.functions import FunctionHost
from dragoman.client.sessions.sessions import ClientRoutes, Sessions
from dragoman.errors import ConnectionClosedError, InvalidResultError, RemoteError
from dragoman.mcp.serving.over_acp import AcpFunctionServers
from dragoman.protocol import v1
from dragoman.protocol.connection import Connection, Routes
from dragoman.protocol.methods import AUTH_STATUS_UPDATE, ELICITATION_CREATE, INITIALIZE, SESSION_REQUEST_PERMISSION
from dragoman.protocol.negotiation import AskingTransport, speaks_v2
from dragoman.telemetry.setup import start_loading
from dragoman.wire import LayeredTransport, Malformed, Oversized, Transport, parse

PROTOCOL_VERSION = 1

START_TIMEOUT_S = 60.0
"""From the start of an agent to its answer. The slowest agents need three seconds, but a download takes far longer."""


MAX_LINES = 20
MAX_LINE_CHARACTERS = 200


class WireObserver(Protocol):
    """Receives every line of a conversation as it passes."""

    def sent(self, lines: bytes | bytearray | memoryview) -> None:
        """Receive the lines that were sent to the agent, each with its newline."""
        ...

    def received(self, lines: Sequence[bytes | Oversized]) -> None:
        """Receive the lines that the agent sent."""
        ...


class WatchedTransport(LayeredTransport):
    """A transport that passes its lines to observers.

    Until the agent has answered `initialize`, it also keeps the lines that are not JSON-RPC, for the error message.
    """

    def __init__(self, transport: Transport, watches: Sequence[WireObserver] = ()) -> None:
        super().__init__(transport)
        self.printed: list[str] = []
        self.link: Link | None = None
        """The link, set once the agent has answered. It counts the bytes of each read."""
        self._watches = watches

    def lines_received(self, lines: Sequence[bytes | Oversized]) -> None:
        """Pass received lines to the observers and to the connection."""
        for watch in self._watches:
            watch.received(lines)
        if self.link is None:
            self._keep_printed(lines)
        else:
            self.link.unclaimed_bytes = sum(len(line) for line in lines if isinstance(line, bytes))
        self._receiver.lines_received(lines)

    def write(self, lines: bytes | bytearray | memoryview) -> None:
        for watch in self._watches:
            watch.sent(lines)
        self._transport.write(lines)

    def _keep_printed(self, lines: Sequence[bytes | Oversized]) -> None:
        for line in lines:
            if len(self.printed) < MAX_LINES and isinstance(line, bytes) and isinstance(parse(line), Malformed):
                self.printed.append(line.decode(errors="replace").strip()[:MAX_LINE_CHARACTERS])


class ClientService(Protocol):
    """A service of the client for its agent, such as files or terminals."""

    def advertise(self, capabilities: v1.ClientCapabilities) -> v1.ClientCapabilities:
        """Return the capabilities with those of this service."""
        ...

    def install(self, routes: Routes, sessions: Sessions, questions: AgentQuestions) -> None:
        """Add the handlers of its methods."""
        ...


class AgentEndpoint(Protocol):
    """A program or URL that should be an agent, with the errors for one that is not."""

    @property
    def command(self) -> Sequence[str]:
        """The words of the command, or the URL as the only word."""
        ...

    def timeout_error(self, timeout_s: float) -> ConnectError:
        """Return the error for an answer that did not come in time."""
        ...

    def not_an_agent_error(self, problem: str) -> ConnectError:
        """Return the error for an answer that breaks the protocol."""
        ...

    def closed_error(self, end: ConnectionClosedError) -> ConnectError:
        """Return the error for a connection that closed before the first answer."""
        ...


class OfferedServices:
    """The services that the agent can use: permission requests, forms, files and terminals. `stack` closes them."""

    def __init__(self, policy: Policy, elicit: ElicitationHandler | None, stack: AsyncExitStack) -> None:
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
        self._questions = AgentQuestions(self.sessions, policy, None if elicit is None else answer_with(elicit))
        self.routes.on_request(SESSION_REQUEST_PERMISSION, self._questions.permission)
        if elicit is not None:
            self.routes.on_request(ELICITATION_CREATE, self._questions.elicitation)
            elicitation = v1.ElicitationCapabilities(
                form=v1.ElicitationFormCapabilities(), url=v1.ElicitationUrlCapabilities()
            )
            self.capabilities = msgspec.structs.replace(self.capabilities, elicitation=elicitation)

    def provide(self, files: Literal["read", "write"] | ClientService | None, terminals: bool | ClientService) -> None:
        """Add files and terminals, if requested."""
        if isinstance(files, str):
            from dragoman.client.services.files import ProvidedFiles

            files = ProvidedFiles(write=files == "write", policy=self._policy)
        for service in (files, self._terminals() if terminals is True else terminals):
            if service:
                self._provides = True
                self.capabilities = service.advertise(self.capabilities)
                service.install(self.routes, self.sessions, self._questions)

    def _terminals(self) -> ClientService:
        from dragoman.client.services.terminals import ProvidedTerminals

        terminals = ProvidedTerminals()
        self.sessions.on_end.append(terminals.end_session)
        self._stack.push_async_callback(terminals.close)
        return terminals

    async def initialize(
        self, transport: WatchedTransport, endpoint: AgentEndpoint, name: str, timeout_s: float, newest: Literal[1, 2]
    ) -> AgentConnection:
        """Open the connection until the stack is left, and exchange capabilities. Raises ConnectError.

        `newest` is the newest version of ACP to request. Version 2 has no files and terminals, so a client that
        provides them requests version 1.
        """
        wants_v2 = newest == 2 and not self._provides and speaks_v2()
        spoken = AskingTransport(transport) if wants_v2 else None
        connection = Connection(spoken or transport, self.routes)
        link = Link(connection, endpoint.command)
        self.routes.on_notification(AUTH_STATUS_UPDATE, link.set_auth)
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
        start_loading(f"{name}-client")
        transport.link = link
        return AgentConnection(link, self.sessions, functions, answer, spoken.version if spoken else PROTOCOL_VERSION)


async def _initialize(
    link: Link, request: v1.InitializeRequest, endpoint: AgentEndpoint, timeout_s: float
) -> v1.InitializeResponse:
    """Send `initialize`, and translate every failure into a ConnectError: the program may not be an agent."""
    try:
        async with asyncio.timeout(timeout_s):
            answer = await link.call(INITIALIZE, request)
    except TimeoutError:
        raise endpoint.timeout_error(timeout_s) from None
    except ConnectionClosedError as end:
        raise endpoint.closed_error(end) from end
    except RemoteError as error:
        raise endpoint.not_an_agent_error(f"refused to start: {error.text}") from error
    except InvalidResultError as error:
        raise endpoint.not_an_agent_error(f"answered, but {error}") from error
    if answer.protocol_version != request.protocol_version:
        raise WrongVersionError(endpoint.command[0], request.protocol_version, answer.protocol_version)
    return answer
