"""The first words of an agent: what it prints before it has answered, to say so when it never does."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from dragoman.client.link import Link
from dragoman.errors import ConnectionClosed
from dragoman.wire import Malformed, Oversized, Receiver, Transport, parse

MAX_LINES = 20
MAX_LINE_CHARACTERS = 200


class Watch(Protocol):
    """Sees every line of a conversation as it passes."""

    def sent(self, lines: bytes | bytearray) -> None:
        """See what goes to the agent: lines that end in a newline each."""
        ...

    def received(self, lines: Sequence[bytes | Oversized]) -> None:
        """See what comes from the agent."""
        ...


class Greeting:
    """A transport that keeps the lines that are no messages, until it is told that the agent is one."""

    def __init__(self, transport: Transport, watches: Sequence[Watch] = ()) -> None:
        self.printed: list[str] = []
        self.link: Link | None = None
        """Whose reads are counted, once the agent has answered."""
        self._transport = transport
        self._watches = watches

    @property
    def unsent_bytes(self) -> int:
        return self._transport.unsent_bytes

    @property
    def can_write(self) -> bool:
        return self._transport.can_write

    def start(self, receiver: Receiver, tasks: asyncio.TaskGroup) -> None:
        self._receiver = receiver
        self._transport.start(self, tasks)

    def lines_received(self, lines: Sequence[bytes | Oversized]) -> None:
        """Take the next lines, from the transport."""
        for watch in self._watches:
            watch.received(lines)
        if self.link is None:
            self._look(lines)
        else:
            self.link.reads += 1
        self._receiver.lines_received(lines)

    def input_ended(self, *, was_file: bool) -> None:
        """Take note that the transport has no more lines."""
        self._receiver.input_ended(was_file=was_file)

    def write(self, lines: bytes | bytearray) -> None:
        for watch in self._watches:
            watch.sent(lines)
        self._transport.write(lines)

    async def drained(self) -> None:
        await self._transport.drained()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    async def explain_end(self) -> ConnectionClosed:
        return await self._transport.explain_end()

    async def close(self) -> None:
        await self._transport.close()

    def _look(self, lines: Sequence[bytes | Oversized]) -> None:
        for line in lines:
            if len(self.printed) < MAX_LINES and isinstance(line, bytes) and isinstance(parse(line), Malformed):
                self.printed.append(line.decode(errors="replace").strip()[:MAX_LINE_CHARACTERS])
