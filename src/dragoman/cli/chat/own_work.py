"""Work that an agent begins by itself, shown while the person writes.

    state     event    next      shown
    IDLE      work     WORKING   a heading, and every row that is whole
    WORKING   work     WORKING   every row that is whole
    WORKING   silence  IDLE      the rest: the open row, the thoughts, the tool calls that run
    WORKING   enter    IDLE      the same

The rows that are shown stay: there is no place for live rows above the line of the person. Agents of version 1 do not
say when such work ends, so that a short silence ends it, and what comes after begins anew.
"""

import time
from collections import deque
from collections.abc import Callable
from enum import Enum, auto

from dragoman.cli.chat.view import TurnView, note
from dragoman.client import Event, Text, Thought, ToolChanged

SILENCE_S = 0.5
"""Longer than the time between two chunks of a model, and short enough that the last words seem to come at once."""

_SHOWN = (Text, Thought, ToolChanged)
"""The events outside of a turn that are shown; others change what is shown anyway, such as the commands."""


class OwnWorkState(Enum):
    """Whether the agent works by itself, as far as it is shown."""

    IDLE = auto()
    WORKING = auto()


class OwnWork:
    """Shows the events of a session that come outside of its turns; `find_events` returns where they come."""

    def __init__(self, view: TurnView, find_events: Callable[[], deque[Event]]) -> None:
        self._view = view
        self._find_events = find_events
        self._state = OwnWorkState.IDLE
        self._last_at = 0.0
        self._taken: list[Event] = []
        """Events that are not shown yet."""

    def may_be_due(self) -> bool:
        """Whether events have come, or the rest of those before is to be shown; callable in any thread."""
        is_silent = time.monotonic() - self._last_at > SILENCE_S
        return bool(self._find_events()) or (self._state is OwnWorkState.WORKING and is_silent)

    def is_due(self) -> bool:
        """Whether there is something to show."""
        return self.may_be_due() and (self._take() or self._state is OwnWorkState.WORKING)

    def write(self) -> None:
        """Show the next events, or the rest after a silence, with the line of the person below."""
        if self._taken:
            self._show_taken()
        else:
            self._settle()
            self._view.screen.begin_block()

    def show_all(self) -> None:
        """Show all until now, because the person goes on."""
        if self._take():
            self._show_taken()
        self._settle()

    def _take(self) -> bool:
        events = self._find_events()
        taken = [events.popleft() for _ in range(len(events))]
        self._taken += [event for event in taken if isinstance(event, _SHOWN)]
        return bool(self._taken)

    def _show_taken(self) -> None:
        if self._state is OwnWorkState.IDLE:
            self._view.screen.begin_block()
            note(self._view.screen, "The agent worked by itself:")
        taken, self._taken = self._taken, []
        for event in taken:
            self._view.show(event)
        self._state = OwnWorkState.WORKING
        self._last_at = time.monotonic()

    def _settle(self) -> None:
        if self._state is OwnWorkState.WORKING:
            self._view.finish()
            self._state = OwnWorkState.IDLE
