"""The connections over HTTP: what holds a viewer together between its requests."""

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
    """A viewer that comes by requests, of which it has none at times."""

    def __init__(self, agent: ServedAgent, viewer: Viewer, role: str) -> None:
        self.agent = agent
        self.viewer = viewer
        self.role = role
        self.lasting = 0
        """Requests that are not over: its event streams, mostly."""
        self.end: asyncio.TimerHandle | None = None


class HttpViewers:
    """All connections over HTTP; one that has neither a stream nor a request for a while is given up."""

    def __init__(self, limits: RequestLimits) -> None:
        self._limits = limits
        self._open: dict[str, HttpViewer] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def open(self, agent: ServedAgent, grant: Grant) -> HttpViewer:
        """Let a new one in; raises TooManyViewers."""
        viewer = agent.open_viewer(read_only=grant.role == "reader")
        connection = HttpViewer(agent, viewer, grant.role)
        self._open[viewer.id] = connection
        self._rest(connection)
        return connection

    def find(self, connection_id: str, agent: ServedAgent, grant: Grant) -> HttpViewer | None:
        """Give an open one, which now has a request; None if this agent has no such one for this role."""
        connection = self._open.get(connection_id)
        if connection is None or connection.agent is not agent or connection.role != grant.role:
            return None
        if connection.viewer.closed.is_set():
            self._forget(connection)
            return None
        self._rest(connection)
        return connection

    @contextmanager
    def in_use(self, connection: HttpViewer) -> Generator[None]:
        """Keep it for as long as a request lasts; raises HttpError when there are too many."""
        if connection.lasting >= self._limits.max_streams:
            limit = self._limits.max_streams
            raise HttpError(429, f"this connection has {limit} event streams open, the limit; close some first")
        connection.lasting += 1
        self._rest(connection)
        try:
            yield
        finally:
            connection.lasting -= 1
            self._rest(connection)

    async def close(self, connection: HttpViewer) -> None:
        """Let one go."""
        self._forget(connection)
        await connection.viewer.close()

    async def close_all(self) -> None:
        """Let all of them go."""
        for connection in list(self._open.values()):
            await self.close(connection)
        await asyncio.gather(*self._closing)

    def _rest(self, connection: HttpViewer) -> None:
        """Begin to wait for the next request anew, unless one is under way."""
        if connection.end is not None:
            connection.end.cancel()
            connection.end = None
        if connection.lasting == 0 and connection.viewer.id in self._open:
            loop = asyncio.get_running_loop()
            connection.end = loop.call_later(self._limits.reattach_s, self._give_up, connection)

    def _give_up(self, connection: HttpViewer) -> None:
        task = asyncio.ensure_future(self.close(connection))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _forget(self, connection: HttpViewer) -> None:
        self._open.pop(connection.viewer.id, None)
        if connection.end is not None:
            connection.end.cancel()
            connection.end = None


class Affinity:
    """Names this bridge among its like; it opens nothing, and whatever comes back is accepted."""

    def __init__(self) -> None:
        self._value = secrets.token_hex(8)

    def cookie(self, scope: Scope) -> Headers:
        """Return the header that sets it; none if it came with the request."""
        pair = f"{AFFINITY_COOKIE}={self._value}"
        for key, value in scope["headers"]:
            if key == b"cookie" and pair.encode() in [one.strip() for one in value.split(b";")]:
                return []
        path = scope.get("root_path") or "/"
        secure = "; Secure" if scope.get("scheme") in {"https", "wss"} else ""
        return [(b"set-cookie", f"{pair}; Path={path}; HttpOnly; SameSite=Strict{secure}".encode())]
