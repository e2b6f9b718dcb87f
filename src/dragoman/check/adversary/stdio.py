"""The adversary on its own stdin and stdout, as a client starts it."""

import asyncio
import os
from pathlib import Path

from dragoman.check.adversary.player import Part, Player
from dragoman.check.adversary.record import Record
from dragoman.check.conversation import Side
from dragoman.check.inbox import Inbox
from dragoman.wire.stdio import StdioTransport, take_stdio

DEAD_STATUS = 3


class StdioChannel:
    """Our stdio, with everything written down."""

    def __init__(self, transport: StdioTransport, record: Record) -> None:
        self._transport = transport
        self._record = record
        self.inbox = Inbox(transport)
        self.read = self.inbox.read

    def send(self, data: bytes) -> None:
        self._transport.write(data)

    def note(self, sender: Side, line: bytes = b"", event: str = "") -> None:
        self._record.add(sender, line, event)

    async def die(self) -> None:
        await self._transport.close()
        os._exit(DEAD_STATUS)


async def serve(part: Part, record_path: Path, answer_timeout_s: float) -> None:
    """Play a part with whoever started us."""
    record = Record(record_path)
    transport = StdioTransport(*take_stdio())
    channel = StdioChannel(transport, record)
    channel.note("agent", event="started")
    try:
        async with asyncio.TaskGroup() as tasks:
            transport.start(channel.inbox, tasks)
            await Player(channel, part, answer_timeout_s).play()
            channel.note("agent", event="stdin closed")
            await transport.close()
    finally:
        record.close()
