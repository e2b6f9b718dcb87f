"""Work that the agent does outside of a turn, shown while the user types.

    state    event    next     shown
    IDLE     work     WORKING  a heading, and every complete row
    WORKING  work     WORKING  every complete row
    WORKING  silence  IDLE     the rest: the unfinished row, the thoughts, the running tool calls
    WORKING  enter    IDLE     the same

Shown rows are final, because live rows do not fit above the input line. Agents of version 1 do not say when
such work ends. A short silence therefore ends it, and later events start with a new heading.
"""

import time
from collections import deque
from collections.abc import Callable
from enum import Enum, auto

from dragoman.cli.chat.view import TurnView, note
from dragoman.client.events import Event, TextChunk, ThoughtChunk, ToolCallChanged

SILENCE_S = 0.5
"""Longer than the time between two chunks of a model, but short enough to show the last words quickly."""

_SHOWN = (TextChunk, ThoughtChunk, ToolCallChanged)
"""The events shown outside of a turn. Others, such as new commands, have an effect elsewhere."""


class UnpromptedState(Enum):
    """Whether output of such work is being shown."""

    IDLE = auto()
    WORKING = auto()


class UnpromptedWork:
    """Shows the events of a session that arrive outside of its turns. `find_events` returns their queue."""

    def __init__(self, view: TurnView, find_events: Callable[[], deque[Event]]) -> None:
        self._view = view
        self._find_events = find_events
        self._state = UnpromptedState.IDLE
        self._last_at = 0.0
        self._pending: list[Event] = []
        """Events that have not been shown yet."""

    def may_be_due(self) -> bool:
        """Return whether events may have to be shown. Safe to call from any thread."""
        is_silent = time.monotonic() - self._last_at > SILENCE_S
        return bool(self._find_events()) or (self._state is UnpromptedState.WORKING and is_silent)

    def is_due(self) -> bool:
        """Return whether there is something to show."""
        return self.may_be_due() and (self._collect() or self._state is UnpromptedState.WORKING)

    def write(self) -> None:
        """Show the next events, or the rest after a silence, above the input line."""
        if self._pending:
            self._show_pending()
        else:
            self._settle()
            self._view.screen.begin_block()

    def show_all(self) -> None:
        """Show everything so far, because the user continues."""
        if self._collect():
            self._show_pending()
        self._settle()

    def _collect(self) -> bool:
        events = self._find_events()
        received = [events.popleft() for _ in range(len(events))]
        self._pending += [event for event in received if isinstance(event, _SHOWN)]
        return bool(self._pending)

    def _show_pending(self) -> None:
        if self._state is UnpromptedState.IDLE:
            self._view.screen.begin_block()
            note(self._view.screen, "The agent worked on its own:")
        pending, self._pending = self._pending, []
        for event in pending:
            self._view.show(event)
        self._state = UnpromptedState.WORKING
        self._last_at = time.monotonic()

    def _settle(self) -> None:
        if self._state is UnpromptedState.WORKING:
            self._view.finish()
            self._state = UnpromptedState.IDLE
