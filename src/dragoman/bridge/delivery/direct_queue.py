"""Direct messages: those for one viewer alone, such as answers to its requests and requests to it.

Each names the record of the session's journal that it must follow: it goes out once the cursor has reached that record,
and no record beyond goes out before it. They are numbered as they are taken. Over HTTP, a taken message is kept until
the viewer shows that it arrived, by a later `Last-Event-ID` or by its actions (it answers the request, it uses the
session that it was told of), because a stream may break after a message was taken and before it was read.

A viewer that opens a stream again without an id has seen none of its events, or does not keep ids. A viewer that has
acted on an event and still sends no id does not keep ids: it gets again only the messages that were not even sent. Any
other viewer gets again everything that it did not show to have.
"""

from collections import deque
from collections.abc import Callable
from typing import Protocol


class Gate(Protocol):
    """A subscription, as a message of the connection's stream waits for it."""

    session_id: str
    arrived: int

    def may_show(self, after: int) -> bool:
        """Tell whether the journal has a record, so that a message behind it may be seen."""
        ...


class DirectMessage:
    """One message for one viewer."""

    __slots__ = ("after", "data", "gate", "key", "number", "request_id", "reveals")

    def __init__(
        self,
        data: bytes,
        after: int = 0,
        *,
        gate: Gate | None = None,
        key: str | None = None,
        request_id: bytes | None = None,
        reveals: str | None = None,
    ) -> None:
        self.data = data
        self.after = after
        """The last record that must come before it."""
        self.gate = gate
        """In the stream of a connection: the subscription to the session of that record."""
        self.key = key
        """The session of which it is an announcement, which a newer one replaces."""
        self.request_id = request_id
        """Its id, if it is a request to the viewer."""
        self.reveals = reveals
        """The session that the viewer knows of by this message alone."""
        self.number = 0


class Backlog:
    """The size of all that waits for one viewer, in all its streams."""

    __slots__ = ("bytes",)

    def __init__(self) -> None:
        self.bytes = 0


class DirectQueue:
    """The direct messages of one stream, in order."""

    def __init__(self, backlog: Backlog, *, keep_bytes: int = 0) -> None:
        self.waiting: deque[DirectMessage] = deque()
        self._backlog = backlog
        self.number = 0
        """The last one that was taken."""
        self.sent = 0
        """The last one that was taken and sent: its reader has come for more since."""
        self._arrived = 0
        """The last one that the viewer has shown to have."""
        self._was_shown = False
        self._keep_bytes = keep_bytes
        self._kept: deque[DirectMessage] = deque()
        self._kept_bytes = 0

    def put(self, direct: DirectMessage) -> None:
        """Add a message at the end."""
        self._backlog.bytes += len(direct.data)
        self.waiting.append(direct)

    def replace(self, direct: DirectMessage, data: bytes) -> None:
        """Give a waiting message another content."""
        self._backlog.bytes += len(data) - len(direct.data)
        direct.data = data

    def bring_forward(self, end: int) -> None:
        """Let no message wait for a record after this one."""
        for direct in self.waiting:
            direct.after = min(direct.after, end)

    def clear(self) -> list[DirectMessage]:
        """Remove all that waits, and give it."""
        waiting = list(self.waiting)
        self.waiting.clear()
        self._backlog.bytes -= sum(len(direct.data) for direct in waiting)
        return waiting

    def take(self) -> DirectMessage:
        """Take the first one."""
        return self._took(self.waiting.popleft())

    def take_ready(self, is_ready: Callable[[DirectMessage], bool], max_bytes: int) -> list[DirectMessage]:
        """Take the messages that may go now, wherever they stand, as far as they fit."""
        taken: list[DirectMessage] = []
        passed: list[DirectMessage] = []
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

    def confirm(self, is_it: Callable[[DirectMessage], bool]) -> DirectMessage | None:
        """Note that the viewer has shown to have a message, and so all before it; gives the last such message."""
        shown = next((direct for direct in reversed(self._kept) if is_it(direct)), None)
        if shown is not None:
            self._was_shown = True
            self._arrived = max(self._arrived, shown.number)
        return shown

    def reopen(self, *, keeps_ids: bool) -> None:
        """Repeat the messages that may be missing at a viewer that opens its stream again without an id."""
        self.rewind(max(self.sent, self._arrived) if self._was_shown and not keeps_ids else self._arrived)

    def rewind(self, number: int) -> None:
        """Forget messages up to this number, which arrived, and repeat the rest."""
        again = [direct for direct in self._kept if direct.number > number]
        self._kept.clear()
        self._kept_bytes = 0
        self.number = self.sent = self._arrived = min(self.number, number)
        self._backlog.bytes += sum(len(direct.data) for direct in again)
        self.waiting.extendleft(reversed(again))

    def _took(self, direct: DirectMessage) -> DirectMessage:
        self.number += 1
        direct.number = self.number
        self._backlog.bytes -= len(direct.data)
        if self._keep_bytes:
            self._kept.append(direct)
            self._kept_bytes += len(direct.data)
            while self._kept_bytes > self._keep_bytes and len(self._kept) > 1:
                self._kept_bytes -= len(self._kept.popleft().data)
        return direct
