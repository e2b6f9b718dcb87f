"""The adversary on its own stdin and stdout, as a client starts it."""

import asyncio
import os
from pathlib import Path

from dragoman.check.adversary.player import Part, Player
from dragoman.check.adversary.record import Record
from dragoman.check.conversation import Side
from dragoman.wire.framing import MAX_LINE_BYTES
from dragoman.wire.stdio import take_stdio

DEAD_STATUS = 3


class StdioChannel:
    """Our stdio, with everything written down."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._lines = asyncio.StreamReader(limit=MAX_LINE_BYTES)

    async def open(self) -> None:
        """Take stdin and stdout over."""
        read_fd, self._write_fd = take_stdio()
        pipe = os.fdopen(read_fd, "rb", 0)
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(self._lines), pipe)

    def send(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._write_fd, rest) :]

    async def read(self) -> bytes | None:
        line = await self._lines.readline()
        return line.removesuffix(b"\n") if line else None

    def note(self, sender: Side, line: bytes = b"", event: str = "") -> None:
        self._record.add(sender, line, event)

    def die(self) -> None:
        os._exit(DEAD_STATUS)


async def serve(part: Part, record_path: Path, answer_timeout_s: float) -> None:
    """Play a part with whoever started us."""
    record = Record(record_path)
    channel = StdioChannel(record)
    channel.note("agent", event="started")
    await channel.open()
    try:
        await Player(channel, part, answer_timeout_s).play()
    except BrokenPipeError:
        pass  # the client has gone in the middle of it
    finally:
        channel.note("agent", event="stdin closed")
        record.close()
