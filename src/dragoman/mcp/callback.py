"""The way back of a person from the page of an authorisation: a port on this machine, for one answer."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Protocol
from urllib.parse import parse_qs, urlsplit

from dragoman.errors import ServerFailure
from dragoman.mcp.authorisation import ConsentResult
from dragoman.text import one_line

CONSENT_TIMEOUT_S = 300.0
"""How long a person may take on the page of the server."""

HEAD_TIMEOUT_S = 10.0
MAX_HEAD_BYTES = 16 * 1024
"""A request is read in this time, up to this size; a code and a state are far shorter."""

PATH = "/callback"

_ANSWER = (
    "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n"
    "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n"
)


class Callback(Protocol):
    """An address to which a browser is sent back."""

    @property
    def redirect_uri(self) -> str:
        """The address."""
        ...

    def expect(self, state: str) -> "asyncio.Future[dict[str, str]]":
        """Return the parameters with which the browser comes back; only those with this state count."""
        ...


class LoopbackCallback:
    """Listens on a port of this machine; see `open_loopback`."""

    def __init__(self) -> None:
        self.redirect_uri = ""
        self._expected: str | None = None
        self._came: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()

    def expect(self, state: str) -> "asyncio.Future[dict[str, str]]":
        """Return the parameters with which the browser comes back; only those with this state count."""
        self._expected = state
        self._came = asyncio.get_running_loop().create_future()
        return self._came

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request of a browser."""
        try:
            async with asyncio.timeout(HEAD_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
                status, words = self._take(head.decode("latin-1").partition("\r\n")[0])
                body = words.encode()
                writer.write(_ANSWER.format(status=status, length=len(body)).encode() + body)
                await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass
        finally:
            writer.close()

    def _take(self, line: str) -> tuple[str, str]:
        """Take the way back from the first line of a request; anything else is answered, and changes nothing."""
        method, _, rest = line.partition(" ")
        path, _, query = rest.partition(" ")[0].partition("?")
        if method != "GET" or path != PATH:
            return "404 Not Found", "There is nothing here."
        back = first_values(query)
        if self._expected is None or back.get("state") != self._expected:
            return "400 Bad Request", "This answer does not belong to the login that is waiting; start again there."
        if not self._came.done():
            self._came.set_result(back)
        refused = "error" in back
        return "200 OK", "Refused. You can close this page." if refused else "Done. You can close this page."


@asynccontextmanager
async def open_loopback() -> AsyncGenerator[LoopbackCallback]:
    """Listen on a port of this machine, as long as the context lasts; raises ServerFailure."""
    callback = LoopbackCallback()
    try:
        listener = await asyncio.start_server(callback.serve, "127.0.0.1", 0, limit=MAX_HEAD_BYTES)
    except OSError as error:
        raise ServerFailure(f"no port of this machine is free for the way back of a login: {error.strerror}") from None
    callback.redirect_uri = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}{PATH}"
    try:
        yield callback
    finally:
        listener.close()


def state_of(url: str) -> str:
    """Return the state in the address of an authorisation."""
    return first_values(urlsplit(url).query).get("state", "")


def first_values(query: str) -> dict[str, str]:
    """Return the first value of each parameter of a query."""
    return {name: values[0] for name, values in parse_qs(query).items()}


def read_consent(back: dict[str, str]) -> ConsentResult:
    """Return what came back with a person; raises ServerFailure in words when they or the server refused."""
    if "error" not in back:
        return ConsentResult(back.get("code", ""), back.get("state"), back.get("iss"))
    if back["error"] == "access_denied":
        raise ServerFailure("you did not agree to the use of it")
    words = one_line(back.get("error_description") or back["error"], 200)
    raise ServerFailure(f"its authorisation was refused: {words}")
