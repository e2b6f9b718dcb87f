"""The end of a connection, as a state.

    OPEN ──end_input──▶ DRAINING ──explain──▶ ENDED ──close──▶ CLOSED
      └───────────────────┴────────── close ─────────────────────▲

OPEN      Lines come, and calls can be made.
DRAINING  No line will come, but lines may wait in the backlog: answers among them still count.
ENDED     All lines were taken. Calls that waited have failed with the reason, because no answer can come; handlers
          that run may go on and answer, because the side that closed its output may still read its input.
CLOSED    This side let go: lines are dropped and handlers are cancelled.

The first reason counts: a connection that ended by itself and is closed later keeps the reason of its end.
"""

import asyncio
from enum import Enum, auto

from dragoman.errors import ConnectionClosed


class EndState(Enum):
    """How far the end of a connection has come."""

    OPEN = auto()
    DRAINING = auto()
    ENDED = auto()
    CLOSED = auto()


_ORDER = tuple(EndState)


class ConnectionEnd:
    """Guards the state of one connection; it moves forward only."""

    def __init__(self) -> None:
        self.state = EndState.OPEN
        """How far the end has come; changed by the methods below alone."""
        self.reason: ConnectionClosed | None = None
        """Why no call can be made; None while the state is OPEN or DRAINING."""
        self.input_was_file = False
        self._input_ended = asyncio.Event()
        self._explained = asyncio.Event()

    @property
    def has_input_ended(self) -> bool:
        """Whether the transport has said that no line will come any more."""
        return self._input_ended.is_set()

    def end_input(self, *, was_file: bool) -> None:
        """Take note that no line will come any more."""
        self.input_was_file = was_file
        self._input_ended.set()
        self._move_to(EndState.DRAINING)

    def explain(self, reason: ConnectionClosed) -> ConnectionClosed:
        """Take note that all lines were taken, and return the reason that counts."""
        if self.reason is None:
            self.reason = reason
            self._explained.set()
        self._move_to(EndState.ENDED)
        return self.reason

    def close(self, reason: ConnectionClosed) -> ConnectionClosed:
        """Take note that this side lets go, and return the reason that counts."""
        counts = self.explain(reason)
        self._move_to(EndState.CLOSED)
        return counts

    async def wait_input_ended(self) -> None:
        """Wait until no line will come any more."""
        await self._input_ended.wait()

    async def wait_explained(self) -> None:
        """Wait until the reason is known."""
        await self._explained.wait()

    def _move_to(self, state: EndState) -> None:
        if _ORDER.index(state) > _ORDER.index(self.state):
            self.state = state
