"""The official SDK's client as an independent judge of the servers, over each transport."""

import asyncio
from contextlib import ExitStack, asynccontextmanager

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from tests.mcp.servers.commands import scripted, scripted_http

TRANSPORTS = ["stdio", "http", "sse"]


@asynccontextmanager
async def judging_command(command, *, cwd=None, env=None, **callbacks):
    """Connect to a server that a command starts."""
    parameters = StdioServerParameters(command=command[0], args=command[1:], cwd=cwd, env=env)
    async with asyncio.timeout(50), Client(parameters, **callbacks) as client:
        yield client


@asynccontextmanager
async def judging_address(url, *, headers=None, **callbacks):
    """Connect to a server at a URL. A path that ends in `/sse` uses the older event stream."""
    async with asyncio.timeout(50), httpx2.AsyncClient(headers=headers) as http:
        older = url.endswith("/sse")
        transport = sse_client(url, headers=headers) if older else streamable_http_client(url, http_client=http)
        async with Client(transport, **callbacks) as client:
            yield client


@asynccontextmanager
async def judging(transport, callbacks=None, **options):
    """Start a scripted server on this transport and connect to it."""
    with ExitStack() as stack:
        if transport == "stdio":
            connection = judging_command(scripted(**options), **callbacks or {})
        else:
            address = stack.enter_context(scripted_http(options))
            path = "/mcp" if transport == "http" else "/sse"
            connection = judging_address(address + path, **callbacks or {})
        async with connection as client:
            yield client
