"""The MCP servers of a scripted agent's sessions. The agent connects to each, as ACP requires, and uses none."""

import asyncio
from collections.abc import Iterable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self

from dragoman.errors import ErrorCode, RpcError
from dragoman.mcp.connector import ServerEnvironment
from dragoman.mcp.definition import from_protocol
from dragoman.mcp.server import ServerConnection
from dragoman.proc import Supervisor
from dragoman.protocol import v1


class UnusedServers:
    """Connects to servers and stops them when the context is left. A failing server does not affect the script."""

    def __init__(self) -> None:
        self._servers: list[ServerConnection] = []
        self._stack = AsyncExitStack()
        self._supervisor: Supervisor | None = None
        self._starting = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.gather(*(server.stop() for server in self._servers))
        await self._stack.aclose()

    def connect(self, servers: Iterable[v1.McpServer], cwd: str) -> None:
        """Start to connect to servers."""
        environment = ServerEnvironment(cwd, self._supervise)
        for server in servers:
            connection = ServerConnection(from_protocol(server), environment, _DecliningHost(cwd), lambda _: None)
            self._servers.append(connection)
            connection.start()

    async def _supervise(self) -> Supervisor:
        async with self._starting:
            if self._supervisor is None:
                self._supervisor = await self._stack.enter_async_context(Supervisor())
            return self._supervisor


class _DecliningHost:
    """Answers the requests of servers without a user and without a model."""

    def __init__(self, cwd: str) -> None:
        self._cwd = cwd

    def roots(self) -> list[str]:
        return [self._cwd]

    async def elicit(self, server: str, params: dict[str, Any]) -> dict[str, Any]:
        del server, params
        return {"action": "decline"}

    async def sample(self, server: str, params: dict[str, Any]) -> dict[str, Any]:
        del params
        raise RpcError(
            ErrorCode.METHOD_NOT_FOUND, {"problem": f"{server} asks for a model, which a script does not have"}
        )
