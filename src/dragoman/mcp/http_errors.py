"""Servers at an address: the check of their headers, the bound of their bodies, and the words for their failures."""

from collections.abc import Iterable
from typing import Any, cast
from urllib.parse import urlsplit

import httpx2
import msgspec

from dragoman.errors import DragomanError, RemoteError, ServerFailure
from dragoman.mcp.channel import HttpRefusal
from dragoman.text import one_line

MAX_REFUSAL_BYTES = 64 * 1024
"""Bytes read of the body of a refusal."""

MAX_WORDS = 300
"""Letters of a server's own words in a reason."""

_WORDS = ("error_description", "message", "detail", "title", "error")


def check_headers(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return headers that can be sent, also two of one name; raises ServerFailure, without their secret values."""
    pairs = list(headers)
    for name, value in pairs:
        if not (name.isascii() and value.isascii()) or not name or any(letter in name + value for letter in "\r\n\0"):
            raise ServerFailure(f"its header {name!r} cannot be sent; expected one line of ASCII characters")
    return pairs


def explain_status(status: int) -> str:
    """Say what an HTTP status means for the person who gave the address of a server."""
    match status:
        case 401 | 403:
            return f"the server answered HTTP {status}: it wants other credentials; check the headers given for it"
        case 404 | 405:
            return f"the server answered HTTP {status}: there is no MCP server at this address; check its path"
        case _ if 300 <= status < 400:
            return f"the server answered HTTP {status}: it has moved; give the address that it redirects to"
        case _:
            return f"the server answered HTTP {status}"


def explain_http(error: BaseException) -> str | None:
    """Explain an httpx2 error without the server's address, which may be secret; None for other errors."""
    match error:
        case httpx2.ConnectError():
            return "nothing answers at its address; check that the server runs"
        case httpx2.TimeoutException():
            return "the server did not answer in time"
        case httpx2.InvalidURL() | httpx2.UnsupportedProtocol():
            return "its address is no http or https URL"
        case httpx2.HTTPError():
            return f"the connection to the server failed ({type(error).__name__})"
        case _:
            return None


def explain_type(status: int, media_type: str) -> str:
    """Say that an answer is neither JSON nor a stream of events."""
    if status in {202, 204} or not media_type:
        return f"the server answered HTTP {status} with nothing; expected JSON or an event stream"
    page = "; a web page is there, and no MCP server: check the path" if media_type == "text/html" else ""
    return f"the server answered with {one_line(media_type, 60)}, expected JSON or an event stream{page}"


async def refusal_of(method: str, response: httpx2.Response) -> DragomanError:
    """Return the error of an answer whose status is no success, in the server's own words where it has some."""
    status = response.status_code
    body = _decode(await _read_some(response, MAX_REFUSAL_BYTES))
    error: Any = cast("dict[str, Any]", body).get("error") if isinstance(body, dict) else None
    if isinstance(error, dict) and isinstance(cast("dict[str, Any]", error).get("code"), int):
        fields = cast("dict[str, Any]", error)
        words = one_line(str(fields.get("message", "")), MAX_WORDS)
        shown = f"{words} (HTTP {status})" if status in {401, 403} or status >= 500 else words
        return RemoteError(method, fields["code"], shown, fields.get("data"))
    said = _own_words(body)
    return HttpRefusal(status, f"{explain_status(status)}; it says: {said}" if said else explain_status(status))


async def read_bounded(response: httpx2.Response, max_bytes: int) -> bytes:
    """Read a whole body; raises ServerFailure for one that is too long."""
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > max_bytes:
            raise ServerFailure(f"its answer is longer than {max_bytes} bytes, the limit")
    return bytes(body)


def same_origin(one: str, other: str) -> bool:
    """Tell whether two addresses have the same scheme, host and port; raises ValueError for what is no address."""
    return _origin(one) == _origin(other)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


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


def _own_words(body: Any) -> str:
    """Return what a server says in the body of a refusal, in one of the usual forms."""
    if not isinstance(body, dict):
        return ""
    fields = cast("dict[str, Any]", body)
    for key in _WORDS:
        value = fields.get(key)
        if isinstance(value, dict):
            value = cast("dict[str, Any]", value).get("message")
        if isinstance(value, str) and value.strip():
            return one_line(value, MAX_WORDS)
    return ""
