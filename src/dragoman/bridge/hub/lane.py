"""What is meant for one viewer alone: answers to its requests, and requests to it.

Each says which record of the session's journal it must follow. They are numbered as they are taken. Over HTTP, what was
taken is kept until the viewer shows that it arrived, by a later `Last-Event-ID` or by what it does (it answers what it
was asked, it uses the session that it was told of): a stream may break after something was taken and before it was
read. Who opens a stream again without an id has seen none of its events, or does not keep ids. Whoever has shown that
it reads, and still names none, does not: it gets again only what was not even sent. Anybody else gets again all that
it did not show to have.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.bridge.hub.attachment import Attachment


class Direct:
    """One message for one viewer."""

    __slots__ = ("after", "ask_id", "data", "gate", "key", "number", "reveals")

    def __init__(
        self,
        data: bytes,
        after: int = 0,
        *,
        gate: "Attachment | None" = None,
        key: str | None = None,
        ask_id: bytes | None = None,
        reveals: str | None = None,
    ) -> None:
        self.data = data
        self.after = after
        """The record that it must not overtake."""
        self.gate = gate
        """In the stream of a connection: the session whose records those are."""
        self.key = key
        """What it is news of, if newer news may replace it."""
        self.ask_id = ask_id
        """Which request to the viewer it is, if it is one."""
        self.reveals = reveals
        """The session of which a viewer knows by this alone."""
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
        self.sent = 0
        """The last one that was taken and sent: whoever takes has come for more since."""
        self._arrived = 0
        self._was_shown = False
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

    def bring_forward(self, end: int) -> None:
        """Have nothing wait for a record behind this one."""
        for direct in self.waiting:
            direct.after = min(direct.after, end)

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

    def confirm(self, is_it: Callable[[Direct], bool]) -> Direct | None:
        """Take note that the viewer has shown to have a message, and so all before it; gives the last such one."""
        shown = next((direct for direct in reversed(self._kept) if is_it(direct)), None)
        if shown is not None:
            self._was_shown = True
            self._arrived = max(self._arrived, shown.number)
        return shown

    def reopen(self, *, keeps_ids: bool) -> None:
        """Have that taken again which a viewer may not have, that names no event as the last that it has."""
        self.rewind(max(self.sent, self._arrived) if self._was_shown and not keeps_ids else self._arrived)

    def rewind(self, number: int) -> None:
        """Forget what arrived, up to this number, and have the rest taken again."""
        again = [direct for direct in self._kept if direct.number > number]
        self._kept.clear()
        self._kept_bytes = 0
        self.number = self.sent = self._arrived = min(self.number, number)
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
