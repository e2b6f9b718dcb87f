"""Connecting to an agent that runs elsewhere, at a URL."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Literal

from dragoman.client.agent import RemoteAgent
from dragoman.client.check import StrPath
from dragoman.client.elicitation import Elicit
from dragoman.client.greeting import Greeting, Watch
from dragoman.client.introduction import START_TIMEOUT_S, Counter, Provision
from dragoman.client.policy import Policy, deny_all
from dragoman.client.problem import ConnectFailed
from dragoman.errors import ConnectionClosed
from dragoman.protocol.address import Address, AddressFailed
from dragoman.protocol.recorder import Recorder
from dragoman.protocol.url import TransportChoice, open_url
from dragoman.wire import Transport


@asynccontextmanager
async def connect_url(
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
    watch: Watch | None = None,
    name: str = "dragoman",
    start_timeout_s: float = START_TIMEOUT_S,
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
        counter = Counter(policy or deny_all(), elicit, stack)
        counter.provide(files, terminals)
        watches: list[Watch] = [] if watch is None else [watch]
        if record is not None:
            watches.append(stack.enter_context(Recorder(record, place.url)))
        opening = open_url(url, token=token, headers=headers, transport=transport, tls=tls)
        greeting = Greeting(await place.open(opening, start_timeout_s), watches)
        yield await counter.introduce(greeting, place, name, start_timeout_s)


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
