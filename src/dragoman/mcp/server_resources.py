"""The resources of a server in one session: which the server has offered, and which have changed.

If the server reports changes, we subscribe to each watched resource: with `resources/subscribe` in the legacy era, with
`subscriptions/listen` in the modern era. After a reconnection every watched resource counts as changed, because we may
have missed a report.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

from dragoman.backoff import Backoff
from dragoman.errors import ConnectionClosedError, McpServerError
from dragoman.mcp.client import McpClient
from dragoman.mcp.info import ResourceInfo
from dragoman.protocol import v1

MAX_WATCHED = 100
"""Maximum number of watched resources per server. The least recently read one is dropped first."""

MAX_OFFERED = 10_000
"""Maximum number of remembered URIs that the server offered. The oldest are dropped first."""

PAUSE_S, MAX_PAUSE_S = 1.0, 60.0
"""The pause before asking a modern server again to report changes. It doubles up to the maximum."""

_log = logging.getLogger("dragoman.mcp")


class ServerResources:
    """The known resources of one server, across its connections. `on_change` is called when one changes."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._offered: OrderedDict[str, None] = OrderedDict()
        self._changes: OrderedDict[str, int] = OrderedDict()
        self._watched_changed = asyncio.Event()

    def offer(self, listed: Iterable[ResourceInfo] = (), content: Iterable[v1.ContentBlock] = ()) -> None:
        """Remember the URIs that the server lists, or links to in a result."""
        addresses = [each.uri for each in listed]
        addresses += [block.uri for block in content if isinstance(block, v1.ResourceLink)]
        for uri in addresses:
            self._offered[uri] = None
            self._offered.move_to_end(uri)
        while len(self._offered) > MAX_OFFERED:
            self._offered.popitem(last=False)

    def is_offered(self, uri: str) -> bool:
        """Return whether the server itself has named this URI. Reading it then reveals nothing new to the server."""
        return uri in self._offered

    def watch(self, uri: str) -> None:
        """Count the changes of a resource from now on."""
        if uri not in self._changes:
            self._changes[uri] = 0
            self._watched_changed.set()
        self._changes.move_to_end(uri)
        while len(self._changes) > MAX_WATCHED:
            self._changes.popitem(last=False)

    def changes(self, uri: str) -> int:
        """Return how often a watched resource has changed, or may have changed."""
        return self._changes.get(uri, 0)

    def record_change(self, uri: str) -> None:
        """Count a change. The server may report a part of the watched resource."""
        self._count([each for each in self._changes if uri == each or uri.startswith(f"{each.rstrip('/')}/")])

    async def keep(self, client: McpClient) -> None:
        """Ask the server to report changes of watched resources, until it is gone or this is cancelled."""
        if not client.reports_resource_changes:
            return
        self._count(self._changes)
        try:
            await (self._listen(client) if client.agreement.is_modern else self._subscribe(client))
        except ConnectionClosedError:
            return  # the task that owns the connection sees the error as well

    async def _subscribe(self, client: McpClient) -> None:
        subscribed: set[str] = set()
        while True:
            self._watched_changed.clear()
            watched = set(self._changes)
            for uri in sorted(watched ^ subscribed):
                try:
                    await client.subscribe(uri, wanted=uri in watched)
                except McpServerError as refusal:
                    _log.debug("an MCP server does not report changes of a resource: %s", type(refusal).__name__)
            subscribed = watched
            await self._watched_changed.wait()

    async def _listen(self, client: McpClient) -> None:
        backoff = Backoff(PAUSE_S, MAX_PAUSE_S)
        while True:
            self._watched_changed.clear()
            watched = list(self._changes)
            if not watched:
                await self._watched_changed.wait()
                continue
            if await self._listen_once(client, watched):
                backoff.reset()
                continue
            await asyncio.sleep(backoff.next_s())
            self._count(watched)

    async def _listen_once(self, client: McpClient, watched: Sequence[str]) -> bool:
        """Listen until the set of watched resources changes. Return False if the server ended the stream."""
        listening = asyncio.create_task(client.listen_to(watched))
        watched_changed = asyncio.create_task(self._watched_changed.wait())
        try:
            await asyncio.wait([listening, watched_changed], return_when=asyncio.FIRST_COMPLETED)
            if not listening.done():
                return True
            if isinstance(end := listening.exception(), ConnectionClosedError):
                raise end
            return False
        finally:
            for task in (listening, watched_changed):
                task.cancel()
            await asyncio.gather(listening, watched_changed, return_exceptions=True)

    def _count(self, changed: Iterable[str]) -> None:
        for uri in (counted := list(changed)):
            self._changes[uri] += 1
        if counted:
            self._on_change()
