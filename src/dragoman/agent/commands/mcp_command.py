"""The command `/mcp` shows the state of the session's servers and changes them."""

import re
import shlex
from collections.abc import Awaitable, Callable
from itertools import takewhile

from dragoman.agent.commands.command import SlashCommand
from dragoman.agent.servers.session_servers import ClientServer, SessionServer
from dragoman.agent.sessions.session import Session
from dragoman.agent.turns.turn import Turn
from dragoman.errors import McpServerError
from dragoman.mcp.definition import Definition, HttpServer, SseServer, StdioServer, describe
from dragoman.mcp.info import ServerStatus
from dragoman.text import one_line
from dragoman.text.fence import fenced

USAGE = (
    "`/mcp`, `/mcp restart NAME`, `/mcp resources NAME [ADDRESS…]`, `/mcp add NAME COMMAND ARGS…` or "
    "`/mcp add NAME URL`, `/mcp remove NAME`"
)

MAX_LISTED = 100
"""The number of resources that are shown per server."""

_VARIABLE = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_FLAGS = frozenset(("--sse", "--no-roots"))
_STATES = {"ready": "ready", "connecting": "connecting…", "failed": "**failed**", "stopped": "stopped"}


async def _mcp(turn: Turn) -> None:
    await turn.say(await _answer(turn.session, turn.arguments))


async def _answer(session: Session, text: str) -> str:
    verb, _, rest = text.partition(" ")
    if not verb:
        return _table(session)
    if verb not in _VERBS or not rest.strip():
        return f"Expected {USAGE}."
    return await _VERBS[verb](session, rest.strip())


def _table(session: Session) -> str:
    members = {member.name: member for member in session.mcp.servers.members()}
    statuses = session.mcp.servers.statuses()
    if not statuses:
        return (
            "There are no MCP servers in this session. The client or the agent provides them, or `/mcp add` adds one."
        )
    rows = ["| Server | From | State | Tools | Command or URL |", "| --- | --- | --- | --- | --- |"]
    origin_of = session.mcp.servers.origin_of
    rows += [_row(status, origin_of(status.name), members.get(status.name)) for status in statuses]
    reasons = [f"**{status.name}**: \n{fenced(status.reason)}" for status in statuses if status.reason]
    shadowed = [
        f"The agent's server {name} is not used: the client provides one with the same name."
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
    server = await session.mcp.restart(name)
    await session.mcp.settled(server)
    if server.state == "ready":
        return f"{name} is ready, with {len(server.tools)} tools."
    return f"{name} failed again: {server.reason or 'it was stopped'}"


async def _add(session: Session, text: str) -> str:
    server = session.mcp.servers.add(ClientServer(parse_server(text))).server
    await session.mcp.settled(server)
    if server.state == "ready":
        return f"{server.name} is ready, with {len(server.tools)} tools. It stays until the session is closed."
    return f"{server.name} failed: {server.reason or 'it was stopped'}"


async def _remove(session: Session, name: str) -> str:
    await session.mcp.servers.remove(name)
    return f"{name} was removed from this session."


async def _resources(session: Session, text: str) -> str:
    """List the resources of a server, or complete the beginning of an address."""
    name, _, beginning = text.partition(" ")
    resources = session.mcp.resources
    if beginning.strip():
        found = await resources.complete(name, beginning.strip())
        return fenced("\n".join(found)) if found else f"{name} has no address that starts with this."
    listed = [(each.uri, each.title or each.name) for each in await resources.list(name)]
    listed += [(each.uri_template, each.title or each.name) for each in await resources.templates(name)]
    if not listed:
        return f"{name} lists no resources."
    more = f"\n… and {len(listed) - MAX_LISTED:,} more" if len(listed) > MAX_LISTED else ""
    lines = [f"{uri}  {one_line(title, 100)}" for uri, title in listed[:MAX_LISTED]]
    return f"{fenced(chr(10).join(lines) + more)}\n\n`@{name}:ADDRESS` in a prompt attaches one."


_VERBS: dict[str, Callable[[Session, str], Awaitable[str]]] = {
    "restart": _restart,
    "resources": _resources,
    "add": _add,
    "remove": _remove,
}


def parse_server(text: str) -> Definition:
    """Parse `NAME [--no-roots] [VARIABLE=VALUE…] COMMAND ARGS…` or `NAME [--no-roots] [--sse] URL`.

    Raises McpServerError.
    """
    try:
        name, *rest = shlex.split(text)
    except ValueError as error:
        raise McpServerError(f"this is not valid: {error}; expected {USAGE}") from None
    flags = list(takewhile(_FLAGS.__contains__, rest))
    rest, roots = rest[len(flags) :], "--no-roots" not in flags
    if rest and rest[0].startswith(("http://", "https://")):
        return (SseServer if "--sse" in flags else HttpServer)(name, rest[0], roots=roots)
    env: list[tuple[str, str]] = []
    while rest and (variable := _VARIABLE.fullmatch(rest[0])):
        env.append((variable[1], variable[2]))
        rest.pop(0)
    if not rest:
        raise McpServerError(f"{name.partition('=')[0]} has no command and no URL; expected {USAGE}")
    return StdioServer(name, rest[0], tuple(rest[1:]), tuple(env), roots=roots)


MCP_COMMAND = SlashCommand(
    "mcp", "Show the MCP servers of this session, or change them", _mcp, "restart|resources|add|remove NAME …"
)
