"""Viewers over HTTP: the connection that binds the requests of one client together, and the cookie for its node."""

import asyncio
import secrets
from collections.abc import Generator
from contextlib import contextmanager

from dragoman.bridge import ServedAgent, Viewer
from dragoman.bridge.front.asgi import Headers, Scope
from dragoman.bridge.front.exchange import HttpError
from dragoman.bridge.front.limits import RequestLimits
from dragoman.bridge.guard import Grant

AFFINITY_COOKIE = "acp_affinity"


class HttpViewer:
    """A viewer whose messages come by requests; there can be times without any."""

    def __init__(self, agent: ServedAgent, viewer: Viewer, role: str) -> None:
        self.agent = agent
        self.viewer = viewer
        self.role = role
        self.open_requests = 0
        """Requests that are not over yet, mostly event streams."""
        self.timer: asyncio.TimerHandle | None = None


class HttpViewers:
    """All viewers over HTTP; one without a stream or a request for a while is closed."""

    def __init__(self, limits: RequestLimits) -> None:
        self._limits = limits
        self._open: dict[str, HttpViewer] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def open(self, agent: ServedAgent, grant: Grant) -> HttpViewer:
        """Open a viewer; raises TooManyViewers."""
        viewer = agent.open_viewer(read_only=grant.role == "reader")
        connection = HttpViewer(agent, viewer, grant.role)
        self._open[viewer.id] = connection
        self._restart_timer(connection)
        return connection

    def find(self, connection_id: str, agent: ServedAgent, grant: Grant) -> HttpViewer | None:
        """Return an open viewer for its next request; None if this agent has no such viewer with this role."""
        connection = self._open.get(connection_id)
        if connection is None or connection.agent is not agent or connection.role != grant.role:
            return None
        if connection.viewer.closed.is_set():
            self._forget(connection)
            return None
        self._restart_timer(connection)
        return connection

    @contextmanager
    def in_use(self, connection: HttpViewer) -> Generator[None]:
        """Keep a viewer open while a request lasts; raises HttpError when it has too many."""
        if connection.open_requests >= self._limits.max_streams:
            limit = self._limits.max_streams
            raise HttpError(429, f"this connection has {limit} event streams open, the limit; close some first")
        connection.open_requests += 1
        self._restart_timer(connection)
        try:
            yield
        finally:
            connection.open_requests -= 1
            self._restart_timer(connection)

    async def close(self, connection: HttpViewer) -> None:
        """Close one viewer."""
        self._forget(connection)
        await connection.viewer.close()

    async def close_all(self) -> None:
        """Close all viewers."""
        for connection in list(self._open.values()):
            await self.close(connection)
        await asyncio.gather(*self._closing)

    def _restart_timer(self, connection: HttpViewer) -> None:
        """Start the time until the next request anew, unless one is under way."""
        if connection.timer is not None:
            connection.timer.cancel()
            connection.timer = None
        if connection.open_requests == 0 and connection.viewer.id in self._open:
            loop = asyncio.get_running_loop()
            connection.timer = loop.call_later(self._limits.reattach_s, self._time_out, connection)

    def _time_out(self, connection: HttpViewer) -> None:
        task = asyncio.ensure_future(self.close(connection))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _forget(self, connection: HttpViewer) -> None:
        self._open.pop(connection.viewer.id, None)
        if connection.timer is not None:
            connection.timer.cancel()
            connection.timer = None


class Affinity:
    """The cookie by which a load balancer brings a client back to this bridge; it is not a credential."""

    def __init__(self) -> None:
        self._value = secrets.token_hex(8)

    def cookie(self, scope: Scope) -> Headers:
        """Return the header that sets the cookie; none if the request has it already."""
        pair = f"{AFFINITY_COOKIE}={self._value}"
        for key, value in scope["headers"]:
            if key == b"cookie" and pair.encode() in [one.strip() for one in value.split(b";")]:
                return []
        path = scope.get("root_path") or "/"
        secure = "; Secure" if scope.get("scheme") in {"https", "wss"} else ""
        return [(b"set-cookie", f"{pair}; Path={path}; HttpOnly; SameSite=Strict{secure}".encode())]
