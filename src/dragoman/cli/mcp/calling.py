"""`dragoman mcp call`: call one tool of one MCP server from the command line."""

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.cli.agent_choice import choose_directory
from dragoman.cli.exit_codes import FAILED, USAGE
from dragoman.cli.mcp.files import InvalidInputError, read_client_files
from dragoman.cli.options import UsageError
from dragoman.cli.output import print_error, print_json, start_log
from dragoman.errors import DragomanError, McpServerError
from dragoman.event_loop import run
from dragoman.home import home
from dragoman.mcp.definition import Definition, HttpServer, SseServer
from dragoman.protocol import v1
from dragoman.text import clean_text

if TYPE_CHECKING:
    from dragoman.mcp.info import CallResult


UNNAMED = "server"
"""The name of a server given only by its URL."""


def call_tool(options: argparse.Namespace) -> int:
    """Call the tool and print its result. Return 1 if the tool or the server failed, 2 for bad input."""
    start_log("ERROR")
    try:
        definition, tool, arguments = _read(options)
        result = run(_call(definition, tool, arguments, options))
    except McpServerError as failure:
        print_error("mcp call", failure)
        return FAILED
    except DragomanError as problem:
        print_error("mcp call", problem)
        return USAGE
    if options.format == "json":
        print_json(msgspec.json.encode(result))
    else:
        for line in _lines(result):
            print(clean_text(line))
    return FAILED if result.failed else 0


def find_server(options: argparse.Namespace, name: str) -> Definition:
    """Return the server of this name from the client's files or the agent file. Raises DragomanError."""
    from dragoman.assistant.setup import AgentSetup

    cwd = str(choose_directory(options.cwd))
    brought = read_client_files(options.mcp, cwd)
    choice = AgentSetup(home(), agent_file=Path(options.agent) if options.agent else None).choose_profile(cwd)
    # As in a session, the client's servers shadow the agent's. An invalid entry with this name explains more than a
    # list of the other names.
    for server in brought.servers:
        if server.name == name:
            return server
    for problem in brought.problems:
        if problem.server == name:
            raise InvalidInputError(f"the server {name}: {problem.message}")
    agents = choice.found.profile.servers
    for server in agents:
        if server.name == name:
            return server.definition()
    known = ", ".join([*(server.name for server in brought.servers), *(server.name for server in agents)])
    expected = f"expected one of: {known}" if known else "no server is configured"
    pending = f" {choice.notice}" if choice.pending is not None and choice.notice else ""
    raise InvalidInputError(f"no MCP server here is named {name}; {expected}.{pending}")


def server_at_url(options: argparse.Namespace) -> Definition:
    """Return the server at the URL of `--server-url`."""
    kind = SseServer if options.sse else HttpServer
    return kind(UNNAMED, options.server_url, tuple(options.header))


def _read(options: argparse.Namespace) -> tuple[Definition, str, dict[str, Any]]:
    words: list[str] = list(options.words)
    if options.server_url is None:
        if options.header or options.sse:
            raise UsageError("--header and --sse need --server-url; a named server has its own settings")
        if len(words) < 2:
            raise UsageError("expected SERVER TOOL [JSON], or --server-url URL TOOL [JSON]")
        name = words.pop(0)
    else:
        name = None
    tool, *rest = words
    if len(rest) > 1:
        raise UsageError(f"{len(rest) - 1} extra arguments; put the JSON in quotes")
    arguments = _read_arguments(rest[0]) if rest else {}
    return server_at_url(options) if name is None else find_server(options, name), tool, arguments


def _read_arguments(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(os.fsencode(text), type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise UsageError('arguments must be a JSON object, e.g. \'{"city": "Bern"}\'') from None


async def _call(
    definition: Definition, tool: str, arguments: dict[str, Any], options: argparse.Namespace
) -> "CallResult":
    from dragoman.agent.servers.agent_resources import AgentResources
    from dragoman.agent.servers.server_pool import IdleHost
    from dragoman.mcp.connector import ServerEnvironment
    from dragoman.mcp.server import ServerConnection

    cwd = str(choose_directory(options.cwd))
    resources = AgentResources(home())
    server = ServerConnection(definition, ServerEnvironment(cwd, resources.supervise), IdleHost(cwd), lambda _: None)
    server.start()
    try:
        return await server.call(tool, arguments, timeout_s=options.timeout)
    finally:
        await server.stop()
        await resources.close()


def _lines(result: "CallResult") -> Iterator[str]:
    """Yield the result for people: its texts, and one line for each other block.

    A result without text yields its structured data.
    """
    for block in result.content:
        match block:
            case v1.TextContent():
                yield block.text
            case v1.ImageContent() | v1.AudioContent():
                yield f"[{block.mime_type}, {len(block.data) * 3 // 4} bytes; use --format json to see them]"
            case v1.ResourceLink():
                yield f"[{block.name}: {block.uri}]"
            case _:
                yield msgspec.json.encode(block).decode()
    if result.structured is not None and not any(isinstance(block, v1.TextContent) for block in result.content):
        yield msgspec.json.encode(result.structured).decode()
