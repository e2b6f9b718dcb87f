"""Functions for an agent without MCP over ACP: a Unix socket, and a relay program that the agent starts.

Every agent can start an MCP server, so this needs no capability. The relay connects to the socket and copies bytes.
"""

import asyncio
import hmac
import logging
import os
import secrets
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Raw

from dragoman.mcp.definition import StdioServer
from dragoman.mcp.serving import relay
from dragoman.mcp.serving.function_call import McpResult
from dragoman.mcp.serving.function_server import CANCELLED, FunctionServer, FunctionSession, decode_params
from dragoman.wire import IncomingRequest, Peer, StreamTransport

TOKEN_TIMEOUT_S = 10.0
"""How long to wait for the token, which the relay sends as soon as it is connected."""

_LONGEST_PATH = 100
"""Slightly less than the shortest limit on the path of a socket."""

_TOKEN_BYTES = 32

_log = logging.getLogger("dragoman.mcp")


@asynccontextmanager
async def serve_relay(server: FunctionServer) -> AsyncGenerator[StdioServer]:
    """Yield the program that an agent starts to use the functions. Leaving the context ends every conversation."""
    token = secrets.token_hex(_TOKEN_BYTES)
    conversations: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(_converse(server, f"{token}\n".encode(), reader, writer))
        conversations.add(task)
        task.add_done_callback(conversations.discard)
        task.add_done_callback(lambda _: writer.close())  # here, because a task may be cancelled before it starts

    with tempfile.TemporaryDirectory(prefix="dragoman-", dir=_socket_directory()) as directory:  # mode 0700
        path = Path(directory) / "socket"
        listener = await asyncio.start_unix_server(accept, path)
        try:
            path.chmod(0o600)
            program = ("-I", "-S", relay.__file__, str(path))
            yield StdioServer(server.name, sys.executable, program, ((relay.TOKEN, token),))
        finally:
            listener.close()
            for task in conversations:
                task.cancel()
            if conversations:
                await asyncio.wait(conversations)


class _SocketServer:
    """Answers the messages of one socket."""

    def __init__(self, server: FunctionServer, transport: StreamTransport) -> None:
        self._session = FunctionSession(server)
        self._peer = Peer(transport, self, cancel_method=CANCELLED)

    async def serve(self) -> None:
        async with self._peer:
            await self._peer.wait_ended()

    async def request(self, request: IncomingRequest) -> McpResult:
        params = decode_params(request.params)
        return await self._session.answer(request.method, params, request.id, self._peer.notify)

    def notification(self, method: str, params: Raw) -> None:
        self._session.receive(method, decode_params(params))


async def _converse(
    server: FunctionServer, token: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    try:
        if await _is_trusted(reader, token):
            await _SocketServer(server, StreamTransport(reader, writer)).serve()
    except Exception:  # noqa: BLE001 -- boundary: task top
        _log.exception("a connection to the functions failed")


async def _is_trusted(reader: asyncio.StreamReader, token: bytes) -> bool:
    """Return whether the connection starts with the token."""
    try:
        async with asyncio.timeout(TOKEN_TIMEOUT_S):
            return hmac.compare_digest(await reader.readexactly(len(token)), token)
    except (TimeoutError, OSError, asyncio.IncompleteReadError):
        return False


def _socket_directory() -> str | None:
    """Return the parent of the socket's directory. None means the default, unless its path is too long for a socket."""
    longest = len(os.fsencode(tempfile.gettempdir())) + len("/dragoman-12345678/socket")
    return None if longest <= _LONGEST_PATH else "/tmp"  # noqa: S108 -- a new directory in it, for this user only
