"""A server on the Python SDK that supports both eras: `python sdk_server.py stdio`, or `http PORT`."""

import sys

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import Completion

server = MCPServer("sdk", instructions="Say please.")


@server.tool()
async def grow(context: Context) -> str:
    """Add one more tool."""
    server.add_tool(lambda: "more", name="more", description="One more.")
    await context.notify_tools_changed()
    return "grown"


@server.tool()
async def count(context: Context) -> str:
    """Report progress."""
    for step in range(3):
        await context.report_progress(step + 1, 3, f"step {step + 1}")
    return "counted"


@server.tool()
async def change(context: Context) -> str:
    """Announce that the note has changed."""
    await context.notify_resource_updated("note://one")
    return "changed"


@server.resource("note://one")
def note() -> str:
    """A note."""
    return "a note"


@server.resource("year://{year}")
def year(year: str) -> str:
    """Notes of a year."""
    return f"notes of {year}"


@server.completion()
async def complete(ref, argument, context) -> Completion:
    """Complete a year."""
    return Completion(values=[each for each in ("2025", "2026") if each.startswith(argument.value)])


if sys.argv[1] == "stdio":
    server.run("stdio")
else:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
