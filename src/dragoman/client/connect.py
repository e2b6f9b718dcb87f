"""`connect` and `connect_url`, which start an agent or reach a running one."""

import asyncio
import os
import shlex
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Literal

from dragoman.client.agent import AgentConnection
from dragoman.client.connection.capability_check import StrPath
from dragoman.client.connection.handshake import (
    START_TIMEOUT_S,
    ClientService,
    OfferedServices,
    WatchedTransport,
    WireObserver,
)
from dragoman.client.permission.policy import Policy, PolicyCallback, as_policy
from dragoman.client.problem import ConnectError, NotAnAgentError, StartTimeoutError
from dragoman.client.services.elicitation import ElicitationHandler
from dragoman.errors import ConnectionClosedError, ProcessDiedError, StartError
from dragoman.proc import EVERYTHING, Child, Supervisor
from dragoman.protocol.address import Address, AddressError
from dragoman.protocol.url import TransportChoice, open_url
from dragoman.recording.recorder import Recorder
from dragoman.wire import ByteReader, ByteWriter, StdioTransport, StreamTransport, Transport


@asynccontextmanager
async def connect(
    command: str | Sequence[str] | None = None,
    *,
    stream: tuple[ByteReader, ByteWriter] | None = None,
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
) -> AsyncGenerator[AgentConnection]:
    """Start an agent and initialize the connection. Leaving stops the agent and all processes that it started.

    `command` is a list of words or a string. A string is split as a shell splits it, but no shell runs it. Pass
    `stream` instead to reach a running agent, such as the pipes of `docker exec`, ssh or a pod. It is a pair of asyncio
    streams, `(reader, writer)`. Leaving closes the stream, and the caller ends the process.

    The agent inherits the whole environment, because it needs the user's keys and settings. `env` adds variables.
    `policy` is a policy or a function such as `ask_user` accepts. The default denies every request for permission.
    `files` and `terminals` let the agent read or write files and run commands in this process. `elicit` answers
    the agent's forms. `on_stderr` receives the agent's stderr. Errors quote the end of stderr in any case.

    `record` is a new file for all messages of both sides. Read it with `read_trajectory`. `watch` sees every line of
    both sides, including secrets. `protocol_version` is the newest version of ACP to request, and the agent may answer
    with an older one. Version 2 has no `files` and `terminals`, so these request version 1.

    Raises TypeError unless exactly one of `command` and `stream` is given, and for `cwd`, `env` or `on_stderr` with a
    stream. Raises CommandNotFoundError or StartError if the program cannot be started, NotAnAgentError if it does not
    speak ACP, StartTimeoutError, WrongVersionError, and LoginRequiredError if `initialize` needs a login.
    """
    _check_source(command, stream, started_with={"cwd": cwd, "env": env, "on_stderr": on_stderr})
    words = () if command is None else split_words(command)
    async with AsyncExitStack() as stack:
        services = OfferedServices(as_policy(policy), elicit, stack)
        services.provide(files, terminals)
        watches: list[WireObserver] = [] if watch is None else [watch]
        if record is not None:
            watches.append(stack.enter_context(Recorder(record, *words[:1])))
        if stream is not None:
            watched = WatchedTransport(StreamTransport(*stream), watches)
            yield await services.initialize(watched, _StreamEndpoint(watched), name, start_timeout_s, protocol_version)
            return
        supervisor = await stack.enter_async_context(Supervisor())
        directory = None if cwd is None else os.fspath(cwd)
        child = await supervisor.start(words, cwd=directory, env=env, inherit=EVERYTHING, on_stderr=on_stderr)
        watched = WatchedTransport(StdioTransport.for_child(child), watches)
        yield await services.initialize(
            watched, _ChildEndpoint(child, watched), name, start_timeout_s, protocol_version
        )


def _check_source(command: object, stream: object, *, started_with: Mapping[str, object]) -> None:
    if (command is None) == (stream is None):
        raise TypeError("connect takes either a command or a stream=(reader, writer)")
    wrong = [name for name, value in started_with.items() if value is not None]
    if stream is not None and wrong:
        raise TypeError(f"{' and '.join(wrong)} cannot be used with a stream; pass them with a command")


class _StreamEndpoint:
    """An agent at the other end of a stream that the caller opened."""

    command = ("the agent on this stream",)

    def __init__(self, watched: WatchedTransport) -> None:
        self._transport = watched

    def timeout_error(self, timeout_s: float) -> ConnectError:
        if self._transport.printed:
            return self.not_an_agent_error(f"sent only output that is not JSON-RPC for {timeout_s:g} s")
        return StartTimeoutError(self.command[0], timeout_s)

    def not_an_agent_error(self, problem: str) -> ConnectError:
        return NotAnAgentError(self.command[0], problem, printed=self._transport.printed)

    def closed_error(self, end: ConnectionClosedError) -> ConnectError:
        return self.not_an_agent_error(f"ended before it answered: {end}")


class _ChildEndpoint:
    """A child process, which may turn out not to be an agent."""

    def __init__(self, child: Child, watched: WatchedTransport) -> None:
        self.command = child.command
        self._child = child
        self._transport = watched

    def timeout_error(self, timeout_s: float) -> ConnectError:
        if self._transport.printed:
            return self.not_an_agent_error(f"printed only output that is not JSON-RPC for {timeout_s:g} s")
        return StartTimeoutError(self.command[0], timeout_s, stderr_tail=self._child.stderr_tail)

    def not_an_agent_error(self, problem: str, died: ProcessDiedError | None = None) -> ConnectError:
        return NotAnAgentError(self.command[0], problem, printed=self._transport.printed, died=died)

    def closed_error(self, end: ConnectionClosedError) -> ConnectError:
        died = end if isinstance(end, ProcessDiedError) else None
        return self.not_an_agent_error(f"ended before it answered: {end}", died)


@asynccontextmanager
async def connect_url(
    url: str,
    *,
    token: str | None = None,
    headers: Mapping[str, str] | None = None,
    transport: TransportChoice = "auto",
    tls: ssl.SSLContext | None = None,
    policy: Policy | PolicyCallback | None = None,
    files: Literal["read", "write"] | ClientService | None = None,
    terminals: bool | ClientService = False,
    elicit: ElicitationHandler | None = None,
    record: StrPath | None = None,
    watch: WireObserver | None = None,
    name: str = "dragoman",
    start_timeout_s: float = START_TIMEOUT_S,
    protocol_version: Literal[1, 2] = 2,
) -> AsyncGenerator[AgentConnection]:
    """Connect to an agent at a URL, such as a bridge's, and initialize the connection.

    ws:// and wss:// use a WebSocket. http:// and https:// try a WebSocket first, then HTTP with event streams.
    `transport` selects one of the two. `token` is sent as a bearer token and never shown. `headers` are added to every
    request. `tls` is for a certificate signed by a private authority. The other options are those of `connect`. An
    agent on another machine has other files than this process.

    Raises InvalidAddressError, WrongVersionError, ConnectError if no agent answers or it refuses the connection, and
    LoginRequiredError if `initialize` needs a login. If the connection breaks later, every call raises
    ConnectionClosedError.
    """
    endpoint = _RemoteEndpoint(Address.parse(url).shown)
    async with AsyncExitStack() as stack:
        services = OfferedServices(as_policy(policy), elicit, stack)
        services.provide(files, terminals)
        watches: list[WireObserver] = [] if watch is None else [watch]
        if record is not None:
            watches.append(stack.enter_context(Recorder(record, endpoint.url)))
        opening = open_url(url, token=token, headers=headers, transport=transport, tls=tls)
        watched = WatchedTransport(await endpoint.open(opening, start_timeout_s), watches)
        yield await services.initialize(watched, endpoint, name, start_timeout_s, protocol_version)


@asynccontextmanager
async def connect_transport(
    transport: Transport,
    *,
    policy: Policy | PolicyCallback | None = None,
    files: Literal["read", "write"] | ClientService | None = None,
    terminals: bool | ClientService = False,
    elicit: ElicitationHandler | None = None,
    watch: WireObserver | None = None,
    name: str = "dragoman",
    start_timeout_s: float = START_TIMEOUT_S,
    protocol_version: Literal[1, 2] = 2,
) -> AsyncGenerator[AgentConnection]:
    """Initialize the connection to an agent at the other end of a transport, such as one in this process.

    The options are those of `connect`. Raises ConnectError, WrongVersionError and LoginRequiredError.
    """
    async with AsyncExitStack() as stack:
        services = OfferedServices(as_policy(policy), elicit, stack)
        services.provide(files, terminals)
        watched = WatchedTransport(transport, [] if watch is None else [watch])
        yield await services.initialize(
            watched, _RemoteEndpoint("the agent at this transport"), name, start_timeout_s, protocol_version
        )


class _RemoteEndpoint:
    """An agent that this process did not start, named by its URL."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.command = (url,)

    async def open(self, opening: Awaitable[Transport], timeout_s: float) -> Transport:
        try:
            async with asyncio.timeout(timeout_s):
                return await opening
        except TimeoutError:
            raise self.timeout_error(timeout_s) from None
        except AddressError as end:
            raise self.closed_error(end) from end

    def timeout_error(self, timeout_s: float) -> ConnectError:
        return ConnectError(
            self.url,
            f"did not answer within {timeout_s:g} s; check that it is the endpoint of an agent, or pass connect_url a "
            "longer start_timeout_s",
        )

    def not_an_agent_error(self, problem: str) -> ConnectError:
        return ConnectError(
            self.url, f"{problem}\ncheck that the URL is the address of an ACP agent, such as http://host/acp"
        )

    def closed_error(self, end: ConnectionClosedError) -> ConnectError:
        problem = end.problem if isinstance(end, AddressError) else f"ended before it answered: {end}"
        return ConnectError(self.url, problem)


def split_words(command: str | Sequence[str]) -> Sequence[str]:
    """Return a command as a list of words. Split a string as a shell does, but run no shell.

    Raises StartError for an unclosed quote.
    """
    if not isinstance(command, str):
        return command
    try:
        return shlex.split(command)
    except ValueError as error:
        # The command may contain a secret, so the error names only the program.
        name = command.split(maxsplit=1)[0]
        raise StartError(name, f"the command cannot be split into words ({error}); pass it as a list") from None
