"""The resources of a server that a session has met: which the server offered itself, and which have changed since.

A server that can tell of changes is asked to for each resource that is watched: by `resources/subscribe` in the
legacy era, by `subscriptions/listen` in the modern one. After a new connection, every watched resource may have
changed meanwhile, and counts as changed.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

from dragoman.errors import ConnectionClosed, ServerFailure
from dragoman.mcp.client import McpClient
from dragoman.mcp.info import ResourceInfo
from dragoman.protocol import v1

MAX_WATCHED = 100
"""Resources of one server that are watched; the one that was read longest ago is forgotten first."""

MAX_OFFERED = 10_000
"""Addresses that are remembered as the server's own, the newest of them."""

PAUSE_S, MAX_PAUSE_S = 1.0, 60.0
"""The pause before a modern server is asked again to tell of changes; it doubles up to the second."""

_log = logging.getLogger("dragoman.mcp")


class ServerResources:
    """What is known of one server's resources, over all its connections. `on_change` is called when one changes."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._offered: OrderedDict[str, None] = OrderedDict()
        self._changes: OrderedDict[str, int] = OrderedDict()
        self._chosen_anew = asyncio.Event()

    def offer(self, listed: Iterable[ResourceInfo] = (), content: Iterable[v1.ContentBlock] = ()) -> None:
        """Remember the addresses that the server lists, or links to in a result."""
        addresses = [each.uri for each in listed]
        addresses += [block.uri for block in content if isinstance(block, v1.ResourceLink)]
        for uri in addresses:
            self._offered[uri] = None
            self._offered.move_to_end(uri)
        while len(self._offered) > MAX_OFFERED:
            self._offered.popitem(last=False)

    def is_offered(self, uri: str) -> bool:
        """Tell whether the server itself has named an address: whoever reads it tells the server nothing new."""
        return uri in self._offered

    def watch(self, uri: str) -> None:
        """Count the changes of a resource from now on."""
        if uri not in self._changes:
            self._changes[uri] = 0
            self._chosen_anew.set()
        self._changes.move_to_end(uri)
        while len(self._changes) > MAX_WATCHED:
            self._changes.popitem(last=False)

    def changes(self, uri: str) -> int:
        """Return how often a watched resource has changed, or may have."""
        return self._changes.get(uri, 0)

    def note_change(self, uri: str) -> None:
        """Count a change; a server may tell of a part of the resource that is watched."""
        self._count([each for each in self._changes if uri == each or uri.startswith(f"{each.rstrip('/')}/")])

    async def keep(self, client: McpClient) -> None:
        """Have the server tell of changes of what is watched, until it is gone, or the wait is cancelled."""
        if not client.tells_of_resources:
            return
        self._count(self._changes)
        try:
            await (self._listen(client) if client.agreement.is_modern else self._subscribe(client))
        except ConnectionClosed:
            return  # whoever keeps the connection sees it too

    async def _subscribe(self, client: McpClient) -> None:
        subscribed: set[str] = set()
        while True:
            self._chosen_anew.clear()
            watched = set(self._changes)
            for uri in sorted(watched ^ subscribed):
                try:
                    await client.subscribe(uri, wanted=uri in watched)
                except ServerFailure as refusal:
                    _log.debug("an MCP server does not tell of a resource: %s", type(refusal).__name__)
            subscribed = watched
            await self._chosen_anew.wait()

    async def _listen(self, client: McpClient) -> None:
        pause_s = PAUSE_S
        while True:
            self._chosen_anew.clear()
            watched = list(self._changes)
            if not watched:
                await self._chosen_anew.wait()
                continue
            if await self._listen_once(client, watched):
                pause_s = PAUSE_S
                continue
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, MAX_PAUSE_S)
            self._count(watched)

    async def _listen_once(self, client: McpClient, watched: Sequence[str]) -> bool:
        """Listen until others are to be watched; False when the server has ended it."""
        listening = asyncio.create_task(client.listen_to(watched))
        chosen_anew = asyncio.create_task(self._chosen_anew.wait())
        try:
            await asyncio.wait([listening, chosen_anew], return_when=asyncio.FIRST_COMPLETED)
            if not listening.done():
                return True
            if isinstance(end := listening.exception(), ConnectionClosed):
                raise end
            return False
        finally:
            for task in (listening, chosen_anew):
                task.cancel()
            await asyncio.gather(listening, chosen_anew, return_exceptions=True)

    def _count(self, changed: Iterable[str]) -> None:
        for uri in (counted := list(changed)):
            self._changes[uri] += 1
        if counted:
            self._on_change()
