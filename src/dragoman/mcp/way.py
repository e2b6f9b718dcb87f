"""Which way leads to which server. Those over the network are imported on first need, in a thread: they are large."""

import asyncio
import importlib
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import msgspec

from dragoman.errors import ServerFailure
from dragoman.loading import load_in_background
from dragoman.mcp.acp_channel import open_acp
from dragoman.mcp.channel import Channel, InboundHandler, open_peer
from dragoman.mcp.definition import AcpServer, Definition, HttpServer, SseServer, StdioServer
from dragoman.mcp.switchboard import McpMessageRouter
from dragoman.protocol.connection import Connection
from dragoman.wire import Transport


class TransportResources(msgspec.Struct, frozen=True):
    """What there is to reach a server by: a program's pipes, or the connection to the client."""

    stdio: Transport | None = None
    connection: Connection | None = None
    router: McpMessageRouter | None = None


@asynccontextmanager
async def open_channel(
    definition: Definition, resources: TransportResources, inbound: InboundHandler
) -> AsyncGenerator[Channel]:
    """Open the way to a server. Raises ServerFailure, ConnectionClosed, RemoteError, or an httpx2 error in groups."""
    async with await _opened(definition, resources, inbound) as channel:
        yield channel


async def _opened(
    definition: Definition, resources: TransportResources, inbound: InboundHandler
) -> AbstractAsyncContextManager[Channel]:
    match definition:
        case StdioServer():
            assert resources.stdio is not None  # noqa: S101 -- whoever connects to a program has started it
            return open_peer(resources.stdio, inbound)
        case AcpServer():
            if resources.connection is None or resources.router is None:
                raise ServerFailure("it lives inside an ACP client, and there is none here")
            return open_acp(resources.connection, resources.router, definition.server_id, inbound)
        case SseServer():
            sse = await _load("dragoman.mcp.sse")
            return open_peer(sse.SseTransport(definition.url, definition.headers), inbound)
        case HttpServer():
            return (await _load("dragoman.mcp.streamable_http")).open_http(definition, inbound)


async def _load(module: str) -> Any:
    return await asyncio.wrap_future(load_in_background(lambda: importlib.import_module(module)))
