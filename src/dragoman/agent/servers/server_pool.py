"""The agent's own servers. Sessions that work in the same directory share them."""

import asyncio
from collections.abc import Callable
from typing import Any

from dragoman.errors import ErrorCode, RpcError
from dragoman.mcp.client import DECLINED
from dragoman.mcp.connector import ServerEnvironment
from dragoman.mcp.definition import Definition
from dragoman.mcp.server import ServerConnection


class IdleHost:
    """Answers a shared server while no session calls it."""

    def __init__(self, cwd: str) -> None:
        self._cwd = cwd

    def roots(self) -> list[str]:
        """Return the directory that the sessions have in common."""
        return [self._cwd]

    async def elicit(self, server: str, params: dict[str, Any]) -> dict[str, Any]:
        """Decline, because nobody can be asked."""
        del server, params
        return DECLINED

    async def sample(self, server: str, params: dict[str, Any]) -> dict[str, Any]:
        """Refuse, because no session would pay for the request."""
        del server, params
        raise RpcError(ErrorCode.INVALID_REQUEST, "no session is calling this server, so no model is available")


class ServerLease:
    """One session's use of a shared server."""

    def __init__(
        self, server: ServerConnection, listeners: list[Callable[[], None]], listener: Callable[[], None]
    ) -> None:
        self.server = server
        self.listeners = listeners
        self.listener = listener


class ServerPool:
    """Starts a server for the first session that needs it, and stops it after the last."""

    def __init__(self) -> None:
        self._shared: dict[tuple[Definition, str], tuple[ServerConnection, list[Callable[[], None]]]] = {}

    def lease(
        self, definition: Definition, environment: ServerEnvironment, listener: Callable[[], None]
    ) -> ServerLease:
        """Use a server. `listener` is called when it changes. A failed server is started again."""
        key = (definition, environment.cwd)
        if key not in self._shared:
            listeners: list[Callable[[], None]] = []
            server = ServerConnection(definition, environment, IdleHost(environment.cwd), lambda _: _notify(listeners))
            self._shared[key] = (server, listeners)
        server, listeners = self._shared[key]
        if server.state in ("stopped", "failed"):
            server.start()
        listeners.append(listener)
        return ServerLease(server, listeners, listener)

    async def release(self, lease: ServerLease) -> None:
        """Stop using a server. The last release stops the server."""
        lease.listeners.remove(lease.listener)
        if not lease.listeners:
            self._shared = {key: value for key, value in self._shared.items() if value[0] is not lease.server}
            await lease.server.stop()

    async def close(self) -> None:
        """Stop all servers concurrently."""
        servers = [server for server, _ in self._shared.values()]
        self._shared.clear()
        await asyncio.gather(*(server.stop() for server in servers))


def _notify(listeners: list[Callable[[], None]]) -> None:
    for listener in list(listeners):
        listener()
