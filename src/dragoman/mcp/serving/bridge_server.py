"""Functions for an agent that only starts MCP servers: a Unix socket, and the program that relays to it."""

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
from dragoman.mcp.serving import bridge
from dragoman.mcp.serving.function_server import CANCELLED, FunctionServer, FunctionSession, decode_params
from dragoman.mcp.serving.listening import listening
from dragoman.mcp.serving.tool_result import Result
from dragoman.wire import IncomingRequest, Peer, StdioTransport

TOKEN_TIMEOUT_S = 10.0
"""From the start of the bridge's connection to its token, which it sends at once."""

_LONGEST_PATH = 100
"""A little less than the shortest limit on the path of a socket."""

_TOKEN_BYTES = 32


@asynccontextmanager
async def serve_relay(server: FunctionServer) -> AsyncGenerator[StdioServer]:
    """Serve functions to whoever starts the program that this gives; leaving ends every conversation."""
    token = secrets.token_hex(_TOKEN_BYTES)
    with (
        tempfile.TemporaryDirectory(prefix="dragoman-", dir=_place()) as directory,  # which is for this user alone
        closing(_listen(Path(directory) / "socket")) as listener,
    ):
        program = ("-I", "-S", bridge.__file__, listener.getsockname())
        async with listening(listener, partial(_converse, server, f"{token}\n".encode())):
            yield StdioServer(server.name, sys.executable, program, ((bridge.TOKEN, token),))


class _Speaker:
    """Hands what comes over a socket to a conversation."""

    def __init__(self, server: FunctionServer, transport: StdioTransport) -> None:
        self._conversation = FunctionSession(server)
        self._peer = Peer(transport, self, cancel_method=CANCELLED)

    async def speak(self) -> None:
        async with self._peer:
            await self._peer.wait_ended()

    async def request(self, request: IncomingRequest) -> Result:
        params = decode_params(request.params)
        return await self._conversation.answer(request.method, params, request.id, self._peer.notify)

    def notification(self, method: str, params: Raw) -> None:
        self._conversation.take(method, decode_params(params))


async def _converse(server: FunctionServer, token: bytes, client: socket.socket) -> None:
    if await _is_trusted(client, token):
        transport = StdioTransport(os.dup(client.fileno()), os.dup(client.fileno()))
        client.close()
        await _Speaker(server, transport).speak()


async def _is_trusted(client: socket.socket, token: bytes) -> bool:
    """Tell whether the token comes first; nothing beyond it is read."""
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


def _place() -> str | None:
    """Return where the directory is made: the usual place, unless the path of a socket would be too long there."""
    longest = len(os.fsencode(tempfile.gettempdir())) + len("/dragoman-12345678/socket")
    return None if longest <= _LONGEST_PATH else "/tmp"  # noqa: S108 -- a new directory in it, for this user alone
