"""Starting an agent, and agreeing with it on how to talk."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Literal, Protocol

import msgspec

from dragoman import __version__
from dragoman.client.agent import RemoteAgent
from dragoman.client.asking import Asking
from dragoman.client.check import StrPath
from dragoman.client.elicitation import Elicit, answer_with
from dragoman.client.functions import FunctionHost
from dragoman.client.greeting import Greeting, Watch
from dragoman.client.link import Link
from dragoman.client.misshapen import ClientRoutes
from dragoman.client.policy import Policy, deny_all
from dragoman.client.problem import NotAnAgent, StartTimeout, WrongVersion
from dragoman.client.sessions import Sessions
from dragoman.client.trajectory import Recorder
from dragoman.errors import InvalidResult, ProcessDied, RemoteError
from dragoman.mcp.serving.over_acp import Inside
from dragoman.proc import EVERYTHING, Child, Supervisor
from dragoman.protocol import v1
from dragoman.protocol.connection import Connection
from dragoman.protocol.methods import ELICITATION_CREATE, INITIALIZE, SESSION_REQUEST_PERMISSION
from dragoman.protocol.routes import Routes
from dragoman.wire import StdioTransport

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


@asynccontextmanager
async def connect(
    command: Sequence[str],
    *,
    cwd: StrPath | None = None,
    env: Mapping[str, str] | None = None,
    policy: Policy | None = None,
    files: Literal["read", "write"] | Provision | None = None,
    terminals: bool | Provision = False,
    elicit: Elicit | None = None,
    on_stderr: Callable[[bytes], None] | None = None,
    record: StrPath | None = None,
    watch: Watch | None = None,
    name: str = "dragoman",
    start_timeout_s: float = START_TIMEOUT_S,
) -> AsyncGenerator[RemoteAgent]:
    """Start an agent and agree with it on how to talk; leaving stops the agent and all that it started.

    An agent is the user's own program and needs their keys and settings: it inherits the whole environment, and `env`
    comes on top. `policy` decides what it may do; without one it may do nothing that it asks for. `files` and
    `terminals` let it read or write files, and run commands, through us. `elicit` is asked what it wants to know from
    a person. `on_stderr` gets what the agent writes there, its log mostly; the end of it is kept in any case.
    `record` is a file to be made, which gets every message of both sides: `read_trajectory` reads it. `watch` sees
    every line of both sides as it passes, secrets and all.

    Raises CommandNotFound or StartError when there is nothing to start, NotAnAgent when it does not speak ACP,
    StartTimeout, WrongVersion, and NeedsLogin when it wants a login before anything else.
    """
    async with AsyncExitStack() as stack:
        counter = _Counter(policy or deny_all(), elicit, stack)
        counter.provide(files, terminals)
        watches: list[Watch] = [] if watch is None else [watch]
        if record is not None:
            watches.append(stack.enter_context(Recorder(record, *command[:1])))
        supervisor = await stack.enter_async_context(Supervisor())
        directory = None if cwd is None else os.fspath(cwd)
        child = await supervisor.start(command, cwd=directory, env=env, inherit=EVERYTHING, on_stderr=on_stderr)
        greeting = Greeting(StdioTransport(*child.take_stdio(), explain_end=child.death), watches)
        connection = Connection(greeting, counter.routes)
        link = Link(connection, command)
        stack.push_async_callback(link.settle)
        await stack.enter_async_context(connection)
        counter.inside.attach(connection)
        functions = await stack.enter_async_context(FunctionHost(counter.inside))
        request = v1.InitializeRequest(
            protocol_version=PROTOCOL_VERSION,
            client_capabilities=counter.capabilities,
            client_info=v1.Implementation(name=name, version=__version__),
        )
        answer = await _Introduction(link, child, greeting).make(request, start_timeout_s)
        link.auth_methods = answer.auth_methods
        greeting.link = link
        yield RemoteAgent(link, counter.sessions, functions, answer)


class _Counter:
    """What the agent can ask of us: its questions, and whatever else is provided; closed with `stack`."""

    def __init__(self, policy: Policy, elicit: Elicit | None, stack: AsyncExitStack) -> None:
        self.sessions = Sessions()
        self.routes = ClientRoutes(self.sessions.receive)
        self.inside = Inside()
        self.inside.register(self.routes)
        options = v1.SessionConfigOptionsCapabilities(boolean=v1.BooleanConfigOptionCapabilities())
        self.capabilities = v1.ClientCapabilities(session=v1.ClientSessionCapabilities(config_options=options))
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


class _Introduction:
    """The first exchange with what was started, which may be anything."""

    def __init__(self, link: Link, child: Child, greeting: Greeting) -> None:
        self._link = link
        self._child = child
        self._greeting = greeting
        self._command = child.command[0]

    async def make(self, request: v1.InitializeRequest, timeout_s: float) -> v1.InitializeResponse:
        try:
            async with asyncio.timeout(timeout_s):
                answer = await self._link.call(INITIALIZE, request)
        except TimeoutError:
            if self._greeting.printed:
                raise self._no_agent(f"printed what is not JSON-RPC, and nothing else, for {timeout_s:g} s") from None
            raise StartTimeout(self._command, timeout_s, stderr_tail=self._child.stderr_tail) from None
        except ProcessDied as died:
            raise self._no_agent(f"ended before it answered: {died}", died) from died
        except RemoteError as error:
            raise self._no_agent(f"refused to begin: {error.message} ({error.code})") from error
        except InvalidResult as error:
            raise self._no_agent(f"answered, but {error}") from error
        if answer.protocol_version != request.protocol_version:
            raise WrongVersion(self._command, request.protocol_version, answer.protocol_version)
        return answer

    def _no_agent(self, problem: str, died: ProcessDied | None = None) -> NotAnAgent:
        return NotAnAgent(self._command, problem, printed=self._greeting.printed, died=died)
