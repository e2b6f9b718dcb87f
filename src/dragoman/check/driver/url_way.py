"""The way to an agent at an address."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from dragoman.wire.framing import Oversized
from dragoman.wire.transport import Transport
from dragoman.wire.url import open_url as open_transport


class UrlWay:
    """A transport, read line by line."""

    has_process = False

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()

    def lines_received(self, lines: Sequence[bytes | Oversized]) -> None:
        """Take the next lines, from the transport."""
        for line in lines:
            self._lines.put_nowait(line if isinstance(line, bytes) else b"<a line that is too long>")

    def input_ended(self, *, drained: bool) -> None:
        """Take note that the transport has no more lines."""
        del drained
        self._lines.put_nowait(None)

    def send(self, data: bytes) -> None:
        self._transport.write(data)

    async def read(self) -> bytes | None:
        return await self._lines.get()

    def close_input(self) -> None:
        """Do nothing: a connection has one end, and it is ours to close."""

    async def exited(self, timeout_s: float) -> str | None:
        del timeout_s
        return None


@asynccontextmanager
async def open_url(url: str, token: str | None) -> AsyncGenerator[UrlWay]:
    """Connect to the agent at an address; raises AddressFailed."""
    transport = await open_transport(url, token=token)
    way = UrlWay(transport)
    async with asyncio.TaskGroup() as tasks:
        transport.start(way, tasks)
        try:
            yield way
        finally:
            await transport.close()
