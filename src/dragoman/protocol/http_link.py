"""HTTP to the place of an agent: HTTP/2 where it is spoken, cookies, and foreign errors made ours.

httpx2 does the work, with two limits. On one HTTP/2 connection a long event stream keeps the others from seeing what
has come for them until something comes for itself, so each has a connection of its own; the posts, which go one after
the other, share one. And for http:// it has to be told which version to speak: we find out by asking for HTTP/2.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from http.cookiejar import CookieJar
from types import TracebackType
from typing import Self
from urllib.request import getproxies, proxy_bypass

import httpx2
import msgspec

from dragoman.errors import DragomanError
from dragoman.library_logs import unlogged
from dragoman.protocol.address import Address, explain_os_error
from dragoman.wire.websocket import MAX_FRAME_BYTES

CONNECT_TIMEOUT_S = 15.0
"""As long as browsers try, roughly; an address that does not answer at all is mostly a wrong one."""

POST_TIMEOUT_S = 60.0
"""A post is answered at once, before its work is done; the rest is for large messages and slow networks."""

PROBE_TIMEOUT_S = 3.0
"""For a server to show that it speaks HTTP/2, which its first frame tells."""

KEEPALIVE_S = 3.0
"""An idle connection is used again for this long: most servers close it after five, and lose a request then."""

MAX_ERROR_BYTES = 4096
"""Of a refusal, to quote from."""

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
"""The first words of HTTP/2, with empty settings."""
_SETTINGS_TYPE = 4

_KEEP_ALIVE = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)] + [
    (socket.IPPROTO_TCP, getattr(socket, name), value)
    for name, value in (("TCP_KEEPIDLE", 20), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 4))
    if hasattr(socket, name)
]
"""A network that was pulled is noticed in forty seconds."""


class LinkBroken(DragomanError):
    """The network failed; a message that `never_left` can be sent again. It stays within the transport."""

    def __init__(self, problem: str, *, never_left: bool) -> None:
        self.problem = problem
        self.never_left = never_left
        super().__init__(problem)


class PostResponse(msgspec.Struct, frozen=True):
    """The answer to a post."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpLink:
    """Sends requests to one address; use it as an async context manager."""

    def __init__(self, address: Address, tls: ssl.SSLContext | None = None) -> None:
        self.address = address
        self._tls = tls
        self._jar = CookieJar()
        self._http1 = True
        self._http2 = True

    async def __aenter__(self) -> Self:
        if not self.address.is_secure:
            self._http2 = await speaks_http2(self.address)
            self._http1 = not self._http2
        self._posts = self._make_client()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._posts.aclose()

    async def post(self, line: bytes, headers: Mapping[str, str], timeout_s: float = POST_TIMEOUT_S) -> PostResponse:
        """Send a message; raises LinkBroken, or AddressFailed when the answer is too large."""
        json = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
        with unlogged(), _translated(timeout_s):
            async with (
                asyncio.timeout(timeout_s),
                self._posts.stream("POST", self.address.url, content=line, headers=json) as response,
            ):
                limit = MAX_FRAME_BYTES if response.is_success else MAX_ERROR_BYTES
                return PostResponse(response.status_code, response.headers, await self._read(response, limit))

    async def delete(self, headers: Mapping[str, str]) -> None:
        """Let the server forget the connection; raises LinkBroken."""
        with unlogged(), _translated(CONNECT_TIMEOUT_S):
            async with self._posts.stream("DELETE", self.address.url, headers=headers):
                return

    @asynccontextmanager
    async def events(self, headers: Mapping[str, str]) -> AsyncGenerator[httpx2.EventSource]:
        """Open an event stream. Raises LinkBroken, and AddressFailed when it is refused or is no event stream."""
        accept = {"Accept": "text/event-stream", **headers}
        try:
            with unlogged(), _translated(CONNECT_TIMEOUT_S):
                async with (
                    self._make_client() as client,
                    client.stream("GET", self.address.url, headers=accept) as response,
                ):
                    await self._check_events(response)
                    _keep_alive(response)
                    yield httpx2.EventSource(response, max_event_size=MAX_FRAME_BYTES)
        except httpx2.SSEError:
            raise self.address.fail(
                f"sent an event of more than {MAX_FRAME_BYTES} bytes, the limit; let the agent send less at a time"
            ) from None

    async def _check_events(self, response: httpx2.Response) -> None:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.status_code != 200:
            raise self.address.refuse(response.status_code, await self._read(response, MAX_ERROR_BYTES))
        if kind != "text/event-stream":
            raise self.address.refuse(200, f"with {kind or 'no content type'}".encode())
        if response.headers.get("content-encoding", "identity") != "identity":
            raise self.address.fail("compresses its event stream, which was not asked for; turn that off there")

    async def _read(self, response: httpx2.Response, limit: int) -> bytes:
        """Read an answer; of a refusal only its beginning, to quote from."""
        found = bytearray()
        async for piece in response.aiter_raw():
            found += piece
            if len(found) > limit:
                if response.is_success:
                    raise self.address.fail(f"answered with more than {limit} bytes, the limit")
                break
        return bytes(found[:limit])

    def _make_client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            headers={"Accept-Encoding": "identity", **self.address.headers},
            cookies=self._jar,
            verify=self._context(),
            http1=self._http1,
            http2=self._http2,
            timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S),
            limits=httpx2.Limits(keepalive_expiry=KEEPALIVE_S),
            follow_redirects=False,
        )

    def _context(self) -> ssl.SSLContext | bool:
        if not self.address.is_secure:
            return False  # there is nothing to verify, and no redirect to follow
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls


class _translated:  # noqa: N801 -- reads as a statement, like contextlib.suppress
    """Makes a `LinkBroken` of the errors of httpx2."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s

    def __enter__(self) -> None:
        return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        match error:
            case httpx2.SSEError():
                return
            case httpx2.ConnectTimeout():
                raise LinkBroken(f"did not answer within {CONNECT_TIMEOUT_S:g} s", never_left=True) from None
            case httpx2.ConnectError():
                raise LinkBroken(f"cannot be reached: {_reason(error)}", never_left=True) from None
            case TimeoutError() | httpx2.TimeoutException():
                raise LinkBroken(f"did not answer within {self._timeout_s:g} s", never_left=False) from None
            case httpx2.InvalidURL():
                raise LinkBroken("is no URL that can be used; see that it is spelled right", never_left=False) from None
            case httpx2.HTTPError() | OSError():
                raise LinkBroken(f"broke the connection ({_reason(error)})", never_left=False) from None
            case _:
                return


def _keep_alive(response: httpx2.Response) -> None:
    """Let the system look after a stream on which nothing has to come for hours, so that a dead one is noticed."""
    stream = response.extensions.get("network_stream")
    connection = stream.get_extra_info("socket") if stream is not None else None
    if isinstance(connection, socket.socket):
        for level, option, value in _KEEP_ALIVE:
            connection.setsockopt(level, option, value)


def _reason(error: BaseException) -> str:
    """Return the cause of a foreign error, as far down as it is known."""
    cause: BaseException | None = error
    found = error
    while cause is not None:
        if isinstance(cause, OSError):
            found = cause
        cause = cause.__cause__ or cause.__context__
    return explain_os_error(found)


async def speaks_http2(address: Address) -> bool:
    """Find out whether a server without TLS speaks HTTP/2; raises AddressFailed when it cannot be reached."""
    proxy = getproxies().get("http")
    if proxy and not proxy_bypass(address.host):
        return False
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            reader, writer = await asyncio.open_connection(address.host, address.port)
    except TimeoutError:
        raise address.fail(f"did not answer within {CONNECT_TIMEOUT_S:g} s") from None
    except (OSError, UnicodeError) as error:
        raise address.fail(f"cannot be reached: {explain_os_error(error)}") from None
    try:
        async with asyncio.timeout(PROBE_TIMEOUT_S):
            writer.write(_PREFACE)
            head = await reader.readexactly(9)
        return head[3] == _SETTINGS_TYPE and head[:2] == b"\0\0"
    except (TimeoutError, EOFError, OSError):
        return False
    finally:
        writer.transport.abort()
