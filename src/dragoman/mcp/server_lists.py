"""The tools and prompts of a server, read anew whenever they may have changed.

A server announces a change, or its lists are older than it says they stay true. Announcements are numbered, so that
`fresh` waits for the list that was begun after the last of them, and not for one more that comes meanwhile: a server
may announce a change with every list.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress

from dragoman.errors import ConnectionClosed, ServerFailure
from dragoman.mcp.client import McpClient
from dragoman.mcp.info import PromptInfo, ToolInfo

LIST_TIMEOUT_S = 60.0
"""How long a server may take for its lists."""

LIST_PAUSE_S = 0.5
"""Pause between two lists, because a server may say with each list that it has changed."""

LISTEN_PAUSE_S, MAX_LISTEN_PAUSE_S = 1.0, 60.0
"""The pause before a server is asked again to tell of changes; it doubles up to the second."""

STEADY_S = 60.0
"""A server that told of changes for this long is asked again after the short pause."""

MIN_TTL_S = 10.0
"""Lists are read anew at most this often, whatever a server says of how long they stay true."""

_log = logging.getLogger("dragoman.mcp")


class ServerLists:
    """The lists of one server, over all its connections. `on_change` is called when a list has changed."""

    def __init__(self, server: str, on_change: Callable[[], None], show: Callable[[str], str]) -> None:
        self.tools: Sequence[ToolInfo] = ()
        self.prompts: Sequence[PromptInfo] = ()
        self._server = server
        self._on_change = on_change
        self._show = show
        self._outdated = asyncio.Event()
        self.announced = 0
        """How often the server has said that its lists have changed."""
        self._read_up_to = 0
        """The announcement before which the last list was begun; equal to the last one when all is fresh."""
        self._news = asyncio.Event()

    def announce(self) -> None:
        """Take note that the lists may have changed."""
        self.announced += 1
        self._outdated.set()

    async def fresh(self) -> None:
        """Wait until every change that was announced by now is in the lists, or the server is gone."""
        wanted = self.announced
        while self._read_up_to < wanted:
            await self._news.wait()

    def clear(self) -> None:
        """Forget the lists of a server that is gone."""
        self.tools, self.prompts = (), ()
        self._settle(self.announced)

    async def read(self, client: McpClient) -> None:
        """Read the lists; raises ServerFailure and ConnectionClosed."""
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
                        await _either(client.closed, self._outdated)
                if client.closed.is_set():
                    return
                await self._read_anew(client)
                with suppress(TimeoutError):
                    async with asyncio.timeout(LIST_PAUSE_S):
                        await client.closed.wait()
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def _read_anew(self, client: McpClient) -> None:
        before, began = (self.tools, self.prompts), self.announced
        try:
            async with asyncio.timeout(LIST_TIMEOUT_S):
                await self.read(client)
        except ConnectionClosed:
            return  # the wait for changes ends on it
        except (ServerFailure, TimeoutError) as failure:
            _log.warning(
                "MCP server %s did not list its tools anew: %s", self._server, self._show(str(failure) or "no answer")
            )
            self._settle(began)
        else:
            if (self.tools, self.prompts) != before:
                self._on_change()

    async def _listen(self, client: McpClient) -> None:
        """Have a modern server tell of changes; whatever happened while it did not is in the next list."""
        pause_s = LISTEN_PAUSE_S
        while not client.closed.is_set():
            began = asyncio.get_running_loop().time()
            try:
                await client.listen()
            except (ServerFailure, ConnectionClosed) as end:
                _log.debug("MCP server %s tells of no more changes: %s", self._server, type(end).__name__)
            pause_s = LISTEN_PAUSE_S if asyncio.get_running_loop().time() - began > STEADY_S else pause_s
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, MAX_LISTEN_PAUSE_S)
            self.announce()

    def _settle(self, read_up_to: int) -> None:
        self._read_up_to = read_up_to
        self._news.set()
        self._news = asyncio.Event()


async def _either(*events: asyncio.Event) -> None:
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()
