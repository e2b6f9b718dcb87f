"""The last lines between the bridge and its agent, and the counts of all lines."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import msgspec

from dragoman.wire import Oversized

Direction = Literal["to_agent", "from_agent"]
TO_AGENT: Direction = "to_agent"
FROM_AGENT: Direction = "from_agent"

Lines = Sequence[bytes | Oversized]
"""Blocks of lines, each line with its newline. An oversized line is a separate block."""


class WireBatch(msgspec.Struct, gc=False):
    """Blocks of lines that were read or written together."""

    first: int
    time: float
    direction: Direction
    blocks: Lines
    count: int
    size: int

    def lines(self) -> Iterator[bytes | Oversized]:
        """Return the lines, without newlines."""
        for block in self.blocks:
            if isinstance(block, bytes):
                yield from (line for line in block.split(b"\n") if line and not line.isspace())
            else:
                yield block


class AgentTraffic:
    """Counts over all lives of an agent: starts, bytes and messages."""

    def __init__(self) -> None:
        self.starts = 0
        self.bytes = {TO_AGENT: 0, FROM_AGENT: 0}
        self.messages = {TO_AGENT: 0, FROM_AGENT: 0}


class WireLog:
    """The last lines between the bridge and its agent, in memory.

    Lines are stored in the batches in which they were read. They are not decoded unless an inspector is open.
    """

    def __init__(self, max_messages: int, max_bytes: int) -> None:
        self.on_batch: Callable[[WireBatch], None] | None = None
        """Called with each batch while an inspector is open."""
        self.traffic = AgentTraffic()
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._batches: deque[WireBatch] = deque()
        self._count = 0
        self._messages = 0
        self._bytes = 0

    def note(self, direction: Direction, lines: Lines) -> None:
        """Store lines, and drop the oldest ones beyond the limits."""
        count = size = 0
        for block in lines:
            count += block.count(b"\n") if isinstance(block, bytes) else 1
            size += line_size(block)
        self.traffic.bytes[direction] += size
        self.traffic.messages[direction] += count
        batch = WireBatch(self._count + 1, time.time(), direction, lines, count, size)
        self._batches.append(batch)
        self._count += count
        self._messages += count
        self._bytes += size
        while (self._messages > self._max_messages or self._bytes > self._max_bytes) and len(self._batches) > 1:
            oldest = self._batches.popleft()
            self._messages -= oldest.count
            self._bytes -= oldest.size
        if self.on_batch is not None:
            self.on_batch(batch)

    def batches(self) -> list[WireBatch]:
        """Return the batches in memory, oldest first."""
        return list(self._batches)


def line_size(line: bytes | Oversized) -> int:
    """Return the size of a line or block, or 0 for an oversized line, which was dropped."""
    return len(line) if isinstance(line, bytes) else 0
