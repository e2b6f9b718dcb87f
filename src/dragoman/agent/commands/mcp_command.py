"""The command `/mcp`: how the session's servers are, and changing them."""

import re
import shlex
from collections.abc import Awaitable, Callable

from dragoman.agent.commands.command import SlashCommand
from dragoman.agent.prepared_call import fenced
from dragoman.agent.servers.session_servers import ClientServer, SessionServer
from dragoman.agent.session import Session
from dragoman.agent.turn import Turn
from dragoman.errors import ServerFailure
from dragoman.mcp.definition import Definition, HttpServer, SseServer, StdioServer, describe
from dragoman.mcp.info import ServerStatus

USAGE = "`/mcp`, `/mcp restart NAME`, `/mcp add NAME COMMAND ARGS…` or `/mcp add NAME URL`, `/mcp remove NAME`"

_VARIABLE = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_STATES = {"ready": "ready", "connecting": "connecting…", "failed": "**failed**", "stopped": "stopped"}


async def _mcp(turn: Turn) -> None:
    await turn.say(await _answer(turn.session, turn.arguments))


async def _answer(session: Session, words: str) -> str:
    verb, _, rest = words.partition(" ")
    if not verb:
        return _table(session)
    if verb not in _VERBS or not rest.strip():
        return f"Expected {USAGE}."
    return await _VERBS[verb](session, rest.strip())


def _table(session: Session) -> str:
    members = {member.name: member for member in session.mcp.servers.members()}
    statuses = session.mcp.servers.statuses()
    if not statuses:
        return "There are no MCP servers in this session. The client or the agent names them, or `/mcp add` does."
    rows = ["| Server | From | State | Tools | What |", "| --- | --- | --- | --- | --- |"]
    origin_of = session.mcp.servers.origin_of
    rows += [_row(status, origin_of(status.name), members.get(status.name)) for status in statuses]
    reasons = [f"**{status.name}**: \n{fenced(status.reason)}" for status in statuses if status.reason]
    shadowed = [
        f"The agent's server {name} is not used: the client has given one of that name."
        for name in session.mcp.servers.shadowed()
    ]
    return "\n\n".join(["\n".join(rows), *reasons, *shadowed])


def _row(status: ServerStatus, origin: str, member: SessionServer | None) -> str:
    what = _cell(describe(member.server.definition)) if member else ""
    cells = (_cell(status.name), _cell(origin), _STATES[status.state], str(status.tools), what)
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


async def _restart(session: Session, name: str) -> str:
    server = session.mcp.servers.find(name).server
    await server.restart()
    await server.settled()
    if server.state == "ready":
        return f"{name} is ready, with {len(server.tools)} tools."
    return f"{name} failed again: {server.reason or 'it was stopped meanwhile'}"


async def _add(session: Session, words: str) -> str:
    server = session.mcp.servers.add(ClientServer(parse_server(words))).server
    await server.settled()
    if server.state == "ready":
        return f"{server.name} is ready, with {len(server.tools)} tools. It is here until the session is closed."
    return f"{server.name} failed: {server.reason or 'it was stopped meanwhile'}"


async def _remove(session: Session, name: str) -> str:
    await session.mcp.servers.remove(name)
    return f"{name} is gone from this session."


_VERBS: dict[str, Callable[[Session, str], Awaitable[str]]] = {"restart": _restart, "add": _add, "remove": _remove}


def parse_server(words: str) -> Definition:
    """Read `NAME [VARIABLE=VALUE…] COMMAND ARGS…` or `NAME [--sse] URL`; raises ServerFailure in words."""
    try:
        name, *rest = shlex.split(words)
    except ValueError as error:
        raise ServerFailure(f"this cannot be read: {error}; expected {USAGE}") from None
    is_sse = rest[:1] == ["--sse"]
    rest = rest[is_sse:]
    if rest and rest[0].startswith(("http://", "https://")):
        return SseServer(name, rest[0]) if is_sse else HttpServer(name, rest[0])
    env: list[tuple[str, str]] = []
    while rest and (variable := _VARIABLE.fullmatch(rest[0])):
        env.append((variable[1], variable[2]))
        rest.pop(0)
    if not rest:
        raise ServerFailure(f"{name} has no command and no URL; expected {USAGE}")
    return StdioServer(name, rest[0], tuple(rest[1:]), tuple(env))


MCP_COMMAND = SlashCommand(
    "mcp", "Show the MCP servers of this session, or change them", _mcp, "restart|add|remove NAME …"
)
