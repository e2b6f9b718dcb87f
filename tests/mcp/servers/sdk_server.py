"""A server of the Python SDK, which speaks both eras: `python sdk_server.py stdio`, or `http PORT`."""

import sys

from mcp.server import MCPServer
from mcp.server.mcpserver import Context

server = MCPServer("sdk", instructions="Say please.")


@server.tool()
async def grow(context: Context) -> str:
    """Have one more tool."""
    server.add_tool(lambda: "more", name="more", description="One more.")
    await context.notify_tools_changed()
    return "grown"


@server.tool()
async def count(context: Context) -> str:
    """Report progress."""
    for step in range(3):
        await context.report_progress(step + 1, 3, f"step {step + 1}")
    return "counted"


@server.resource("note://one")
def note() -> str:
    """A note."""
    return "a note"


if sys.argv[1] == "stdio":
    server.run("stdio")
else:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
