"""What carries lines between two peers."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from dragoman.errors import ConnectionClosed
from dragoman.wire.framing import Oversized

HIGH_WATER_BYTES = 256 * 1024
"""Unsent bytes at which a sender has to wait: several pipes full, so that the pipe never runs dry."""

LOW_WATER_BYTES = 64 * 1024
"""Unsent bytes at which it goes on."""

CLOSE_TIMEOUT_S = 2.0
"""How long closing waits for the other side to take what was written: a peer that does not read loses it."""


class Receiver(Protocol):
    """What a transport delivers to."""

    def lines_received(self, lines: Sequence[bytes | Oversized]) -> None:
        """Take the next lines, in order."""
        ...

    def input_ended(self, *, drained: bool) -> None:
        """Take note that no line will come any more; `drained` when that is only the end of a file."""
        ...


class Transport(Protocol):
    """Carries whole lines both ways; knows nothing of what they say."""

    @property
    def unsent_bytes(self) -> int:
        """What was written and the other side has not taken yet."""
        ...

    @property
    def can_write(self) -> bool:
        """False once it is known that the other side takes nothing any more."""
        ...

    def start(self, receiver: Receiver, tasks: asyncio.TaskGroup) -> None:
        """Begin to deliver; `tasks` is for what has to run beside."""
        ...

    def write(self, lines: bytes | bytearray) -> None:
        """Send lines that end in a newline each; never waits, and drops them when the other side is gone."""
        ...

    async def drained(self) -> None:
        """Wait until the other side has taken enough, or is gone."""
        ...

    def pause_reading(self) -> None:
        """Deliver nothing until `resume_reading`, so that the other side has to wait."""
        ...

    def resume_reading(self) -> None:
        """Deliver again."""
        ...

    async def explain_end(self) -> ConnectionClosed:
        """Say why no line will come any more."""
        ...

    async def close(self) -> None:
        """Send what is unsent, within `CLOSE_TIMEOUT_S`, and let go."""
        ...
