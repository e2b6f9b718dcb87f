"""Python functions as tools of a session, over a transport that the agent supports."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Self

import msgspec

from dragoman.client.services.servers import to_protocol
from dragoman.mcp.definition import AcpServer
from dragoman.mcp.serving.function_server import FunctionServer, ToolFunction
from dragoman.mcp.serving.over_acp import AcpFunctionServers
from dragoman.mcp.serving.relay_server import serve_relay
from dragoman.protocol import v1

SERVER_NAME = "functions"
"""The default name of the server at the agent."""


class SessionFunctions(msgspec.Struct, frozen=True):
    """The server for the functions of a session, if it has any. The server runs until `stop` is called."""

    servers: tuple[v1.McpServer, ...] = ()
    stop: Callable[[], object] = lambda: None


class FunctionHost:
    """Serves the functions of all sessions with one agent.

    Each session has a task for its server, because ending a session must not wait. Use it as an async context manager.
    Leaving stops all servers.
    """

    def __init__(self, acp_servers: AcpFunctionServers) -> None:
        self._acp_servers = acp_servers
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
        """Serve the functions of a session that is opened in the block. If opening fails, stop the server.

        Raises UnusableFunctionError.
        """
        offered = list(tools)
        functions = await self._start(offered, capabilities) if offered else SessionFunctions()
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
            async with serve_functions(tools, capabilities, self._acp_servers) as definition:
                served.set_result(definition)
                await asyncio.get_running_loop().create_future()
        except Exception as error:  # noqa: BLE001 -- boundary: task top; `_start` raises it
            if not served.done():
                served.set_exception(error)


@asynccontextmanager
async def serve_functions(
    tools: Iterable[ToolFunction],
    capabilities: v1.AgentCapabilities,
    acp_servers: AcpFunctionServers,
    *,
    name: str = SERVER_NAME,
) -> AsyncGenerator[v1.McpServer]:
    """Serve functions to an agent, and yield the definition of the MCP server. Leaving cancels the running calls.

    The agent reaches the server over the ACP connection if it supports that. Otherwise it starts a relay program.
    Raises UnusableFunctionError.
    """
    server = FunctionServer(tools, name)
    if capabilities.mcp_capabilities.acp:
        with acp_servers.offering(server) as server_id:
            yield to_protocol(AcpServer(server.name, server_id))
    else:
        async with serve_relay(server) as program:
            yield to_protocol(program)
