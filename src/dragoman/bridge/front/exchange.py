"""One HTTP request and the answer to it."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import msgspec

from dragoman.bridge.front.asgi import Headers, Message, Receive, Scope, Send, find_header, route
from dragoman.bridge.guard.answers import security_headers
from dragoman.errors import DragomanError

JSON = b"application/json"
NO_STORE = (b"cache-control", b"no-store")


class HttpError(DragomanError):
    """The answer to a request that cannot be served: a status, and why in plain words."""

    def __init__(self, status: int, reason: str, headers: Headers | None = None) -> None:
        self.status = status
        self.reason = reason
        self.headers = headers or []
        super().__init__(f"{status}: {reason}")


class ClientGone(DragomanError):
    """The other side went away in the middle of its request; there is nobody to answer."""


def raising_client_gone(send: Send) -> Send:
    """Have whoever sends to one who is gone find that out as ClientGone; servers say so by an OSError."""

    async def send_or_raise(message: Message) -> None:
        try:
            await send(message)
        except OSError as error:
            raise ClientGone(f"it is gone: {error}") from error

    return send_or_raise


class Exchange:
    """Reads a request within limits, and answers it once."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.method: str = scope["method"]
        self.path = route(scope)
        self.answered = False
        self._receive = receive
        self._send = send

    def header(self, name: bytes) -> str | None:
        """Return the first header of this name, which is to be in small letters."""
        return find_header(self.scope, name)

    def allow(self, *methods: str) -> None:
        """Raise HttpError unless the request has one of these methods."""
        if self.method in methods:
            return
        allowed = ", ".join(methods)
        raise HttpError(
            405, f"{self.method} is not for this address; it takes {allowed}", [(b"allow", allowed.encode())]
        )

    async def read_json(self, max_bytes: int, timeout_s: float) -> bytes:
        """Return the body of a request that says it is JSON; raises HttpError and ClientGone."""
        kind = (self.header(b"content-type") or "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise HttpError(415, f"the body has to be application/json, and not {kind or 'of no type'}")
        if (self.header(b"content-encoding") or "identity").lower() != "identity":
            raise HttpError(415, "the body may not be compressed; send it without Content-Encoding")
        return await self.read(max_bytes, timeout_s)

    async def read(self, max_bytes: int, timeout_s: float) -> bytes:
        """Return the body; raises HttpError if it is too long or never ends, and ClientGone."""
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
            elif size > 2 * max_bytes:  # up to here it is read, and let go: whoever is cut off hears no reason
                break
        if size > max_bytes:
            raise HttpError(413, f"the body is longer than {max_bytes} bytes, the limit; send less at a time")
        return bytes(body)

    async def _chunks(self):  # noqa: ANN202 -- an async generator of bytes
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            yield bytes(message.get("body", b""))
            more = message.get("more_body", False)

    async def wait_gone(self) -> None:
        """Wait until the other side is gone; what it still sends is let go."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def start(self, status: int, headers: Headers, *, html: bool = False) -> None:
        """Begin an answer of several pieces."""
        self.answered = True
        everything = [*headers, *security_headers(html=html)]
        await self._send({"type": "http.response.start", "status": status, "headers": everything})

    async def write(self, piece: bytes, *, more: bool = True) -> None:
        """Send a piece of the answer."""
        await self._send({"type": "http.response.body", "body": piece, "more_body": more})

    async def reply(
        self, status: int, body: bytes = b"", headers: Headers | None = None, *, kind: bytes | None = None
    ) -> None:
        """Answer in one piece."""
        what = [] if kind is None else [(b"content-type", kind)]
        size = [] if status in {204, 304} else [(b"content-length", b"%d" % len(body))]
        await self.start(
            status, [*what, *size, *(headers or [])], html=kind is not None and kind.startswith(b"text/html")
        )
        await self.write(b"" if self.method == "HEAD" else body, more=False)

    async def reply_json(self, status: int, value: Any, headers: Headers | None = None) -> None:
        """Answer with a JSON value, which no cache keeps."""
        await self.reply(status, msgspec.json.encode(value), [NO_STORE, *(headers or [])], kind=JSON)

    async def refuse(self, status: int, reason: str, headers: Headers | None = None) -> None:
        """Answer with why not."""
        await self.reply_json(status, {"error": reason}, [h for h in headers or [] if h[0] != b"cache-control"])


async def refuse_upgrade(scope: Scope, send: Send, refused: HttpError) -> None:
    """Answer the request for an upgrade with why not; a server that cannot say so closes it with 403."""
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
    """Run all until the first ends, cancel the others, and tell which ended; raises what one of those raised."""
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
