"""What is meant for one viewer alone: answers to its requests, and requests to it.

Each says which record of the session's journal it must follow. They are numbered as they are taken. Over HTTP, what was
taken is kept until a later `Last-Event-ID` says that it arrived: a stream may break after it was taken and before it
was read.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.gateway.hub.attachment import Attachment


class Direct:
    """One message for one viewer."""

    __slots__ = ("after", "data", "gate", "key", "number")

    def __init__(
        self, data: bytes, after: int = 0, *, gate: "Attachment | None" = None, key: str | None = None
    ) -> None:
        self.data = data
        self.after = after
        """The record that it must not overtake."""
        self.gate = gate
        """In the stream of a connection: the session whose records those are."""
        self.key = key
        """What it is news of, if newer news may replace it."""
        self.number = 0


class Backlog:
    """What waits for one viewer, in all its streams."""

    __slots__ = ("bytes",)

    def __init__(self) -> None:
        self.bytes = 0


class Lane:
    """Direct messages of one stream."""

    def __init__(self, backlog: Backlog, *, keep_bytes: int = 0) -> None:
        self.waiting: deque[Direct] = deque()
        self._backlog = backlog
        self.number = 0
        """The last one that was taken."""
        self._keep_bytes = keep_bytes
        self._kept: deque[Direct] = deque()
        self._kept_bytes = 0

    def put(self, direct: Direct) -> None:
        """Add a message at the end."""
        self._backlog.bytes += len(direct.data)
        self.waiting.append(direct)

    def replace(self, direct: Direct, data: bytes) -> None:
        """Have a message that waits say something else."""
        self._backlog.bytes += len(data) - len(direct.data)
        direct.data = data

    def clear(self) -> list[Direct]:
        """Let go of all that waits, and give it."""
        waiting = list(self.waiting)
        self.waiting.clear()
        self._backlog.bytes -= sum(len(direct.data) for direct in waiting)
        return waiting

    def take(self) -> Direct:
        """Take the first one."""
        return self._took(self.waiting.popleft())

    def take_ready(self, is_ready: Callable[[Direct], bool], max_bytes: int) -> list[Direct]:
        """Take those that may go now, whatever stands before them, as far as they fit."""
        taken: list[Direct] = []
        passed: list[Direct] = []
        size = 0
        while self.waiting and size < max_bytes:
            direct = self.waiting.popleft()
            if is_ready(direct):
                size += len(direct.data)
                taken.append(self._took(direct))
            else:
                passed.append(direct)
        self.waiting.extendleft(reversed(passed))
        return taken

    def rewind(self, number: int) -> None:
        """Forget what arrived, up to this number, and have the rest taken again."""
        again = [direct for direct in self._kept if direct.number > number]
        self._kept.clear()
        self._kept_bytes = 0
        self.number = min(self.number, number)
        self._backlog.bytes += sum(len(direct.data) for direct in again)
        self.waiting.extendleft(reversed(again))

    def _took(self, direct: Direct) -> Direct:
        self.number += 1
        direct.number = self.number
        self._backlog.bytes -= len(direct.data)
        if self._keep_bytes:
            self._kept.append(direct)
            self._kept_bytes += len(direct.data)
            while self._kept_bytes > self._keep_bytes and len(self._kept) > 1:
                self._kept_bytes -= len(self._kept.popleft().data)
        return direct
