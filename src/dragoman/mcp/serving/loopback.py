"""Functions for an agent that takes MCP servers at an address: streamable HTTP on this machine alone.

Whoever asks has to know the token. `Host` and `Origin` are looked at as well, so that no web page can ask by way of a
browser. A request is answered with JSON; with a stream of events only when its function has reported progress, which
comes ahead of the answer. There is no stream of the server's own, for it has nothing to say unasked.
"""

import hmac
import secrets
import socket
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET

from dragoman.errors import ErrorCode, InvalidParams, RpcError
from dragoman.mcp.definition import HttpServer
from dragoman.mcp.serving.function_server import VERSIONS, FunctionServer, FunctionSession, decode_params
from dragoman.mcp.serving.http_channel import HttpConnection, HttpRequest, open_connection
from dragoman.mcp.serving.listening import listening
from dragoman.wire import MAX_LINE_BYTES, Malformed, Message, error_object, parse

HOST = "127.0.0.1"
PATH = "/mcp"

MAX_SESSIONS = 64
"""Conversations at a time: an agent has one a session, or two. The oldest goes when there are more."""

IDLE_TIMEOUT_S = 300.0
"""How long a connection is kept on which nothing is asked."""

_SESSION = "mcp-session-id"
_VERSION = "mcp-protocol-version"
_JSON = {"content-type": "application/json"}
_TOKEN_BYTES = 32
_NO_ID = b"null"


@asynccontextmanager
async def serve_loopback(server: FunctionServer) -> AsyncGenerator[HttpServer]:
    """Serve functions at the address that this gives; leaving ends every conversation."""
    token = f"Bearer {secrets.token_hex(_TOKEN_BYTES)}"
    with socket.create_server((HOST, 0)) as listener:
        port: int = listener.getsockname()[1]
        async with listening(listener, _Loopback(server, port, token).converse):
            yield HttpServer(server.name, f"http://{HOST}:{port}{PATH}", (("Authorization", token),))


class _Refused(Exception):
    """A request that is not for a conversation, and the status that says so."""

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
        self._conversations: dict[str, FunctionSession] = {}

    async def converse(self, client: socket.socket) -> None:
        channel = await open_connection(client, idle_timeout_s=IDLE_TIMEOUT_S, max_body_bytes=MAX_LINE_BYTES)
        async with channel:
            while (request := await channel.next_request()) is not None:
                try:
                    await self._answer(channel, request)
                except _Refused as refused:
                    error = _failed(_NO_ID, RpcError(ErrorCode.INVALID_REQUEST, refused.words))
                    await channel.respond(refused.status, error, {**_JSON, **refused.headers})

    async def _answer(self, channel: HttpConnection, request: HttpRequest) -> None:
        self._check(request)
        match request.method:
            case "POST":
                await self._post(channel, request)
            case "DELETE":
                session_id, conversation = self._find(request)
                conversation.close()
                del self._conversations[session_id]
                await channel.respond(200)
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

    async def _post(self, channel: HttpConnection, request: HttpRequest) -> None:
        message = parse(request.body)
        if isinstance(message, Malformed):
            await channel.respond(400, _failed(message.id, RpcError(message.code, message.problem)), _JSON)
            return
        if message.method == "initialize" and message.id is not UNSET:
            session_id, conversation = self._begin()
        else:
            session_id, conversation = self._find(request)
        if message.method is not None and message.id is not UNSET:
            await _Reply(channel, session_id).give(conversation, message.method, message, bytes(message.id))
            return
        if message.method is not None:
            try:
                conversation.take(message.method, decode_params(message.params))
            except InvalidParams as error:
                raise _Refused(400, str(error)) from None
        await channel.respond(202)

    def _begin(self) -> tuple[str, FunctionSession]:
        while len(self._conversations) >= MAX_SESSIONS:
            self._conversations.pop(next(iter(self._conversations))).close()
        session_id = str(uuid.uuid4())
        self._conversations[session_id] = FunctionSession(self._server)
        return session_id, self._conversations[session_id]

    def _find(self, request: HttpRequest) -> tuple[str, FunctionSession]:
        session_id = request.headers.get(_SESSION)
        if session_id is None:
            raise _Refused(400, "the header Mcp-Session-Id is missing; initialize gives one")
        if session_id not in self._conversations:
            raise _Refused(404, "there is no such session, or no longer; initialize begins one")
        if request.headers.get(_VERSION, VERSIONS[-1]) not in VERSIONS:
            raise _Refused(400, f"this version of MCP is not spoken here; expected one of {', '.join(VERSIONS)}")
        return session_id, self._conversations[session_id]


class _Reply:
    """The answer to one request: JSON, or events once there was something to tell ahead of it."""

    def __init__(self, channel: HttpConnection, session_id: str) -> None:
        self._channel = channel
        self._headers = {_SESSION: session_id}
        self._streams = False

    async def give(self, conversation: FunctionSession, method: str, message: Message, request_id: bytes) -> None:
        try:
            result = await conversation.answer(method, decode_params(message.params), request_id, self._tell)
        except RpcError as error:
            answer = _failed(request_id, error)
        else:
            answer = b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (request_id, msgspec.json.encode(result))
        if self._streams:
            await self._channel.send_event(answer)
            await self._channel.end_events()
        else:
            await self._channel.respond(200, answer, {**_JSON, **self._headers})

    async def _tell(self, method: str, params: dict[str, Any]) -> None:
        if not self._streams:
            self._streams = True
            await self._channel.begin_events(self._headers)
        notice = {"jsonrpc": "2.0", "method": method, "params": params}
        await self._channel.send_event(msgspec.json.encode(notice))


def _failed(request_id: bytes, error: RpcError) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (request_id, msgspec.json.encode(error_object(error)))
