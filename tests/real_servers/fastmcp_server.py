"""A server of fastmcp, which speaks both eras: `python fastmcp_server.py stdio`, or `http PORT`."""

import sys

from fastmcp import FastMCP

server = FastMCP("fastmcp", instructions="Say please.")


@server.tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@server.resource("note://one")
def note() -> str:
    """A note."""
    return "a note"


if sys.argv[1] == "stdio":
    server.run(show_banner=False)
else:
    server.run("http", host="127.0.0.1", port=int(sys.argv[2]), show_banner=False)
