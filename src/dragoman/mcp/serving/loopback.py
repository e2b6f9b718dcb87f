"""Functions for an agent that takes MCP servers at an address: streamable HTTP on this machine alone, over h11.

A client has to send the token. `Host` and `Origin` are checked as well, so that no web page can send requests through a
browser. The answer to a request is JSON; it is a stream of events only when its function has reported progress, which
comes before the result. There is no stream of the server's own, because it sends nothing unasked.
"""

import asyncio
import hmac
import secrets
import socket
import uuid
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Self
from urllib.parse import urlsplit

import h11
import msgspec
from msgspec import UNSET

from dragoman.errors import ErrorCode, InvalidParams, RpcError
from dragoman.mcp.definition import HttpServer
from dragoman.mcp.era import LEGACY_VERSIONS, Era
from dragoman.mcp.serving.function_server import FunctionServer, FunctionSession, decode_params
from dragoman.mcp.serving.socket_server import listening
from dragoman.wire import MAX_LINE_BYTES, Malformed, Message, error_object, parse

HOST = "127.0.0.1"
PATH = "/mcp"

MAX_SESSIONS = 64
"""MCP sessions at a time: an agent has one or two for each ACP session. The oldest ends when there are more."""

IDLE_TIMEOUT_S = 300.0
"""How long a connection without a request is kept open."""

MAX_HEAD_BYTES = 64 * 1024
"""Longest request line with headers: several times as long as any client's."""

CLOSE_TIMEOUT_S = 1.0
"""How long closing waits until the client has read everything."""

_READ_BYTES = 64 * 1024
_PLAIN_TEXT = "text/plain; charset=utf-8"
_SESSION = "mcp-session-id"
_VERSION = "mcp-protocol-version"
_JSON = {"content-type": "application/json"}
_TOKEN_BYTES = 32
_NO_ID = b"null"


class HttpRequest(msgspec.Struct, frozen=True):
    """A request; the names of its headers are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""


async def open_connection(client: socket.socket, *, idle_timeout_s: float, max_body_bytes: int) -> "HttpConnection":
    """Open a connection over an accepted socket, which the connection owns from now on."""
    reader, writer = await asyncio.open_connection(sock=client)
    return HttpConnection(reader, writer, idle_timeout_s=idle_timeout_s, max_body_bytes=max_body_bytes)


class HttpConnection:
    """Speaks HTTP/1.1 with one client; use it as an async context manager, which closes it."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, idle_timeout_s: float, max_body_bytes: int
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._idle_timeout_s = idle_timeout_s
        self._max_body_bytes = max_body_bytes
        self._http = h11.Connection(h11.SERVER, MAX_HEAD_BYTES)
        self._takes_body = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._writer.close()
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            self._writer.transport.abort()

    async def next_request(self) -> HttpRequest | None:
        """Wait for a request; None when there will be no more. Bytes that are not HTTP are refused here."""
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
        elif self._http.our_state is not h11.IDLE:
            return None
        try:
            async with asyncio.timeout(self._idle_timeout_s):
                return await self._read()
        except h11.RemoteProtocolError as error:
            await self.respond(error.error_status_hint, str(error).encode(), {"content-type": _PLAIN_TEXT})
        except (TimeoutError, OSError):
            pass
        return None

    async def respond(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        """Answer the request."""
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        body = body if self._takes_body else b""
        head = {**(headers or {}), "content-length": str(len(body))}
        data = self._http.send(h11.Response(status_code=status, headers=list(head.items()))) or b""
        data += self._http.send(h11.Data(data=body)) or b""
        await self._send(data + (self._http.send(h11.EndOfMessage()) or b""))

    async def begin_events(self, headers: Mapping[str, str]) -> None:
        """Answer the request with a stream of events."""
        head = {**headers, "content-type": "text/event-stream", "cache-control": "no-store"}
        await self._send(self._http.send(h11.Response(status_code=200, headers=list(head.items()))) or b"")

    async def send_event(self, message: bytes) -> None:
        """Send an event with one line of data."""
        await self._send(self._http.send(h11.Data(data=b"event: message\ndata: " + message + b"\n\n")) or b"")

    async def end_events(self) -> None:
        """End the stream of events, and with it the answer."""
        await self._send(self._http.send(h11.EndOfMessage()) or b"")

    async def _read(self) -> HttpRequest | None:
        head: h11.Request | None = None
        body = bytearray()
        while True:
            match event := await self._next_event():
                case h11.Request():
                    head = event
                    self._takes_body = event.method != b"HEAD"
                case h11.Data():
                    body += event.data
                    if len(body) > self._max_body_bytes:
                        words = f"the body is longer than {self._max_body_bytes} bytes, the limit"
                        raise h11.RemoteProtocolError(words, 413)
                case h11.EndOfMessage() if head is not None:
                    named = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
                    return HttpRequest(head.method.decode(), head.target.decode(), named, bytes(body))
                case _:
                    return None

    async def _next_event(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                await self._send(self._http.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
            self._http.receive_data(await self._reader.read(_READ_BYTES))
        return event

    async def _send(self, data: bytes) -> None:
        self._writer.write(data)
        with suppress(OSError):  # a client that has gone gets nothing, and asks nothing more
            await self._writer.drain()


@asynccontextmanager
async def serve_loopback(server: FunctionServer) -> AsyncGenerator[HttpServer]:
    """Serve functions at the address that this gives; leaving ends every session."""
    token = f"Bearer {secrets.token_hex(_TOKEN_BYTES)}"
    with socket.create_server((HOST, 0)) as listener:
        port: int = listener.getsockname()[1]
        async with listening(listener, _Loopback(server, port, token).converse):
            yield HttpServer(server.name, f"http://{HOST}:{port}{PATH}", (("Authorization", token),))


class _Refused(Exception):
    """A request that no session answers, with the status of the refusal."""

    def __init__(self, status: int, words: str, **headers: str) -> None:
        self.status = status
        self.words = words
        self.headers = headers
        super().__init__(words)


class _Loopback:
    def __init__(self, server: FunctionServer, port: int, token: str) -> None:
        self._server = server
        self._token = token
        self._hosts = {f"{HOST}:{port}", f"localhost:{port}"}
        self._sessions: dict[str, FunctionSession] = {}

    async def converse(self, client: socket.socket) -> None:
        connection = await open_connection(client, idle_timeout_s=IDLE_TIMEOUT_S, max_body_bytes=MAX_LINE_BYTES)
        async with connection:
            while (request := await connection.next_request()) is not None:
                try:
                    await self._answer(connection, request)
                except _Refused as refused:
                    error = _failed(_NO_ID, RpcError(ErrorCode.INVALID_REQUEST, refused.words))
                    await connection.respond(refused.status, error, {**_JSON, **refused.headers})

    async def _answer(self, connection: HttpConnection, request: HttpRequest) -> None:
        self._check(request)
        match request.method:
            case "POST":
                await self._post(connection, request)
            case "DELETE":
                session_id, session = self._find(request)
                session.close()
                del self._sessions[session_id]
                await connection.respond(200)
            case _:
                raise _Refused(405, "there is nothing to get here; post messages", allow="POST, DELETE")

    def _check(self, request: HttpRequest) -> None:
        origin = request.headers.get("origin")
        if request.headers.get("host") not in self._hosts or (
            origin is not None and urlsplit(origin).netloc not in self._hosts
        ):
            raise _Refused(403, "this server is for programs on this machine alone")
        if not hmac.compare_digest(request.headers.get("authorization", "").encode(), self._token.encode()):
            raise _Refused(401, "the token is missing or wrong", **{"www-authenticate": "Bearer"})
        if request.path.partition("?")[0] != PATH:
            raise _Refused(404, f"there is nothing here; the server is at {PATH}")

    async def _post(self, connection: HttpConnection, request: HttpRequest) -> None:
        message = parse(request.body)
        if isinstance(message, Malformed):
            await connection.respond(400, _failed(message.id, RpcError(message.code, message.problem)), _JSON)
            return
        if message.method == "initialize" and message.id is not UNSET:
            session_id, session = self._begin()
        else:
            session_id, session = self._find(request)
        if message.method is not None and message.id is not UNSET:
            await _Reply(connection, session_id).give(session, message.method, message, bytes(message.id))
            return
        if message.method is not None:
            try:
                session.take(message.method, decode_params(message.params))
            except InvalidParams as error:
                raise _Refused(400, str(error)) from None
        await connection.respond(202)

    def _begin(self) -> tuple[str, FunctionSession]:
        while len(self._sessions) >= MAX_SESSIONS:
            self._sessions.pop(next(iter(self._sessions))).close()
        session_id = str(uuid.uuid4())
        self._sessions[session_id] = FunctionSession(self._server, frozenset((Era.LEGACY,)))
        return session_id, self._sessions[session_id]

    def _find(self, request: HttpRequest) -> tuple[str, FunctionSession]:
        session_id = request.headers.get(_SESSION)
        if session_id is None:
            raise _Refused(400, "the header Mcp-Session-Id is missing; initialize gives one")
        if session_id not in self._sessions:
            raise _Refused(404, "there is no such session, or no longer; initialize begins one")
        if request.headers.get(_VERSION, LEGACY_VERSIONS[-1]) not in LEGACY_VERSIONS:
            raise _Refused(400, f"this version of MCP is not spoken here; expected one of {', '.join(LEGACY_VERSIONS)}")
        return session_id, self._sessions[session_id]


class _Reply:
    """The answer to one request: JSON, or events when notifications come before it."""

    def __init__(self, connection: HttpConnection, session_id: str) -> None:
        self._connection = connection
        self._headers = {_SESSION: session_id}
        self._streams = False

    async def give(self, session: FunctionSession, method: str, message: Message, request_id: bytes) -> None:
        try:
            result = await session.answer(method, decode_params(message.params), request_id, self._tell)
        except RpcError as error:
            answer = _failed(request_id, error)
        else:
            answer = b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (request_id, msgspec.json.encode(result))
        if self._streams:
            await self._connection.send_event(answer)
            await self._connection.end_events()
        else:
            await self._connection.respond(200, answer, {**_JSON, **self._headers})

    async def _tell(self, method: str, params: dict[str, Any]) -> None:
        if not self._streams:
            self._streams = True
            await self._connection.begin_events(self._headers)
        notice = {"jsonrpc": "2.0", "method": method, "params": params}
        await self._connection.send_event(msgspec.json.encode(notice))


def _failed(request_id: bytes, error: RpcError) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (request_id, msgspec.json.encode(error_object(error)))
