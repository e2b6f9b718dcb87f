"""A small MCP server over HTTP, for an agent that says that it takes those: it answers each POST with JSON."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from dragoman.check.driver.mcp_server import answer

HOST = "127.0.0.1"
MAX_BODY_BYTES = 1_000_000


@asynccontextmanager
async def http_server() -> AsyncGenerator[str]:
    """Serve until left, at the address returned."""
    server = await asyncio.start_server(_serve, HOST, 0)
    try:
        yield f"http://{HOST}:{server.sockets[0].getsockname()[1]}/mcp"
    finally:
        server.close()


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        body = await reader.readexactly(min(_length(head), MAX_BODY_BYTES))
        writer.write(_respond(head, body))
        await writer.drain()
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
        pass  # it went away, or was no client of HTTP: the judge sees what it says to us
    finally:
        writer.close()


def _length(head: str) -> int:
    for line in head.split("\r\n")[1:]:
        name, _, value = line.partition(":")
        if name.lower() == "content-length" and value.strip().isdigit():
            return int(value)
    return 0


def _respond(head: str, body: bytes) -> bytes:
    if not head.startswith("POST "):
        return _response("405 Method Not Allowed")
    try:
        message = msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError:
        return _response("400 Bad Request")
    reply = answer(message)
    return _response("202 Accepted") if reply is None else _response("200 OK", msgspec.json.encode(reply))


def _response(status: str, body: bytes = b"") -> bytes:
    headers = ("Content-Type: application/json", f"Content-Length: {len(body)}", "Connection: close")
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""]).encode() + body
