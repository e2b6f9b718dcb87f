"""`connect` and `connect_url`: start an agent, or reach one that runs already."""

import asyncio
import os
import shlex
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Literal

from dragoman.client.agent import RemoteAgent
from dragoman.client.capability_check import StrPath
from dragoman.client.elicitation import Elicit
from dragoman.client.handshake import START_TIMEOUT_S, OfferedServices, Provision, TrafficWatch, WatchedTransport
from dragoman.client.policy import Callback, Policy, as_policy
from dragoman.client.problem import ConnectFailed, NotAnAgent, StartTimeout
from dragoman.errors import ConnectionClosed, ProcessDied, StartError
from dragoman.proc import EVERYTHING, Child, Supervisor
from dragoman.protocol.address import Address, AddressFailed
from dragoman.protocol.recorder import Recorder
from dragoman.protocol.url import TransportChoice, open_url
from dragoman.wire import ByteReader, ByteWriter, StdioTransport, StreamTransport, Transport


@asynccontextmanager
async def connect(
    command: str | Sequence[str] | None = None,
    *,
    stream: tuple[ByteReader, ByteWriter] | None = None,
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
) -> AsyncGenerator[RemoteAgent]:
    """Start an agent and agree with it on how to talk; leaving stops the agent and all that it started.

    `command` is a list of words, or a string that is split as a shell splits it; no shell runs it. `stream` in its
    place is a pair of asyncio streams, `(reader, writer)`, to an agent that runs already: the pipes of `docker exec`,
    of ssh or of a pod. Leaving closes that stream; the process behind it is yours to end.
    An agent is the user's own program and needs their keys and settings: it inherits the whole environment, and `env`
    comes on top. `policy` decides what it may do, or is a function that does, as with `ask`; without one it may do
    nothing that it asks for. `files` and
    `terminals` let it read or write files, and run commands, through us. `elicit` is asked what it wants to know from
    a person. `on_stderr` gets what the agent writes there, its log mostly; the end of it is kept in any case.
    `record` is a file to be made, which gets every message of both sides: `read_trajectory` reads it. `watch` sees
    every line of both sides as it passes, secrets and all. `protocol_version` is the newest version of ACP to ask for:
    the agent may answer an older one, and with `files` or `terminals`, which version 2 does not have, 1 is asked for.

    Raises TypeError unless there is either a command or a stream, and for `cwd`, `env` and `on_stderr` with a stream,
    which starts nothing. Raises CommandNotFound or StartError when there is nothing to start, NotAnAgent when it does
    not speak ACP, StartTimeout, WrongVersion, and NeedsLogin when it wants a login before anything else.
    """
    _check_source(command, stream, started_with={"cwd": cwd, "env": env, "on_stderr": on_stderr})
    words = () if command is None else split_words(command)
    async with AsyncExitStack() as stack:
        services = OfferedServices(as_policy(policy), elicit, stack)
        services.provide(files, terminals)
        watches: list[TrafficWatch] = [] if watch is None else [watch]
        if record is not None:
            watches.append(stack.enter_context(Recorder(record, *words[:1])))
        if stream is not None:
            watched = WatchedTransport(StreamTransport(*stream), watches)
            yield await services.initialize(watched, _StreamedAgent(watched), name, start_timeout_s, protocol_version)
            return
        supervisor = await stack.enter_async_context(Supervisor())
        directory = None if cwd is None else os.fspath(cwd)
        child = await supervisor.start(words, cwd=directory, env=env, inherit=EVERYTHING, on_stderr=on_stderr)
        watched = WatchedTransport(StdioTransport(*child.take_stdio(), explain_end=child.death), watches)
        yield await services.initialize(watched, _StartedAgent(child, watched), name, start_timeout_s, protocol_version)


def _check_source(command: object, stream: object, *, started_with: Mapping[str, object]) -> None:
    if (command is None) == (stream is None):
        raise TypeError("connect takes either a command or a stream=(reader, writer)")
    wrong = [name for name, value in started_with.items() if value is not None]
    if stream is not None and wrong:
        raise TypeError(f"{' and '.join(wrong)} are for an agent that connect starts; a stream is there already")


class _StreamedAgent:
    """An agent at the other end of a stream that somebody else opened."""

    command = ("the agent on this stream",)

    def __init__(self, watched: WatchedTransport) -> None:
        self._transport = watched

    def is_silent(self, timeout_s: float) -> ConnectFailed:
        if self._transport.printed:
            return self.is_no_agent(f"sent what is not JSON-RPC, and nothing else, for {timeout_s:g} s")
        return StartTimeout(self.command[0], timeout_s)

    def is_no_agent(self, problem: str) -> ConnectFailed:
        return NotAnAgent(self.command[0], problem, printed=self._transport.printed)

    def is_gone(self, end: ConnectionClosed) -> ConnectFailed:
        return self.is_no_agent(f"ended before it answered: {end}")


class _StartedAgent:
    """A program that was started, which may be no agent."""

    def __init__(self, child: Child, watched: WatchedTransport) -> None:
        self.command = child.command
        self._child = child
        self._transport = watched

    def is_silent(self, timeout_s: float) -> ConnectFailed:
        if self._transport.printed:
            return self.is_no_agent(f"printed what is not JSON-RPC, and nothing else, for {timeout_s:g} s")
        return StartTimeout(self.command[0], timeout_s, stderr_tail=self._child.stderr_tail)

    def is_no_agent(self, problem: str, died: ProcessDied | None = None) -> ConnectFailed:
        return NotAnAgent(self.command[0], problem, printed=self._transport.printed, died=died)

    def is_gone(self, end: ConnectionClosed) -> ConnectFailed:
        return self.is_no_agent(f"ended before it answered: {end}", end if isinstance(end, ProcessDied) else None)


@asynccontextmanager
async def connect_url(
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
) -> AsyncGenerator[RemoteAgent]:
    """Connect to an agent at a URL, such as that of `dragoman serve`, and agree with it on how to talk.

    ws:// and wss:// are WebSockets; for http:// and https:// a WebSocket is tried, and HTTP with event streams if
    there is none. `transport` picks one of them. `token` is sent as a bearer token and shown nowhere; `headers` go
    along with every request. `tls` is for a server whose certificate an authority of your own has signed. The rest is
    as with `connect`; mind that an agent elsewhere has other files than we have.

    Raises BadAddress, ConnectFailed when there is no agent or it does not let us in, WrongVersion, and NeedsLogin when
    it wants a login before anything else; a connection that breaks later fails every call with ConnectionClosed.
    """
    place = _Elsewhere(Address.parse(url).shown)
    async with AsyncExitStack() as stack:
        services = OfferedServices(as_policy(policy), elicit, stack)
        services.provide(files, terminals)
        watches: list[TrafficWatch] = [] if watch is None else [watch]
        if record is not None:
            watches.append(stack.enter_context(Recorder(record, place.url)))
        opening = open_url(url, token=token, headers=headers, transport=transport, tls=tls)
        watched = WatchedTransport(await place.open(opening, start_timeout_s), watches)
        yield await services.initialize(watched, place, name, start_timeout_s, protocol_version)


@asynccontextmanager
async def connect_transport(
    transport: Transport,
    *,
    policy: Policy | Callback | None = None,
    files: Literal["read", "write"] | Provision | None = None,
    terminals: bool | Provision = False,
    elicit: Elicit | None = None,
    watch: TrafficWatch | None = None,
    name: str = "dragoman",
    start_timeout_s: float = START_TIMEOUT_S,
    protocol_version: Literal[1, 2] = 2,
) -> AsyncGenerator[RemoteAgent]:
    """Agree on how to talk with an agent at the other end of a transport, such as one in this process.

    The options are those of `connect`. Raises ConnectFailed, WrongVersion and NeedsLogin.
    """
    async with AsyncExitStack() as stack:
        services = OfferedServices(as_policy(policy), elicit, stack)
        services.provide(files, terminals)
        watched = WatchedTransport(transport, [] if watch is None else [watch])
        yield await services.initialize(
            watched, _Elsewhere("the agent at this transport"), name, start_timeout_s, protocol_version
        )


class _Elsewhere:
    """The place of an agent that we did not start."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.command = (url,)

    async def open(self, opening: Awaitable[Transport], timeout_s: float) -> Transport:
        try:
            async with asyncio.timeout(timeout_s):
                return await opening
        except TimeoutError:
            raise self.is_silent(timeout_s) from None
        except AddressFailed as end:
            raise self.is_gone(end) from end

    def is_silent(self, timeout_s: float) -> ConnectFailed:
        return ConnectFailed(
            self.url,
            f"did not answer within {timeout_s:g} s; see that it is the endpoint of an agent, or give connect_url a "
            "longer start_timeout_s",
        )

    def is_no_agent(self, problem: str) -> ConnectFailed:
        return ConnectFailed(self.url, f"{problem}\nsee that the URL is that of an ACP agent, such as http://host/acp")

    def is_gone(self, end: ConnectionClosed) -> ConnectFailed:
        problem = end.problem if isinstance(end, AddressFailed) else f"ended before it answered: {end}"
        return ConnectFailed(self.url, problem)


def split_words(command: str | Sequence[str]) -> Sequence[str]:
    """Return a command as its words; a string is split as a shell splits it, and no shell runs it.

    Raises StartError when a quote of it is not closed.
    """
    if not isinstance(command, str):
        return command
    try:
        return shlex.split(command)
    except ValueError as error:
        # The whole string may hold a secret: only the name of the program is told.
        name = command.split(maxsplit=1)[0]
        raise StartError(name, f"the command cannot be split into words ({error}); give it as a list") from None
