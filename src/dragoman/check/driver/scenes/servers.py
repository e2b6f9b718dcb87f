"""Scenes about a session's MCP servers, and a small MCP server over HTTP that answers each POST with JSON."""

import asyncio
import os
import re
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from dragoman.check.driver import mcp_server
from dragoman.check.driver.connection import ORPHAN_S, ProbeConnection
from dragoman.check.driver.mcp_server import answer
from dragoman.check.driver.scenes.turns import finish
from dragoman.check.driver.scenes.work import run
from dragoman.check.driver.stage import Stage
from dragoman.check.judge.message import Object, part, text

HOST = "127.0.0.1"
MAX_BODY_BYTES = 1_000_000


@asynccontextmanager
async def http_server() -> AsyncGenerator[str]:
    """Serve at the yielded address until the context ends."""
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
        pass  # the agent disconnected or does not speak HTTP, and the judge sees its messages to us
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


CONNECT_S = 3.0
"""Time for a server to start. An interpreter on a busy machine needs a second."""

POLL_S = 0.02

_UNTRUSTED = re.compile(
    r"untrusted|(?:\bnot|n't)\s+(?:\w+\s+){0,4}trust|trust\w*\s+(?:\w+\s+){0,3}(?:folder|directory|workspace)",
    re.IGNORECASE,
)
"""Phrases of agents that start no servers in a directory before the user trusts it."""


async def add_server(stage: Stage) -> None:
    """Pass a server to a session, and check that it starts, belongs only to that session, and exits with the agent."""
    is_offered = stage.dialect.version == 1 or stage.offers("mcpCapabilities.stdio")
    if not stage.has_process or not is_offered:
        return
    marks = stage.root / f"mcp-marks-{stage.dialect.version}"
    marks.mkdir()
    server: Object = {
        **({} if stage.dialect.version == 1 else {"type": "stdio"}),
        "name": "check",
        "command": sys.executable,
        "args": [str(Path(mcp_server.__file__)), str(marks)],
        "env": [{"name": "DRAGOMAN_CHECK", "value": "1"}],
    }
    async with stage.greeted("an MCP server") as connection:
        asked_s = time.monotonic()
        session_id = await stage.new_session(connection, "served", [server])
        if session_id is None:
            return
        connect_s = min(CONNECT_S, stage.options.timeout_s)
        started = await _started(marks, 1, connect_s / 3)
        if not started and stage.options.prompt:
            # Some agents start servers with the first prompt.
            await _prompt(stage, connection, session_id)
            started = await _started(marks, 1, connect_s)
        if not started:
            if stage.options.prompt:
                connection.record_event("mcp untrusted check" if _says_untrusted(connection) else "mcp missed check")
            return
        connection.record_event("mcp connected check")
        await _open_another(stage, connection, marks, time.monotonic() - asked_s)
        if await connection.leave(stage.options.exit_timeout_s):
            await connection.record_orphans(await _count_left(marks))


def _says_untrusted(connection: ProbeConnection) -> bool:
    """Return whether the agent says, to us or on stderr, that it does not trust the session's directory."""
    contents = (part(part(each, "update"), "content") for each in connection.updates)
    output = "".join(text(each, "text") or "" for each in contents)
    lines = (
        each.line.decode(errors="replace") for each in connection.judge.conversation.entries if each.sender == "agent"
    )
    return any(map(_UNTRUSTED.search, (output, connection.transport.stderr_tail, *lines)))


async def add_http_server(stage: Stage) -> None:
    """Pass a server over HTTP to a session, if the agent supports this."""
    if not stage.offers("mcpCapabilities.http"):
        return
    async with http_server() as url, stage.joined("an MCP server over HTTP") as connection:
        server: Object = {"type": "http", "name": "check", "url": url, "headers": []}
        session_id = await stage.new_session(connection, "served-over-http", [server])
        if session_id is not None:
            await stage.clean_up(connection, session_id)


async def _open_another(stage: Stage, connection: ProbeConnection, marks: Path, start_s: float) -> None:
    """Open a session without a server. Record whether it starts one in twice the time that the first session needed."""
    before = len(_pids(marks))
    other = await stage.new_session(connection, "not-served")
    if other is not None and stage.options.prompt:
        await _prompt(stage, connection, other)
    leaked = await _started(marks, before + 1, min(2 * start_s, CONNECT_S))
    connection.record_event("mcp leaked check" if leaked else "mcp alone check")


async def _prompt(stage: Stage, connection: ProbeConnection, session_id: str) -> None:
    """Send a prompt and wait for the end of its work, which in version 2 comes after its answer."""
    prompt = stage.options.turns[0].prompt
    if stage.dialect.version == 1:
        await finish(stage, connection, connection.prompt(session_id, prompt))
    else:
        await run(stage, connection, session_id, prompt)


async def _started(marks: Path, count: int, timeout_s: float) -> bool:
    """Wait until this many servers have left their markers. Return False on a timeout."""
    until = time.monotonic() + timeout_s
    while len(_pids(marks)) < count and time.monotonic() < until:  # noqa: ASYNC110 -- other processes write the markers
        await asyncio.sleep(POLL_S)
    return len(_pids(marks)) >= count


async def _count_left(marks: Path) -> int:
    """Count the servers that still run a while after their agent has exited."""
    until = time.monotonic() + ORPHAN_S
    while (left := sum(map(_is_alive, _pids(marks)))) and time.monotonic() < until:  # noqa: ASYNC110 -- processes
        await asyncio.sleep(POLL_S)
    return left


def _pids(marks: Path) -> list[int]:
    return [int(each.name) for each in marks.iterdir()]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
