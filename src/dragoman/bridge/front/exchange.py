"""One HTTP request and its answer, HTTP errors, and `race` for the first of several coroutines."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import msgspec

from dragoman.bridge.front.asgi import Headers, Message, Receive, Scope, Send, find_header, route
from dragoman.bridge.guard.answers import security_headers
from dragoman.errors import DragomanError

JSON = b"application/json"
NO_STORE = (b"cache-control", b"no-store")


_Form = TypeVar("_Form")


class HttpError(DragomanError):
    """A request that is answered with an error status and a readable reason."""

    def __init__(self, status: int, reason: str, headers: Headers | None = None) -> None:
        self.status = status
        self.reason = reason
        self.headers = headers or []
        super().__init__(f"{status}: {reason}")


class ClientGoneError(DragomanError):
    """The client disconnected before its request was answered."""


def raising_client_gone(send: Send) -> Send:
    """Return a `send` that translates the server's OSError to ClientGoneError."""

    async def send_or_raise(message: Message) -> None:
        try:
            await send(message)
        except OSError as error:
            raise ClientGoneError(f"the client disconnected: {error}") from error

    return send_or_raise


class Exchange:
    """Reads one request within limits and answers it once."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.method: str = scope["method"]
        self.path = route(scope)
        self.answered = False
        self._receive = receive
        self._send = send

    def header(self, name: bytes) -> str | None:
        """Return the first header of this lower-case name, or None."""
        return find_header(self.scope, name)

    @property
    def is_prefetch(self) -> bool:
        """Whether a browser loads the page in advance, before the user opens it."""
        purpose = self.header(b"sec-purpose") or self.header(b"purpose") or self.header(b"x-moz") or ""
        return "prefetch" in purpose.lower()

    def allow(self, *methods: str) -> None:
        """Check that the request has one of these methods. Raises HttpError."""
        if self.method in methods:
            return
        allowed = ", ".join(methods)
        raise HttpError(405, f"{self.method} is not allowed here; use {allowed}", [(b"allow", allowed.encode())])

    async def read_json(self, max_bytes: int, timeout_s: float) -> bytes:
        """Return the body of a request with the JSON content type. Raises HttpError and ClientGoneError."""
        kind = (self.header(b"content-type") or "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise HttpError(415, f"the body is {kind or 'without a type'}; send application/json")
        if (self.header(b"content-encoding") or "identity").lower() != "identity":
            raise HttpError(415, "the body may not be compressed; send it without Content-Encoding")
        return await self.read(max_bytes, timeout_s)

    async def read(self, max_bytes: int, timeout_s: float) -> bytes:
        """Return the body. Raises ClientGoneError, and HttpError if the body is too long or too slow."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._read(max_bytes)
        except TimeoutError:
            reason = f"the body did not arrive within {timeout_s:g} s; send the request again"
            raise HttpError(
                408, reason, [(b"connection", b"close")] if self.scope["http_version"] < "2" else []
            ) from None

    async def _read(self, max_bytes: int) -> bytes:
        body = bytearray()
        size = 0
        async for chunk in self._chunks():
            size += len(chunk)
            if size <= max_bytes:
                body += chunk
            elif size > 2 * max_bytes:  # up to here it is read and dropped, so that the client receives the error
                break
        if size > max_bytes:
            raise HttpError(413, f"the body is longer than the limit of {max_bytes} bytes; send smaller messages")
        return bytes(body)

    async def _chunks(self):  # noqa: ANN202 -- an async generator of bytes
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGoneError
            yield bytes(message.get("body", b""))
            more = message.get("more_body", False)

    async def wait_disconnect(self) -> None:
        """Wait until the client disconnects. Drop the rest of its request."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def start(self, status: int, headers: Headers, *, html: bool = False, worker: bool = False) -> None:
        """Send the head of an answer with several pieces."""
        self.answered = True
        everything = [*headers, *security_headers(html=html, worker=worker)]
        await self._send({"type": "http.response.start", "status": status, "headers": everything})

    async def write(self, piece: bytes, *, more: bool = True) -> None:
        """Send a piece of the answer."""
        await self._send({"type": "http.response.body", "body": piece, "more_body": more})

    async def reply(
        self,
        status: int,
        body: bytes = b"",
        headers: Headers | None = None,
        *,
        kind: bytes | None = None,
        worker: bool = False,
    ) -> None:
        """Answer in one piece. `worker` marks the script of one of the page's workers."""
        content_type = [] if kind is None else [(b"content-type", kind)]
        size = [] if status in {204, 304} else [(b"content-length", b"%d" % len(body))]
        html = kind is not None and kind.startswith(b"text/html")
        await self.start(status, [*content_type, *size, *(headers or [])], html=html, worker=worker)
        await self.write(b"" if self.method == "HEAD" else body, more=False)

    async def reply_json(self, status: int, value: Any, headers: Headers | None = None) -> None:
        """Answer with a JSON value that must not be cached."""
        await self.reply(status, msgspec.json.encode(value), [NO_STORE, *(headers or [])], kind=JSON)

    async def refuse(self, status: int, reason: str, headers: Headers | None = None) -> None:
        """Answer with an error and its reason."""
        await self.reply_json(status, {"error": reason}, [h for h in headers or [] if h[0] != b"cache-control"])


def decode_form(body: bytes, kind: type[_Form]) -> _Form:
    """Decode the body of a request. Raises HttpError."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise HttpError(400, f"the body has an unexpected shape: {error}") from None


async def refuse_upgrade(scope: Scope, send: Send, refused: HttpError) -> None:
    """Answer a WebSocket request with an error. A server without that extension answers with 403."""
    if "websocket.http.response" not in (scope.get("extensions") or {}):
        await send({"type": "websocket.close", "code": 1008, "reason": refused.reason[:120]})
        return
    body = msgspec.json.encode({"error": refused.reason})
    others = [header for header in refused.headers if header[0] != b"cache-control"]
    size = (b"content-length", b"%d" % len(body))
    headers = [(b"content-type", JSON), size, NO_STORE, *others, *security_headers(html=False)]
    await send({"type": "websocket.http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": body, "more_body": False})


async def race(*runners: Coroutine[Any, Any, object]) -> list[bool]:
    """Run coroutines until one ends, then cancel the others. Return which ended, or raise its error."""
    tasks = [asyncio.create_task(runner) for runner in runners]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        ended = [task.done() for task in tasks]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    for task, has_ended in zip(tasks, ended, strict=True):
        if has_ended:
            task.result()
    return ended
