"""The tools and prompts of a server, read again whenever they may have changed.

Lists are read again when the server announces a change, or when they are older than the server says they stay valid. A
server may announce a change with every list. Announcements are therefore numbered: `fresh` waits for a list requested
after the last announcement at that time, and not for later ones.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress

from dragoman.backoff import Backoff
from dragoman.errors import ConnectionClosedError, McpServerError
from dragoman.mcp.client import McpClient
from dragoman.mcp.info import PromptInfo, ToolInfo

LIST_TIMEOUT_S = 60.0
"""How long a server may need for its lists."""

LIST_PAUSE_S = 0.5
"""Pause between two reads, because a server may announce a change with each list."""

LISTEN_PAUSE_S, MAX_LISTEN_PAUSE_S = 1.0, 60.0
"""The pause before asking a server again to report changes. It doubles up to the maximum."""

STEADY_S = 60.0
"""A server that reported changes for this long is asked again after the short pause."""

MIN_TTL_S = 10.0
"""Shortest time between two reads, even if the server says that its lists expire sooner."""

_log = logging.getLogger("dragoman.mcp")


class ServerLists:
    """The lists of one server, across its connections. `on_change` is called when a list has changed."""

    def __init__(self, server: str, on_change: Callable[[], None], show: Callable[[str], str]) -> None:
        self.tools: Sequence[ToolInfo] = ()
        self.prompts: Sequence[PromptInfo] = ()
        self._server = server
        self._on_change = on_change
        self._show = show
        self._outdated = asyncio.Event()
        self.announced = 0
        """How often the server has announced a change of its lists."""
        self._read_up_to = 0
        """Number of announcements when the last list was requested. Equal to `announced` if the lists are fresh."""
        self._updated = asyncio.Event()

    def announce(self) -> None:
        """Record that the lists may have changed."""
        self.announced += 1
        self._outdated.set()

    async def fresh(self) -> None:
        """Wait until the lists include every change announced so far, or the server is gone."""
        wanted = self.announced
        while self._read_up_to < wanted:
            await self._updated.wait()

    def clear(self) -> None:
        """Drop the lists of a server that is gone."""
        self.tools, self.prompts = (), ()
        self._settle(self.announced)

    async def read(self, client: McpClient) -> None:
        """Read the lists. Raises McpServerError and ConnectionClosedError."""
        began = self.announced
        self._outdated.clear()
        self.tools, self.prompts = await client.tools(), await client.prompts()
        self._settle(began)

    async def keep(self, client: McpClient) -> None:
        """Keep the lists fresh until the server is gone."""
        listening = asyncio.create_task(self._listen(client))
        try:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(client.ttl_s and max(client.ttl_s, MIN_TTL_S)):
                        await _wait_for_any(client.closed, self._outdated)
                if client.closed.is_set():
                    return
                await self._reread(client)
                with suppress(TimeoutError):
                    async with asyncio.timeout(LIST_PAUSE_S):
                        await client.closed.wait()
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def _reread(self, client: McpClient) -> None:
        before, began = (self.tools, self.prompts), self.announced
        try:
            async with asyncio.timeout(LIST_TIMEOUT_S):
                await self.read(client)
        except ConnectionClosedError:
            return  # `keep` ends when the connection closes
        except (McpServerError, TimeoutError) as failure:
            _log.warning(
                "MCP server %s did not list its tools again: %s", self._server, self._show(str(failure) or "no answer")
            )
            self._settle(began)
        else:
            if (self.tools, self.prompts) != before:
                self._on_change()

    async def _listen(self, client: McpClient) -> None:
        """Ask a modern server to report changes. Changes missed in between are in the next list."""
        backoff = Backoff(LISTEN_PAUSE_S, MAX_LISTEN_PAUSE_S)
        while not client.closed.is_set():
            began = asyncio.get_running_loop().time()
            try:
                await client.listen()
            except (McpServerError, ConnectionClosedError) as end:
                _log.debug("MCP server %s no longer reports changes: %s", self._server, type(end).__name__)
            if asyncio.get_running_loop().time() - began > STEADY_S:
                backoff.reset()
            await asyncio.sleep(backoff.next_s())
            self.announce()

    def _settle(self, read_up_to: int) -> None:
        self._read_up_to = read_up_to
        self._updated.set()
        self._updated = asyncio.Event()


async def _wait_for_any(*events: asyncio.Event) -> None:
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()
