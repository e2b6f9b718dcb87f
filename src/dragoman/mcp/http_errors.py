"""Checks and error messages for servers at a URL: headers, addresses and the size of bodies."""

import asyncio
import ipaddress
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from enum import IntEnum
from typing import Any, cast
from urllib.parse import urlsplit

import httpx2
import msgspec

from dragoman.errors import DragomanError, McpServerError, RemoteError
from dragoman.mcp.channel import HttpStatusError
from dragoman.text import one_line

MAX_REFUSAL_BYTES = 64 * 1024
"""Maximum number of bytes read from the body of a refusal."""

MAX_BYTES_KEY = "dragoman.max_bytes"
"""The request extension that limits the size of the response body."""

MAX_MESSAGE_LENGTH = 300
"""Maximum length of a server's own message in a reason."""

_MESSAGE_KEYS = ("error_description", "message", "detail", "title", "error")


def check_headers(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return headers that can be sent. A name may occur twice. Raises McpServerError without the secret values."""
    pairs = list(headers)
    for name, value in pairs:
        if not (name.isascii() and value.isascii()) or not name or any(letter in name + value for letter in "\r\n\0"):
            raise McpServerError(f"its header {name!r} cannot be sent; expected one line of ASCII characters")
    return pairs


def explain_status(status: int) -> str:
    """Explain an HTTP status to the user who configured the server's URL."""
    match status:
        case 401 | 403:
            return (
                f"the server answered HTTP {status}: the credentials were rejected; check the headers configured for it"
            )
        case 404 | 405:
            return f"the server answered HTTP {status}: there is no MCP server at this address; check its path"
        case _ if 300 <= status < 400:
            return f"the server answered HTTP {status}: it has moved; use the address it redirects to"
        case _:
            return f"the server answered HTTP {status}"


def explain_http(error: BaseException) -> str | None:
    """Explain an httpx2 error without the server's URL, which may be secret. Return None for other errors."""
    match error:
        case httpx2.ConnectError():
            return "nothing answers at its address; check that the server runs"
        case httpx2.TimeoutException():
            return "the server did not answer in time"
        case httpx2.InvalidURL() | httpx2.UnsupportedProtocol():
            return "its address is not an http or https URL"
        case httpx2.HTTPError():
            return f"the connection to the server failed ({type(error).__name__})"
        case _:
            return None


def explain_type(status: int, media_type: str) -> str:
    """Return the message for a response that is neither JSON nor an event stream."""
    if status in {202, 204} or not media_type:
        return f"the server answered HTTP {status} with an empty body; expected JSON or an event stream"
    page = "; this is a web page, not an MCP server: check the path" if media_type == "text/html" else ""
    return f"the server answered with {one_line(media_type, 60)}, expected JSON or an event stream{page}"


async def refusal_of(method: str, response: httpx2.Response) -> DragomanError:
    """Return the error for an unsuccessful response, with the server's own message if it has one."""
    status = response.status_code
    body = _decode(await _read_some(response, MAX_REFUSAL_BYTES))
    error: Any = cast("dict[str, Any]", body).get("error") if isinstance(body, dict) else None
    if isinstance(error, dict) and isinstance(cast("dict[str, Any]", error).get("code"), int):
        fields = cast("dict[str, Any]", error)
        text = one_line(str(fields.get("message", "")), MAX_MESSAGE_LENGTH)
        shown = f"{text} (HTTP {status})" if status in {401, 403} or status >= 500 else text
        return RemoteError(method, fields["code"], shown, fields.get("data"))
    server_message = _server_message(body)
    return HttpStatusError(
        status, f"{explain_status(status)}; its message: {server_message}" if server_message else explain_status(status)
    )


async def read_bounded(response: httpx2.Response, max_bytes: int) -> bytes:
    """Read a whole body. Raises McpServerError if it is too long."""
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > max_bytes:
            raise McpServerError(f"its answer is longer than the limit of {max_bytes} bytes")
    return bytes(body)


def same_origin(one: str, other: str) -> bool:
    """Return whether two URLs have the same scheme, host and port. Raises ValueError for an invalid URL."""
    return _origin(one) == _origin(other)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


class _Reach(IntEnum):
    """How close an address is to this machine. A server may not redirect us to an address closer than its own."""

    PUBLIC = 0
    PRIVATE = 1
    LOOPBACK = 2
    LINK_LOCAL = 3
    """For example 169.254.169.254, where clouds serve the credentials of a machine."""


async def check_reach(url: str, server_url: str) -> None:
    """Refuse an address that a server must not redirect us to. Raises McpServerError.

    Requests with a server's login data require https. A server on the internet could otherwise make us send requests to
    this machine or its network. RFC 9728, section 7.7, asks clients to prevent that.
    """
    target, own = urlsplit(url), urlsplit(server_url)
    shown = f"{target.scheme}://{target.netloc.rpartition('@')[2]}"
    if target.hostname == own.hostname and target.scheme in ("https", own.scheme):
        return
    reach, own_reach = await _reach_of(target.hostname or ""), await _reach_of(own.hostname or "")
    if target.scheme != "https" and not (target.scheme == "http" and reach is own_reach is _Reach.LOOPBACK):
        raise McpServerError(f"it redirects the login to {shown}, which is not encrypted; expected an https address")
    if reach > own_reach or reach is _Reach.LINK_LOCAL:
        raise McpServerError(
            f"it redirects the login to {shown}, an address of this machine or its network; "
            "only a server on the same network may do that"
        )


async def _reach_of(host: str) -> _Reach:
    """Return the closest of a host's addresses. An unknown host counts as public, because only a proxy can reach it."""
    with suppress(ValueError):
        return _reach(ipaddress.ip_address(host))
    with suppress(OSError, UnicodeError):
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
        addresses = [str(each[4][0]).partition("%")[0] for each in found]
        return max(_reach(ipaddress.ip_address(address)) for address in addresses)
    return _Reach.PUBLIC


def _reach(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> _Reach:
    address = getattr(address, "ipv4_mapped", None) or address
    if address.is_link_local:
        return _Reach.LINK_LOCAL
    if address.is_loopback or address.is_unspecified:
        return _Reach.LOOPBACK
    return _Reach.PUBLIC if address.is_global else _Reach.PRIVATE


async def bound_body(response: httpx2.Response) -> None:
    """Limit the body of a refusal, and of a response whose request has a limit. This is an httpx2 response hook.

    httpx2 reads these bodies completely before it sends the next request of a login.
    """
    max_bytes = response.request.extensions.get(MAX_BYTES_KEY)
    if max_bytes is not None:
        response.stream = _BoundedStream(cast("httpx2.AsyncByteStream", response.stream), max_bytes, is_cut=False)
    elif response.status_code in {401, 403}:
        response.stream = _BoundedStream(
            cast("httpx2.AsyncByteStream", response.stream), MAX_REFUSAL_BYTES, is_cut=True
        )


class _BoundedStream(httpx2.AsyncByteStream):
    """A body that is truncated at its limit, or raises McpServerError there."""

    def __init__(self, stream: httpx2.AsyncByteStream, max_bytes: int, *, is_cut: bool) -> None:
        self._stream = stream
        self._max_bytes = max_bytes
        self._is_cut = is_cut

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._max_bytes
        async for piece in self._stream:
            if len(piece) > left:
                if not self._is_cut:
                    raise McpServerError(f"its answer is longer than the limit of {self._max_bytes} bytes")
                yield piece[:left]
                return
            left -= len(piece)
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _read_some(response: httpx2.Response, max_bytes: int) -> bytes:
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) >= max_bytes:
            break
    return bytes(body[:max_bytes])


def _decode(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def _server_message(body: Any) -> str:
    """Return the server's message from the body of a refusal, in one of the usual forms."""
    if not isinstance(body, dict):
        return ""
    fields = cast("dict[str, Any]", body)
    for key in _MESSAGE_KEYS:
        value = fields.get(key)
        if isinstance(value, dict):
            value = cast("dict[str, Any]", value).get("message")
        if isinstance(value, str) and value.strip():
            return one_line(value, MAX_MESSAGE_LENGTH)
    return ""
