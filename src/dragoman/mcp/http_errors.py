"""Servers at an address: the check of their headers, and the words for their failures."""

from collections.abc import Iterable

import httpx2

from dragoman.errors import ServerFailure


def check_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return headers that can be sent; raises ServerFailure without their values, which are secret."""
    for name, value in headers:
        if not (name.isascii() and value.isascii()) or not name or any(letter in name + value for letter in "\r\n\0"):
            raise ServerFailure(f"its header {name!r} cannot be sent; expected one line of ASCII characters")
    return dict(headers)


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
