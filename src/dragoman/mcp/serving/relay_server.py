"""Functions for an agent that can only start MCP servers: a Unix socket, and a relay program that connects to it."""

import asyncio
import hmac
import os
import secrets
import socket
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path

from msgspec import Raw

from dragoman.mcp.definition import StdioServer
from dragoman.mcp.serving import relay
from dragoman.mcp.serving.function_call import McpResult
from dragoman.mcp.serving.function_server import CANCELLED, FunctionServer, FunctionSession, decode_params
from dragoman.mcp.serving.socket_server import listening
from dragoman.wire import IncomingRequest, Peer, StdioTransport

TOKEN_TIMEOUT_S = 10.0
"""Longest wait for the token, which the relay sends as soon as it is connected."""

_LONGEST_PATH = 100
"""A little less than the shortest limit on the path of a socket."""

_TOKEN_BYTES = 32


@asynccontextmanager
async def serve_relay(server: FunctionServer) -> AsyncGenerator[StdioServer]:
    """Serve functions to the agent that starts the yielded program; leaving ends every conversation."""
    token = secrets.token_hex(_TOKEN_BYTES)
    with (
        tempfile.TemporaryDirectory(prefix="dragoman-", dir=_socket_directory()) as directory,  # mode 0700
        closing(_listen(Path(directory) / "socket")) as listener,
    ):
        program = ("-I", "-S", relay.__file__, listener.getsockname())
        async with listening(listener, partial(_converse, server, f"{token}\n".encode())):
            yield StdioServer(server.name, sys.executable, program, ((relay.TOKEN, token),))


class _SocketServer:
    """Answers the messages of one socket."""

    def __init__(self, server: FunctionServer, transport: StdioTransport) -> None:
        self._session = FunctionSession(server)
        self._peer = Peer(transport, self, cancel_method=CANCELLED)

    async def serve(self) -> None:
        async with self._peer:
            await self._peer.wait_ended()

    async def request(self, request: IncomingRequest) -> McpResult:
        params = decode_params(request.params)
        return await self._session.answer(request.method, params, request.id, self._peer.notify)

    def notification(self, method: str, params: Raw) -> None:
        self._session.take(method, decode_params(params))


async def _converse(server: FunctionServer, token: bytes, client: socket.socket) -> None:
    if await _is_trusted(client, token):
        transport = StdioTransport(os.dup(client.fileno()), os.dup(client.fileno()))
        client.close()
        await _SocketServer(server, transport).serve()


async def _is_trusted(client: socket.socket, token: bytes) -> bool:
    """Whether the connection begins with the token; nothing beyond it is read."""
    loop = asyncio.get_running_loop()
    given = b""
    try:
        async with asyncio.timeout(TOKEN_TIMEOUT_S):
            while len(given) < len(token):
                data = await loop.sock_recv(client, len(token) - len(given))
                if not data:
                    return False
                given += data
    except (TimeoutError, OSError):
        return False
    return hmac.compare_digest(given, token)


def _listen(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen()
    except BaseException:
        listener.close()
        raise
    return listener


def _socket_directory() -> str | None:
    """Return the parent of the socket's directory: None, the usual one, unless its path is too long for a socket."""
    longest = len(os.fsencode(tempfile.gettempdir())) + len("/dragoman-12345678/socket")
    return None if longest <= _LONGEST_PATH else "/tmp"  # noqa: S108 -- a new directory in it, for this user alone
