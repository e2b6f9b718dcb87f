"""A bounded queue of the lines of a transport. A side that sends too much has to wait."""

import asyncio
from collections import deque
from collections.abc import Sequence

from dragoman.wire.framing import Oversized
from dragoman.wire.transport import HIGH_WATER_BYTES, LOW_WATER_BYTES, Transport

LINE_BYTES = 100
"""The memory of a line in addition to its bytes, so that many empty lines also count as a flood."""

TOO_LONG = b"<a line that is too long>"


class Inbox:
    """Queues the lines of a transport, and pauses its reading while more than the limit is waiting."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._lines: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._paused = False
        self._ended = False
        self._news = asyncio.Event()

    @property
    def waiting_bytes(self) -> int:
        """Bytes that were delivered and not read yet."""
        return self._waiting_bytes

    def lines_received(self, lines: Sequence[bytes | Oversized]) -> None:
        """Queue the next lines from the transport."""
        kept = [line if isinstance(line, bytes) else TOO_LONG for line in lines]
        self._lines.extend(kept)
        self._waiting_bytes += sum(map(_weigh, kept))
        self._news.set()
        if self._waiting_bytes > HIGH_WATER_BYTES and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def input_ended(self, *, was_file: bool) -> None:
        """Handle the end of the transport's lines."""
        del was_file
        self._ended = True
        self._news.set()

    async def read(self) -> bytes | None:
        """Wait for the next line. Return None at the end.

        Read nothing from a side that does not read our messages.
        """
        await self._transport.drained()
        while not self._lines:
            if self._ended:
                return None
            self._news.clear()
            await self._news.wait()
        line = self._lines.popleft()
        self._waiting_bytes -= _weigh(line)
        if self._paused and self._waiting_bytes <= LOW_WATER_BYTES:
            self._paused = False
            self._transport.resume_reading()
        return line


def _weigh(line: bytes) -> int:
    return len(line) + LINE_BYTES
