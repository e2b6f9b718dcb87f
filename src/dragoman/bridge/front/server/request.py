"""One request as an ASGI scope, with its body and its answer."""

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from email.utils import formatdate
from urllib.parse import unquote

import msgspec

from dragoman.bridge.front.asgi import CREDENTIAL_SHOWN, Headers, Message, Scope
from dragoman.bridge.front.server.tcp import TcpConnection
from dragoman.bridge.guard.answers import security_headers

MAX_BODY_WAITING_BYTES = 64 * 1024
"""Bytes of a body that are buffered until the application reads them."""

_log = logging.getLogger("dragoman.bridge.front")


class RequestHead(msgspec.Struct, frozen=True):
    """The request line and the headers, with lower-case names."""

    method: str
    target: bytes
    headers: Headers
    http_version: str


def make_scope(kind: str, head: RequestHead, connection: TcpConnection) -> Scope:
    """Return the ASGI scope of a request."""
    path, _, query = head.target.partition(b"?")
    scheme = connection.scheme
    return {
        "type": kind,
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": head.http_version,
        "method": head.method,
        "scheme": scheme if kind == "http" else {"http": "ws", "https": "wss"}[scheme],
        "path": unquote(path.decode("latin-1")),
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": head.headers,
        "client": connection.address("peername"),
        "server": connection.address("sockname"),
        "extensions": {CREDENTIAL_SHOWN: connection.record_credential},
    }


def date_header() -> tuple[bytes, bytes]:
    """Return the `Date` header of an answer."""
    return b"date", formatdate(time.time(), usegmt=True).encode()


def make_refusal(reason: str) -> tuple[Headers, bytes]:
    """Return the headers and the body of an error response from the server itself."""
    body = msgspec.json.encode({"error": reason})
    length = (b"content-length", b"%d" % len(body))
    return [(b"content-type", b"application/json"), length, *security_headers(html=False)], body


class RequestBody:
    """Buffers the body of a request between the connection and the application."""

    def __init__(self, on_read: Callable[[int], None]) -> None:
        self.waiting_bytes = 0
        self._on_read = on_read
        self._pieces: deque[bytes] = deque()
        self._has_ended = False
        self._is_delivered = False
        self._is_gone = False
        self._changed = asyncio.Event()

    def put(self, data: bytes) -> None:
        """Add the next piece."""
        self._pieces.append(data)
        self.waiting_bytes += len(data)
        self._changed.set()

    def end(self) -> None:
        """Mark the end of the body."""
        self._has_ended = True
        self._changed.set()

    def mark_gone(self) -> None:
        """Mark the client as disconnected."""
        self._is_gone = True
        self._changed.set()

    def drop(self) -> int:
        """Drop the unread pieces and return their size."""
        size, self.waiting_bytes = self.waiting_bytes, 0
        self._pieces.clear()
        return size

    async def receive(self) -> Message:
        """Wait for the next piece and return it. After the last one, wait until the client disconnects."""
        while True:
            if self._is_gone:
                return {"type": "http.disconnect"}
            if not self._is_delivered and (self._pieces or self._has_ended):
                return self._pop()
            self._changed.clear()
            await self._changed.wait()

    def _pop(self) -> Message:
        data = b"".join(self._pieces)
        self.drop()
        self._is_delivered = self._has_ended
        if data:
            self._on_read(len(data))
        return {"type": "http.request", "body": data, "more_body": not self._has_ended}


class ServedRequest(ABC):
    """A running request. The head of its answer is sent together with the first piece."""

    def __init__(self, connection: TcpConnection, head: RequestHead, body: RequestBody) -> None:
        self.head = head
        self.body = body
        self.is_answered = False
        """Whether the answer has begun."""
        self.is_complete = False
        """Whether the application has sent the whole answer."""
        self.connection = connection
        self._start: Message | None = None

    async def run(self, scope: Scope) -> None:
        """Run the application."""
        try:
            await self.connection.context.app(scope, self.receive, self.send)
        except Exception:  # noqa: BLE001 -- boundary: a failed request must not end the connection
            _log.exception("the application failed at a request")
        finally:
            self.finish()

    async def receive(self) -> Message:
        """Return the next message of the request to the application."""
        return await self.body.receive()

    async def send(self, message: Message) -> None:
        """Send a message from the application. Raises ConnectionResetError if the client has disconnected."""
        if message["type"] == "http.response.start":
            self._start = message
            return
        if self.is_complete:
            raise ConnectionResetError("the response is already complete")
        data: bytes = message.get("body", b"")
        has_more = bool(message.get("more_body", False))
        start, self._start = self._start, None
        if start is not None:
            self.is_answered = True
            await self.begin(start["status"], [*start["headers"], date_header()], data, has_more=has_more)
        else:
            await self.write(data, has_more=has_more)
        self.is_complete = not has_more

    @abstractmethod
    async def begin(self, status: int, headers: Headers, data: bytes, *, has_more: bool) -> None:
        """Send the head of the answer and its first piece."""

    @abstractmethod
    async def write(self, data: bytes, *, has_more: bool) -> None:
        """Send the next piece of the answer."""

    @abstractmethod
    def finish(self) -> None:
        """Clean up after the application, even if its answer is incomplete."""
