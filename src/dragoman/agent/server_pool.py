"""The agents' own servers, each shared by the sessions that use it and work in the same directory."""

import asyncio
from collections.abc import Callable
from typing import Any

from dragoman.errors import ErrorCode, RpcError
from dragoman.mcp.client import DECLINED
from dragoman.mcp.connector import ServerEnvironment
from dragoman.mcp.definition import Definition
from dragoman.mcp.server import ServerConnection


class IdleHost:
    """Answers a shared server while no session is calling it."""

    def __init__(self, cwd: str) -> None:
        self._cwd = cwd

    def roots(self) -> list[str]:
        """Return the directory that its sessions have in common."""
        return [self._cwd]

    async def elicit(self, server: str, params: dict[str, Any]) -> dict[str, Any]:
        """Decline, because there is no person to ask."""
        del server, params
        return DECLINED

    async def sample(self, server: str, params: dict[str, Any]) -> dict[str, Any]:
        """Refuse, because no session would pay for it."""
        del server, params
        raise RpcError(ErrorCode.INVALID_REQUEST, "no session is calling this server, so no model can be asked")


class ServerLease:
    """One session's use of a shared server."""

    def __init__(
        self, server: ServerConnection, listeners: list[Callable[[], None]], listener: Callable[[], None]
    ) -> None:
        self.server = server
        self.listeners = listeners
        self.listener = listener


class ServerPool:
    """Starts a server for the first session that wants it, and stops it after the last."""

    def __init__(self) -> None:
        self._shared: dict[tuple[Definition, str], tuple[ServerConnection, list[Callable[[], None]]]] = {}

    def lease(
        self, definition: Definition, environment: ServerEnvironment, listener: Callable[[], None]
    ) -> ServerLease:
        """Use a server, and be told when it changes; one that has failed is tried again."""
        key = (definition, environment.cwd)
        if key not in self._shared:
            listeners: list[Callable[[], None]] = []
            server = ServerConnection(definition, environment, IdleHost(environment.cwd), lambda _: _tell(listeners))
            self._shared[key] = (server, listeners)
        server, listeners = self._shared[key]
        if server.state in ("stopped", "failed"):
            server.start()
        listeners.append(listener)
        return ServerLease(server, listeners, listener)

    async def release(self, lease: ServerLease) -> None:
        """Use it no more; the last to do so stops it."""
        lease.listeners.remove(lease.listener)
        if not lease.listeners:
            self._shared = {key: value for key, value in self._shared.items() if value[0] is not lease.server}
            await lease.server.stop()

    async def close(self) -> None:
        """Stop all of them, side by side."""
        servers = [server for server, _ in self._shared.values()]
        self._shared.clear()
        await asyncio.gather(*(server.stop() for server in servers))


def _tell(listeners: list[Callable[[], None]]) -> None:
    for listener in list(listeners):
        listener()
