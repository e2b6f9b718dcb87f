"""The way to an agent at an address."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from dragoman.check.inbox import Inbox
from dragoman.wire.transport import Transport
from dragoman.wire.url import open_url as open_transport


class UrlWay:
    """A transport, read line by line."""

    has_process = False

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.inbox = Inbox(transport)
        self.read = self.inbox.read

    def send(self, data: bytes) -> None:
        self._transport.write(data)

    def close_input(self) -> None:
        """Do nothing: a connection has one end, and it is ours to close."""

    async def exited(self, timeout_s: float) -> str | None:
        del timeout_s
        return None

    async def orphans(self, timeout_s: float) -> int:
        del timeout_s
        return 0


@asynccontextmanager
async def open_url(url: str, token: str | None) -> AsyncGenerator[UrlWay]:
    """Connect to the agent at an address; raises AddressFailed."""
    transport = await open_transport(url, token=token)
    way = UrlWay(transport)
    async with asyncio.TaskGroup() as tasks:
        transport.start(way.inbox, tasks)
        try:
            yield way
        finally:
            await transport.close()
