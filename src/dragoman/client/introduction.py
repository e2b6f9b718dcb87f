"""What we offer to an agent, and agreeing with it on how to talk."""

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
from dragoman.client.greeting import Greeting
from dragoman.client.link import Link
from dragoman.client.misshapen import ClientRoutes
from dragoman.client.policy import Policy
from dragoman.client.problem import ConnectFailed, WrongVersion
from dragoman.client.sessions import Sessions
from dragoman.errors import ConnectionClosed, InvalidResult, RemoteError
from dragoman.mcp.serving.over_acp import AcpFunctionServers
from dragoman.protocol import v1
from dragoman.protocol.connection import Connection
from dragoman.protocol.methods import ELICITATION_CREATE, INITIALIZE, SESSION_REQUEST_PERMISSION
from dragoman.protocol.notice import with_notices
from dragoman.protocol.routes import Routes

PROTOCOL_VERSION = 1

START_TIMEOUT_S = 60.0
"""From the start of an agent to its answer: the slowest take three seconds, one that is downloaded first far longer."""


class Provision(Protocol):
    """Something that a client does for its agent, such as files or terminals."""

    def advertise(self, capabilities: v1.ClientCapabilities) -> v1.ClientCapabilities:
        """Return the capabilities with this one among them."""
        ...

    def install(self, routes: Routes, sessions: Sessions, asking: Asking) -> None:
        """Add the handlers of its methods."""
        ...


class Place(Protocol):
    """Where an agent is, and what to say when it turns out to be none."""

    @property
    def command(self) -> Sequence[str]:
        """What it is called by."""
        ...

    def is_silent(self, timeout_s: float) -> ConnectFailed:
        """Return the error for an agent that did not answer in time."""
        ...

    def is_no_agent(self, problem: str) -> ConnectFailed:
        """Return the error for one that answered with something else."""
        ...

    def is_gone(self, end: ConnectionClosed) -> ConnectFailed:
        """Return the error for one that is gone before it answered."""
        ...


class Counter:
    """What the agent can ask of us: its questions, and whatever else is provided; closed with `stack`."""

    def __init__(self, policy: Policy, elicit: Elicit | None, stack: AsyncExitStack) -> None:
        self.sessions = Sessions()
        self.routes = ClientRoutes(self.sessions.receive)
        self.inside = AcpFunctionServers()
        self.inside.register(self.routes)
        options = v1.SessionConfigOptionsCapabilities(boolean=v1.BooleanConfigOptionCapabilities())
        session = with_notices(v1.ClientSessionCapabilities(config_options=options))
        self.capabilities = v1.ClientCapabilities(session=session)
        self._policy = policy
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
            from dragoman.client.files import Files

            files = Files(write=files == "write", policy=self._policy)
        for provision in (files, self._terminals() if terminals is True else terminals):
            if provision:
                self.capabilities = provision.advertise(self.capabilities)
                provision.install(self.routes, self.sessions, self._asking)

    def _terminals(self) -> Provision:
        from dragoman.client.terminals import Terminals

        terminals = Terminals()
        self.sessions.on_end.append(terminals.end_session)
        self._stack.push_async_callback(terminals.close)
        return terminals

    async def introduce(self, greeting: Greeting, place: Place, name: str, timeout_s: float) -> RemoteAgent:
        """Begin to talk, until the stack is left, and agree with the agent on how to; raises ConnectFailed."""
        connection = Connection(greeting, self.routes)
        link = Link(connection, place.command)
        self._stack.push_async_callback(link.settle)
        await self._stack.enter_async_context(connection)
        self.inside.attach(connection)
        functions = await self._stack.enter_async_context(FunctionHost(self.inside))
        request = v1.InitializeRequest(
            protocol_version=PROTOCOL_VERSION,
            client_capabilities=self.capabilities,
            client_info=v1.Implementation(name=name, version=__version__),
        )
        answer = await _initialize(link, request, place, timeout_s)
        link.auth_methods = answer.auth_methods
        greeting.link = link
        return RemoteAgent(link, self.sessions, functions, answer)


async def _initialize(
    link: Link, request: v1.InitializeRequest, place: Place, timeout_s: float
) -> v1.InitializeResponse:
    """Exchange the first words with whatever is there, which may be anything."""
    try:
        async with asyncio.timeout(timeout_s):
            answer = await link.call(INITIALIZE, request)
    except TimeoutError:
        raise place.is_silent(timeout_s) from None
    except ConnectionClosed as end:
        raise place.is_gone(end) from end
    except RemoteError as error:
        raise place.is_no_agent(f"refused to begin: {error.words}") from error
    except InvalidResult as error:
        raise place.is_no_agent(f"answered, but {error}") from error
    if answer.protocol_version != request.protocol_version:
        raise WrongVersion(place.command[0], request.protocol_version, answer.protocol_version)
    return answer
