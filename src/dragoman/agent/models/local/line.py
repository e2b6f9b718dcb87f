"""The line in which sessions wait for the one model, first come first served."""

import threading
from collections import deque
from concurrent.futures import Future

from dragoman.errors import ModelFailure

MAX_WAITING = 8
"""Sessions behind the one that is served: each may take minutes, so that a ninth would wait longer than a person."""


class QueuePosition:
    """Somebody's place in the line; `turn` is done when nobody is in front any more."""

    def __init__(self, line: "ModelQueue") -> None:
        self._line = line
        self.turn: Future[None] = Future()
        self.turn.set_running_or_notify_cancel()  # so that a cancelled waiter does not cancel the turn itself

    def leave(self) -> None:
        """Let the next one in; from any thread, and again without harm."""
        self._line.leave(self)


class ModelQueue:
    """Everybody who wants the model, the one who has it first."""

    def __init__(self, max_waiting: int = MAX_WAITING) -> None:
        self._max_waiting = max_waiting
        self._lock = threading.Lock()
        self._places: deque[QueuePosition] = deque()

    def join(self) -> QueuePosition:
        """Take a place at the end; raises ModelFailure when the line is too long."""
        with self._lock:
            if len(self._places) > self._max_waiting:
                raise ModelFailure(
                    f"{self._max_waiting} sessions wait for the local model already; try again when they are done"
                )
            place = QueuePosition(self)
            self._places.append(place)
            if len(self._places) == 1:
                place.turn.set_result(None)
            return place

    def leave(self, place: QueuePosition) -> None:
        """Give up a place, wherever in the line it is."""
        with self._lock:
            if place not in self._places:
                return
            self._places.remove(place)
            if self._places and not self._places[0].turn.done():
                self._places[0].turn.set_result(None)
