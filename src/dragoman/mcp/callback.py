"""The loopback port that receives the result of a login from the user's browser."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Protocol
from urllib.parse import parse_qs, urlsplit

from dragoman.errors import McpServerError
from dragoman.mcp.authorisation import ConsentResult
from dragoman.text import one_line

CONSENT_TIMEOUT_S = 300.0
"""How long the user may stay on the login page."""

HEAD_TIMEOUT_S = 10.0
MAX_HEAD_BYTES = 16 * 1024
"""Limits for reading a request. A code and a state are far shorter."""

PATH = "/callback"

_ANSWER = (
    "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n"
    "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n"
)


class Callback(Protocol):
    """An address to which a browser is redirected after the login."""

    @property
    def redirect_uri(self) -> str:
        """The redirect address."""
        ...

    def expect(self, state: str) -> "asyncio.Future[dict[str, str]]":
        """Return a future of the redirect parameters with this state. Redirects with another state are refused."""
        ...


class LoopbackCallback:
    """Listens on a port of this machine. See `open_loopback`."""

    def __init__(self) -> None:
        self.redirect_uri = ""
        self._expected: str | None = None
        self._redirect: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()

    def expect(self, state: str) -> "asyncio.Future[dict[str, str]]":
        """Return a future of the redirect parameters with this state. Redirects with another state are refused."""
        self._expected = state
        self._redirect = asyncio.get_running_loop().create_future()
        return self._redirect

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request from a browser."""
        try:
            async with asyncio.timeout(HEAD_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
                status, text = self._receive_redirect(head.decode("latin-1").partition("\r\n")[0])
                body = text.encode()
                writer.write(_ANSWER.format(status=status, length=len(body)).encode() + body)
                await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass
        finally:
            writer.close()

    def _receive_redirect(self, line: str) -> tuple[str, str]:
        """Read the redirect from a request line and return the status and text to answer. Ignore other requests."""
        method, _, rest = line.partition(" ")
        path, _, query = rest.partition(" ")[0].partition("?")
        if method != "GET" or path != PATH:
            return "404 Not Found", "There is nothing here."
        parameters = first_values(query)
        if self._expected is None or parameters.get("state") != self._expected:
            return "400 Bad Request", "This answer does not belong to the login in progress. Start the login again."
        if not self._redirect.done():
            self._redirect.set_result(parameters)
        refused = "error" in parameters
        return "200 OK", "Refused. You can close this page." if refused else "Done. You can close this page."


@asynccontextmanager
async def open_loopback() -> AsyncGenerator[LoopbackCallback]:
    """Listen on a loopback port until the context is left. Raises McpServerError."""
    callback = LoopbackCallback()
    try:
        listener = await asyncio.start_server(callback.serve, "127.0.0.1", 0, limit=MAX_HEAD_BYTES)
    except OSError as error:
        raise McpServerError(
            f"no port is free on this machine to receive the result of the login: {error.strerror}"
        ) from None
    callback.redirect_uri = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}{PATH}"
    try:
        yield callback
    finally:
        listener.close()


def state_of(url: str) -> str:
    """Return the `state` parameter of an authorisation URL."""
    return first_values(urlsplit(url).query).get("state", "")


def first_values(query: str) -> dict[str, str]:
    """Return the first value of each query parameter."""
    return {name: values[0] for name, values in parse_qs(query).items()}


def read_consent(parameters: dict[str, str]) -> ConsentResult:
    """Return the consent in the redirect's parameters. Raises McpServerError if the user or the server refused."""
    if "error" not in parameters:
        return ConsentResult(parameters.get("code", ""), parameters.get("state"), parameters.get("iss"))
    if parameters["error"] == "access_denied":
        raise McpServerError("you declined the login")
    reason = one_line(parameters.get("error_description") or parameters["error"], 200)
    raise McpServerError(f"it refused the login: {reason}")
