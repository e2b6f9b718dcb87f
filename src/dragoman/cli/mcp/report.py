"""The report of `dragoman mcp`: one JSON object for programs, text for people."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from dragoman.agent.servers.mcp_tool import name_tools
from dragoman.agent.servers.session_servers import SessionServer, SessionServers
from dragoman.assistant.profile import AgentServer, Include, UnderstoodKey
from dragoman.assistant.profile.servers import Permission
from dragoman.mcp.definition import describe
from dragoman.mcp.info import PromptInfo, ServerState, ServerStatus, ToolInfo
from dragoman.text import one_line

ORIGINS = {"client": "from the client", "agent": "from the agent file"}

NO_SERVERS = (
    "No MCP servers are configured here. `dragoman mcp add NAME -- COMMAND` adds one to the agent file, and a "
    "client can bring its own (`--mcp FILE`)."
)

BOLD, DIM, GREEN, RED, YELLOW = "1", "2", "32", "31", "33"
_STATES = {"ready": GREEN, "connecting": YELLOW, "failed": RED, "stopped": RED}

_MIN_DESCRIPTION = 20
"""In characters. If a line has less space for it, the line becomes longer than the terminal."""


class McpToolRow(msgspec.Struct, frozen=True):
    """A tool, with its inclusion and its permission."""

    name: str
    model_name: str
    include: Include
    permission: Permission | None
    """None if the session's mode decides."""
    reads_only: bool
    description: str
    parameters: dict[str, Any]
    """The JSON schema of its arguments."""


class McpServerRow(msgspec.Struct, frozen=True):
    """A server with its state and its tools."""

    name: str
    origin: Literal["client", "agent"]
    transport: str | None
    state: ServerState
    reason: str | None = None
    what: str = ""
    """The command or URL, without secrets."""
    tools: Sequence[McpToolRow] = ()
    prompts: Sequence[PromptInfo] = ()


class McpReport(msgspec.Struct, frozen=True):
    """The servers, their conflicts and the agent file."""

    servers: Sequence[McpServerRow]
    shadowed: Sequence[str]
    notices: Sequence[str]
    agent_file: str | None = None
    understood: Sequence[UnderstoodKey] = ()
    """How we understand each key of a file written for TsAgent."""

    @property
    def is_good(self) -> bool:
        """Whether every server can be used."""
        return all(server.state == "ready" for server in self.servers)


def server_rows(servers: SessionServers) -> list[McpServerRow]:
    """Return the state of each server of a session."""
    members = {member.name: member for member in servers.members()}
    pairs = [(member.name, tool.name) for member in members.values() for tool in member.server.tools]
    names = name_tools(pairs)
    return [_server(status, members.get(status.name), names) for status in servers.statuses()]


def _server(status: ServerStatus, member: SessionServer | None, names: dict[tuple[str, str], str]) -> McpServerRow:
    if member is None:
        return McpServerRow(status.name, "agent", status.transport, status.state, status.reason)
    return McpServerRow(
        status.name,
        "agent" if member.is_agents else "client",
        status.transport,
        status.state,
        status.reason,
        describe(member.server.definition),
        [_tool(member, tool, names[member.name, tool.name]) for tool in member.server.tools],
        member.server.prompts,
    )


def _tool(member: SessionServer, tool: ToolInfo, name: str) -> McpToolRow:
    permission = member.origin.permission_of(tool.name) if isinstance(member.origin, AgentServer) else None
    include = member.include(tool.name)
    description = tool.description or tool.title
    return McpToolRow(tool.name, name, include, permission, tool.reads_only, description, tool.parameters)


class McpReportText:
    """Formats a report for people. `width` is the width of their terminal, or None without a terminal."""

    def __init__(self, *, width: int | None, colours: bool) -> None:
        self._width = width
        self._colours = colours

    def lines(self, report: McpReport) -> Iterator[str]:
        """Yield the lines of a report."""
        yield self._paint(DIM, f"agent file: {one_line(report.agent_file or 'none')}")
        yield from self._table(report.understood)
        for notice in report.notices:
            yield from (self._paint(YELLOW, one_line(line)) for line in notice.splitlines())
        if not report.servers:
            yield ""
            yield NO_SERVERS
        for server in report.servers:
            yield ""
            yield from self._server(server)

    def _server(self, server: McpServerRow) -> Iterator[str]:
        count = len(server.tools)
        state = f"ready, {count} tool{'' if count == 1 else 's'}" if server.state == "ready" else server.state
        how = f"{server.transport}, " if server.transport else ""
        head = f"{self._paint(BOLD, one_line(server.name))} ({how}{ORIGINS[server.origin]}): "
        yield head + self._paint(_STATES[server.state], state)
        if server.what:
            yield self._paint(DIM, f"  {one_line(server.what)}")
        for line in (server.reason or "").splitlines():
            yield f"  {one_line(line)}"
        yield from self._rows([self._cells(server.name, tool) for tool in server.tools])
        if server.prompts:
            yield f"  prompts: {', '.join(one_line(prompt.name) for prompt in server.prompts)}"

    def _cells(self, server: str, tool: McpToolRow) -> tuple[str, ...]:
        permission = f"permission: {tool.permission}" if tool.permission else ""
        reads = "reads" if tool.reads_only else ""
        is_renamed = tool.model_name != f"{server}__{tool.name}"
        name = f"{one_line(tool.name)} (as {tool.model_name})" if is_renamed else one_line(tool.name)
        return name, tool.include, permission, reads, one_line(tool.description)

    def _table(self, understood: Sequence[UnderstoodKey]) -> Iterator[str]:
        if understood:
            yield "It was written for TsAgent. dragoman reads it as:"
        states = {True: "used", False: "ignored"}
        yield from self._rows([(one_line(row.key), states[row.used], one_line(row.meaning)) for row in understood])

    def _rows(self, rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
        for *cells, last in rows:
            padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True) if width]
            yield self._fit("  " + "  ".join(padded) + "  ", last).rstrip()

    def _fit(self, start: str, description: str) -> str:
        room = len(description) if self._width is None else max(self._width - len(start), _MIN_DESCRIPTION)
        shown = description if len(description) <= room else f"{description[: room - 1]}…"
        return start + self._paint(DIM, shown)

    def _paint(self, colour: str, text: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._colours and text else text
