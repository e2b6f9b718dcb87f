"""MCP servers given to a session."""

import asyncio
import os
import sys
import time
from pathlib import Path

from dragoman.check.driver import mcp_server
from dragoman.check.driver.desk import Object
from dragoman.check.driver.http_server import http_server
from dragoman.check.driver.link import ORPHAN_S, Link
from dragoman.check.driver.scenes.sessions import tidy
from dragoman.check.driver.scenes.turns import prompt
from dragoman.check.driver.stage import Stage

CONNECT_S = 3.0
"""For a server to be started: an interpreter on a busy machine takes one."""

LOOK_S = 0.02


async def give_server(stage: Stage) -> None:
    """Give a session a server, and see that it is started, is no other session's, and ends with the agent."""
    if not stage.has_process:
        return
    marks = stage.root / "mcp-marks"
    marks.mkdir()
    server: Object = {
        "name": "check",
        "command": sys.executable,
        "args": [str(Path(mcp_server.__file__)), str(marks)],
        "env": [{"name": "DRAGOMAN_CHECK", "value": "1"}],
    }
    async with stage.greeted("an MCP server") as link:
        asked_s = time.monotonic()
        session_id = await stage.new_session(link, "served", [server])
        if session_id is None:
            return
        connect_s = min(CONNECT_S, stage.options.timeout_s)
        started = await _started(marks, 1, connect_s / 3)
        if not started and stage.options.prompt:
            # Some start them with the first prompt.
            await link.finish(prompt(link, session_id, stage.options.turns[0].prompt), stage.options.turn_timeout_s)
            started = await _started(marks, 1, connect_s)
        if not started:
            if stage.options.prompt:
                link.note_event("mcp missed check")
            return
        link.note_event("mcp connected check")
        await _open_another(stage, link, marks, time.monotonic() - asked_s)
        if await link.leave(stage.options.exit_timeout_s):
            await link.see_orphans(await _left(marks))


async def give_http_server(stage: Stage) -> None:
    """Give a session a server over HTTP, if the agent says that it takes those."""
    if not stage.offers("mcpCapabilities.http"):
        return
    async with http_server() as url, stage.joined("an MCP server over HTTP") as link:
        server: Object = {"type": "http", "name": "check", "url": url, "headers": []}
        session_id = await stage.new_session(link, "served-over-http", [server])
        if session_id is not None:
            await tidy(stage, link, session_id)


async def _open_another(stage: Stage, link: Link, marks: Path, start_s: float) -> None:
    """Open a session without a server, and see whether it starts one in twice the time that the first took."""
    before = len(_pids(marks))
    other = await stage.new_session(link, "not-served")
    if other is not None and stage.options.prompt:
        await link.finish(prompt(link, other, stage.options.turns[0].prompt), stage.options.turn_timeout_s)
    leaked = await _started(marks, before + 1, min(2 * start_s, CONNECT_S))
    link.note_event("mcp leaked check" if leaked else "mcp alone check")


async def _started(marks: Path, count: int, timeout_s: float) -> bool:
    """Wait until so many servers have left their marks; False when they do not in time."""
    until = time.monotonic() + timeout_s
    while len(_pids(marks)) < count and time.monotonic() < until:  # noqa: ASYNC110 -- other processes leave the marks
        await asyncio.sleep(LOOK_S)
    return len(_pids(marks)) >= count


async def _left(marks: Path) -> int:
    """Count the servers that still run a while after their agent has ended."""
    until = time.monotonic() + ORPHAN_S
    while (left := sum(map(_is_alive, _pids(marks)))) and time.monotonic() < until:  # noqa: ASYNC110 -- processes
        await asyncio.sleep(LOOK_S)
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
