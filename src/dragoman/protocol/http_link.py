"""HTTP to an agent: HTTP/2 if the server supports it, cookies, and translated errors.

httpx2 has two limits that this module works around. On one HTTP/2 connection, a long event stream delays the events of
the others until it receives an event itself. Each stream therefore has its own connection. The POSTs share one, because
they are sent one after another. For http:// URLs httpx2 needs the HTTP version in advance, so we probe for HTTP/2.
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
from dragoman.wire.framing import MAX_FRAME_BYTES

CONNECT_TIMEOUT_S = 15.0
"""About as long as browsers try. An address that does not answer at all is usually wrong."""

POST_TIMEOUT_S = 60.0
"""A POST is answered before its work is done. The rest is for large messages and slow networks."""

PROBE_TIMEOUT_S = 3.0
"""How long the server may need to show that it speaks HTTP/2. Its first frame does."""

KEEPALIVE_S = 3.0
"""How long to reuse an idle connection. Most servers close it after five seconds, and then lose a request."""

MAX_ERROR_BYTES = 4096
"""Maximum number of bytes read from a refusal, to quote from."""

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
"""The connection preface of HTTP/2, with empty settings."""
_SETTINGS_TYPE = 4

_KEEP_ALIVE = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)] + [
    (socket.IPPROTO_TCP, getattr(socket, name), value)
    for name, value in (("TCP_KEEPIDLE", 20), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 4))
    if hasattr(socket, name)
]
"""Keep-alive settings that detect a disconnected network within forty seconds."""


class LinkError(DragomanError):
    """The network failed. A message that `was_not_sent` can be sent again. Only used inside the transport."""

    def __init__(self, problem: str, *, was_not_sent: bool) -> None:
        self.problem = problem
        self.was_not_sent = was_not_sent
        super().__init__(problem)


class PostResponse(msgspec.Struct, frozen=True):
    """The response to a POST."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpLink:
    """Sends requests to one address. Use it as an async context manager."""

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
        """Send a message. Raises LinkError, or AddressError if the response is too large."""
        json = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
        with unlogged(), _translated(timeout_s):
            async with (
                asyncio.timeout(timeout_s),
                self._posts.stream("POST", self.address.url, content=line, headers=json) as response,
            ):
                limit = MAX_FRAME_BYTES if response.is_success else MAX_ERROR_BYTES
                return PostResponse(response.status_code, response.headers, await self._read(response, limit))

    async def delete(self, headers: Mapping[str, str]) -> None:
        """Ask the server to close the connection. Raises LinkError."""
        with unlogged(), _translated(CONNECT_TIMEOUT_S):
            async with self._posts.stream("DELETE", self.address.url, headers=headers):
                return

    @asynccontextmanager
    async def events(self, headers: Mapping[str, str]) -> AsyncGenerator[httpx2.EventSource]:
        """Open an event stream. Raises LinkError, and AddressError if it is refused or is not an event stream."""
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
                f"sent an event longer than the limit of {MAX_FRAME_BYTES} bytes; the agent must send smaller messages"
            ) from None

    async def _check_events(self, response: httpx2.Response) -> None:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.status_code != 200:
            raise self.address.refuse(response.status_code, await self._read(response, MAX_ERROR_BYTES))
        if kind != "text/event-stream":
            raise self.address.refuse(200, f"with {kind or 'no content type'}".encode())
        if response.headers.get("content-encoding", "identity") != "identity":
            raise self.address.fail(
                "compresses its event stream, which is not supported; turn compression off at the agent"
            )

    async def _read(self, response: httpx2.Response, limit: int) -> bytes:
        """Read a response. Of a refusal read only the beginning, to quote from."""
        found = bytearray()
        async for piece in response.aiter_raw():
            found += piece
            if len(found) > limit:
                if response.is_success:
                    raise self.address.fail(f"sent an answer longer than the limit of {limit} bytes")
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
            return False  # there is nothing to verify, and redirects are not followed
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls


class _translated:  # noqa: N801 -- reads as a statement, like contextlib.suppress
    """Translates httpx2 errors into `LinkError`."""

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
                raise LinkError(f"did not answer within {CONNECT_TIMEOUT_S:g} s", was_not_sent=True) from None
            case httpx2.ConnectError():
                raise LinkError(f"cannot be reached: {_reason(error)}", was_not_sent=True) from None
            case TimeoutError() | httpx2.TimeoutException():
                raise LinkError(f"did not answer within {self._timeout_s:g} s", was_not_sent=False) from None
            case httpx2.InvalidURL():
                raise LinkError("is not a valid URL; check its spelling", was_not_sent=False) from None
            case httpx2.HTTPError() | OSError():
                raise LinkError(f"closed the connection ({_reason(error)})", was_not_sent=False) from None
            case _:
                return


def _keep_alive(response: httpx2.Response) -> None:
    """Turn on TCP keep-alive, so that a dead stream is noticed even if no event is due for hours."""
    stream = response.extensions.get("network_stream")
    connection = stream.get_extra_info("socket") if stream is not None else None
    if isinstance(connection, socket.socket):
        for level, option, value in _KEEP_ALIVE:
            connection.setsockopt(level, option, value)


def _reason(error: BaseException) -> str:
    """Return the innermost known cause of a foreign error."""
    cause: BaseException | None = error
    found = error
    while cause is not None:
        if isinstance(cause, OSError):
            found = cause
        cause = cause.__cause__ or cause.__context__
    return explain_os_error(found)


async def speaks_http2(address: Address) -> bool:
    """Return whether a server without TLS speaks HTTP/2. Raises AddressError if it cannot be reached."""
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
