"""The person's way back from the page of an authorisation, for a terminal: a port on this machine, for one answer."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

from dragoman.errors import ServerFailure
from dragoman.mcp.authorisation import ClientIdentity, ConsentResult
from dragoman.text import one_line

CONSENT_TIMEOUT_S = 300.0
"""How long a person may take on the page of the server."""

HEAD_TIMEOUT_S = 10.0
MAX_HEAD_BYTES = 16 * 1024
"""A request is read in this time, up to this size; a code and a state are far shorter."""

PATH = "/callback"

_ANSWER = (
    "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n"
    "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
)


class LoopbackAuthoriser:
    """Shows an address, and waits on a port of this machine for the person to come back; see `open_loopback`."""

    def __init__(self, show: Callable[[str, str], None], identity: ClientIdentity) -> None:
        self.identity = identity
        self.redirect_uri = ""
        self._show = show
        self._expected: str | None = None
        self._came: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()

    async def ask(self, server: str, url: str) -> ConsentResult:
        """Show the person an address, and wait for the way back; raises ServerFailure."""
        self._expected = _first(urlsplit(url).query).get("state")
        self._came = asyncio.get_running_loop().create_future()
        self._show(server, url)
        try:
            async with asyncio.timeout(CONSENT_TIMEOUT_S):
                back = await self._came
        except TimeoutError:
            words = f"nobody agreed to the use of it within {CONSENT_TIMEOUT_S:.0f} s"
            raise ServerFailure(f"{words}; run `dragoman mcp login {server}` again") from None
        if "error" in back:
            raise ServerFailure(_why_refused(back))
        return ConsentResult(back.get("code", ""), back.get("state"), back.get("iss"))

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
        target = urlsplit(rest.partition(" ")[0])
        if method != "GET" or target.path != PATH:
            return "404 Not Found", "There is nothing here."
        back = _first(target.query)
        if self._expected is None or back.get("state") != self._expected:
            return "400 Bad Request", "This answer does not belong to the login that is waiting; start again there."
        if not self._came.done():
            self._came.set_result(back)
        refused = "error" in back
        return "200 OK", "Refused. You can close this page." if refused else "Done. You can close this page."


@asynccontextmanager
async def open_loopback(
    show: Callable[[str, str], None], identity: ClientIdentity | None = None
) -> AsyncGenerator[LoopbackAuthoriser]:
    """Listen on a port of this machine, as long as the context lasts; `show` gets the server and the address."""
    authoriser = LoopbackAuthoriser(show, identity or ClientIdentity())
    listener = await asyncio.start_server(authoriser.serve, "127.0.0.1", 0, limit=MAX_HEAD_BYTES)
    authoriser.redirect_uri = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}{PATH}"
    try:
        yield authoriser
    finally:
        listener.close()


def _first(query: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(query).items()}


def _why_refused(back: dict[str, str]) -> str:
    if back["error"] == "access_denied":
        return "you did not agree to the use of it"
    words = one_line(back.get("error_description") or back["error"], 200)
    return f"its authorisation was refused: {words}"
