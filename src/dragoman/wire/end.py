"""How a connection ends, as a state machine.

    OPEN ──end_input──▶ DRAINING ──end──▶ ENDED ──close──▶ CLOSED
      └───────────────────┴───────── close ──────────────────▲

OPEN      Lines arrive, and calls can be made.
DRAINING  No more lines will arrive. The backlog may still hold lines, and responses among them still count.
ENDED     All lines were handled. Open calls have failed with the reason, because no response can arrive. Running
          handlers may continue and answer, because the other side may still read although it closed its output.
CLOSED    This side closed the connection. Lines are dropped and handlers are cancelled.

The first reason is kept. If the other side ended the connection and we close it later, the reason stays the same.
"""

import asyncio
from enum import Enum, auto

from dragoman.errors import ConnectionClosedError


class EndState(Enum):
    """The progress of a connection towards its end."""

    OPEN = auto()
    DRAINING = auto()
    ENDED = auto()
    CLOSED = auto()


_ORDER = tuple(EndState)


class ConnectionEnd:
    """Guards the state of one connection. The state only moves forward."""

    def __init__(self) -> None:
        self.state = EndState.OPEN
        """The current state. Only the methods below change it."""
        self.reason: ConnectionClosedError | None = None
        """Why no call can be made. None while the state is OPEN or DRAINING."""
        self.input_was_file = False
        self._input_ended = asyncio.Event()
        self._ended = asyncio.Event()

    @property
    def has_input_ended(self) -> bool:
        """Whether the transport reported the end of its input."""
        return self._input_ended.is_set()

    def end_input(self, *, was_file: bool) -> None:
        """Record that no more lines will arrive."""
        self.input_was_file = was_file
        self._input_ended.set()
        self._move_to(EndState.DRAINING)

    def end(self, reason: ConnectionClosedError) -> ConnectionClosedError:
        """Record that all lines were handled. Return the reason that counts."""
        if self.reason is None:
            self.reason = reason
            self._ended.set()
        self._move_to(EndState.ENDED)
        return self.reason

    def close(self, reason: ConnectionClosedError) -> ConnectionClosedError:
        """Record that this side closes the connection. Return the reason that counts."""
        counts = self.end(reason)
        self._move_to(EndState.CLOSED)
        return counts

    async def wait_input_ended(self) -> None:
        """Wait until no more lines will arrive."""
        await self._input_ended.wait()

    async def wait_ended(self) -> None:
        """Wait until the reason is known."""
        await self._ended.wait()

    def _move_to(self, state: EndState) -> None:
        if _ORDER.index(state) > _ORDER.index(self.state):
            self.state = state
