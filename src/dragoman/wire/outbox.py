"""The unsent bytes of a transport, with the water marks that make senders wait."""

import asyncio

from dragoman.wire.transport import HIGH_WATER_BYTES, LOW_WATER_BYTES


class Outbox:
    """Counts what is unsent, and holds senders back while it is too much."""

    def __init__(self) -> None:
        self.unsent_bytes = 0
        self._closed = False
        self._waiters: list[asyncio.Future[None]] = []

    def add(self, count: int) -> None:
        """Count bytes that were written."""
        self.unsent_bytes += count

    def sent(self, count: int) -> None:
        """Count bytes that the other side took."""
        self.unsent_bytes -= count
        if self.unsent_bytes <= LOW_WATER_BYTES:
            self._release()

    def close(self) -> None:
        """Let everybody go: nothing will be sent any more."""
        self._closed = True
        self._release()

    async def drained(self, below: int = HIGH_WATER_BYTES) -> None:
        """Wait while there is more unsent than `below`, down to the low-water mark."""
        while self.unsent_bytes > below and not self._closed:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    def _release(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
