"""Python functions as tools of a session, on whichever way the agent can reach them."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Self

import msgspec

from dragoman.client.servers import to_protocol
from dragoman.mcp.definition import AcpServer, Definition
from dragoman.mcp.serving.function_server import FunctionServer, ToolFunction
from dragoman.mcp.serving.over_acp import AcpFunctionServers
from dragoman.mcp.serving.relay_server import serve_relay
from dragoman.protocol import v1

SERVER_NAME = "functions"
"""How the agent knows the server, if nobody says otherwise."""


class ServedFunctions(msgspec.Struct, frozen=True):
    """A running server: `definition` is the form that the agent is given."""

    definition: v1.McpServer


class SessionFunctions(msgspec.Struct, frozen=True):
    """The servers for the functions of a session, one or none, which run until `stop` is called."""

    servers: tuple[v1.McpServer, ...] = ()
    stop: Callable[[], object] = lambda: None


class FunctionHost:
    """Serves the functions of all sessions with one agent: a task for each, because a session ends without waiting.

    Use it as an async context manager: leaving ends them all.
    """

    def __init__(self, inside: AcpFunctionServers) -> None:
        self._inside = inside
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    @asynccontextmanager
    async def offering(
        self, tools: Iterable[ToolFunction], capabilities: v1.AgentCapabilities
    ) -> AsyncGenerator[SessionFunctions]:
        """Serve the functions of a session that is opened in the block, which go on unless that fails.

        Raises UnusableFunction.
        """
        given = list(tools)
        functions = await self._start(given, capabilities) if given else SessionFunctions()
        try:
            yield functions
        except BaseException:
            functions.stop()
            raise

    async def _start(self, tools: Iterable[ToolFunction], capabilities: v1.AgentCapabilities) -> SessionFunctions:
        served: asyncio.Future[v1.McpServer] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._hold(tools, capabilities, served))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            return SessionFunctions((await served,), task.cancel)
        except BaseException:
            task.cancel()
            raise

    async def _hold(
        self, tools: Iterable[ToolFunction], capabilities: v1.AgentCapabilities, served: asyncio.Future[v1.McpServer]
    ) -> None:
        try:
            async with serve_functions(tools, capabilities, self._inside) as functions:
                served.set_result(functions.definition)
                await asyncio.get_running_loop().create_future()
        except Exception as error:  # noqa: BLE001 -- boundary: task top; it is raised to who asked
            if not served.done():
                served.set_exception(error)


@asynccontextmanager
async def serve_functions(
    tools: Iterable[ToolFunction],
    capabilities: v1.AgentCapabilities,
    inside: AcpFunctionServers,
    *,
    name: str = SERVER_NAME,
) -> AsyncGenerator[ServedFunctions]:
    """Serve functions to an agent as an MCP server; leaving ends it and the calls that still run.

    The agent reaches it over the ACP connection itself if it can, else over HTTP on this machine, else by starting a
    program that relays. Raises UnusableFunction.
    """
    server = FunctionServer(tools, name)
    async with _open(server, capabilities.mcp_capabilities, inside) as definition:
        yield ServedFunctions(to_protocol(definition))


@asynccontextmanager
async def _open(
    server: FunctionServer, capabilities: v1.McpCapabilities, inside: AcpFunctionServers
) -> AsyncGenerator[Definition]:
    if capabilities.acp:
        with inside.offering(server) as server_id:
            yield AcpServer(server.name, server_id)
    elif capabilities.http:
        from dragoman.mcp.serving.loopback import serve_loopback

        async with serve_loopback(server) as at_address:
            yield at_address
    else:
        async with serve_relay(server) as program:
            yield program
