"""`dragoman mcp`: connect to a session's MCP servers and show each one's tools or failure."""

import argparse
import asyncio
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from dragoman.cli.agent_choice import choose_directory
from dragoman.cli.exit_codes import FAILED, USAGE
from dragoman.cli.mcp.files import read_client_files
from dragoman.cli.output import print_error, print_json, start_log
from dragoman.errors import DragomanError
from dragoman.event_loop import run
from dragoman.home import home
from dragoman.text import one_line

if TYPE_CHECKING:
    from dragoman.agent.servers.agent_resources import AgentResources
    from dragoman.agent.servers.session_servers import SessionServer
    from dragoman.assistant.profile import ProfileChoice
    from dragoman.cli.mcp.report import McpReport, McpServerRow
    from dragoman.mcp.config_files import ServersFile


def main(options: argparse.Namespace) -> int:
    """Show, edit, call or log in to MCP servers. Return 1 if a server failed, 2 for bad input."""
    if options.action == "call":
        from dragoman.cli.mcp.calling import call_tool

        return call_tool(options)
    if options.action in {"login", "logout"}:
        from dragoman.cli.mcp.login import log_in_or_out

        return log_in_or_out(options)
    if options.action:
        from dragoman.cli.mcp.editing import edit_servers

        return edit_servers(options)
    start_log("ERROR")
    try:
        report = run(_look(options))
    except DragomanError as error:
        print_error("mcp", error)
        return USAGE
    _print(report, as_json=options.format == "json")
    return 0 if report.is_good else FAILED


async def _look(options: argparse.Namespace) -> "McpReport":
    """Connect as a session would. Raises InvalidInputError, or ProfileError for the user's own agent file."""
    from dragoman.agent.servers.agent_resources import AgentResources
    from dragoman.assistant.setup import AgentSetup

    cwd = str(choose_directory(options.cwd))
    choice = AgentSetup(home(), agent_file=Path(options.agent) if options.agent else None).choose_profile(cwd)
    brought = read_client_files(options.mcp, cwd)
    resources = AgentResources(home())
    try:
        return await _connect(resources, cwd, choice, brought, timeout_s=options.start_timeout)
    finally:
        await resources.close()


async def _connect(
    resources: "AgentResources", cwd: str, choice: "ProfileChoice", brought: "ServersFile", *, timeout_s: float | None
) -> "McpReport":
    from dragoman.agent.servers.server_pool import IdleHost
    from dragoman.agent.servers.session_servers import ClientServer, SessionServers
    from dragoman.cli.mcp.report import McpReport, server_rows
    from dragoman.mcp.connector import ServerEnvironment

    progress = _Progress()
    environment = ServerEnvironment(cwd, resources.supervise)
    servers = SessionServers(environment, IdleHost(cwd), resources.pool, lambda: progress.show(servers.members()))
    try:
        servers.set_client_servers([ClientServer(definition) for definition in brought.servers])
        servers.set_agent_servers(choice.found.profile.servers)
        # Collected before the servers connect, because a failure has its own row in the report.
        notices = [*_notices(choice), *brought.notes, *servers.pop_notices()]
        await _settle(servers.members(), timeout_s)
        rows = [*(_judge(row, timeout_s) for row in server_rows(servers)), *_refused(brought)]
        reported = tuple(row.reason for row in rows if row.reason)
        found = choice.found
        return McpReport(
            rows,
            servers.shadowed(),
            [notice for notice in notices if not notice.endswith(reported)],
            None if found.path is None else str(found.path),
            found.understood,
        )
    finally:
        progress.end()
        await servers.close()


async def _settle(members: "Sequence[SessionServer]", timeout_s: float | None) -> None:
    waiting = [asyncio.create_task(member.server.settled()) for member in members]
    if waiting:
        _, late = await asyncio.wait(waiting, timeout=timeout_s)
        for task in late:
            task.cancel()


def _judge(row: "McpServerRow", timeout_s: float | None) -> "McpServerRow":
    if row.state != "connecting":
        return row
    late = f"it was not ready within {timeout_s:g} s" if timeout_s is not None else "it is restarting"
    return msgspec.structs.replace(row, reason="\n".join(filter(None, (late, row.reason))))


def _refused(brought: "ServersFile") -> "list[McpServerRow]":
    from dragoman.cli.mcp.report import McpServerRow

    return [
        McpServerRow(problem.server or "", "client", None, "failed", problem.message) for problem in brought.problems
    ]


def _notices(choice: "ProfileChoice") -> list[str]:
    if choice.pending is None:
        return [choice.notice] if choice.notice else []
    path = choice.pending.path
    agree = f"A session in an editor asks you about it. `--agent {path}` uses it now and starts its servers."
    changes = "\n".join(f"- {change}" for change in choice.changes)
    return [f"{choice.notice} {agree}\n{changes}"]


def _print(report: "McpReport", *, as_json: bool) -> None:
    from dragoman.cli.mcp.report import McpReportText

    if as_json:
        print_json(msgspec.json.encode(report))
        return
    is_terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if is_terminal else None
    for line in McpReportText(width=width, colours=is_terminal and not os.environ.get("NO_COLOR")).lines(report):
        print(line)


class _Progress:
    """A progress line on stderr that names the servers still connecting. Prints nothing if stderr is not a terminal."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr.isatty()

    def show(self, members: "Sequence[SessionServer]") -> None:
        """Print how many servers are ready and which are not."""
        waiting = [one_line(member.name) for member in members if member.server.state == "connecting"]
        if self._is_shown:
            done = f"{len(members) - len(waiting)} of {len(members)} MCP servers done"
            line = f"{done}; waiting for {', '.join(waiting)}" if waiting else done
            self._write(line[: shutil.get_terminal_size().columns - 1])

    def end(self) -> None:
        """Clear the line."""
        if self._is_shown:
            self._write("")
            self._is_shown = False

    def _write(self, line: str) -> None:
        print(f"\r\x1b[2K{line}", end="", file=sys.stderr, flush=True)
