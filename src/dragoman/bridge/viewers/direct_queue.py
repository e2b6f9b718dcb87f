"""Direct messages are for one viewer only, such as answers to its requests and requests to it.

Each names the record of the session's journal that it must follow. It goes out once the cursor has reached that record,
and no record beyond goes out before it. Messages are numbered as they are sent. Over HTTP a sent message is kept until
the viewer names it or a later one in `Last-Event-ID`, because a stream may break before the viewer has read it. A
viewer that opens the stream again without an id has read nothing since the last id that it named.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.bridge.viewers.subscription import Subscription


class DirectMessage:
    """One message for one viewer."""

    __slots__ = ("after", "data", "gate", "key", "number")

    def __init__(
        self, data: bytes, after: int = 0, *, gate: "Subscription | None" = None, key: str | None = None
    ) -> None:
        self.data = data
        self.after = after
        """The last record that must come before it."""
        self.gate = gate
        """In the stream of a connection: the subscription to the session of that record."""
        self.key = key
        """The session of which it is an announcement, which a newer one replaces."""
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
        self.number = 0
        """The last message that was sent."""
        self._backlog = backlog
        self._named = 0
        """The last message that the viewer has named."""
        self._keep_bytes = keep_bytes
        self._kept: deque[DirectMessage] | None = None
        self._kept_bytes = 0

    def put(self, direct: DirectMessage) -> None:
        """Add a message at the end."""
        self._backlog.bytes += len(direct.data)
        self.waiting.append(direct)

    def replace(self, direct: DirectMessage, data: bytes) -> None:
        """Replace the content of a waiting message."""
        self._backlog.bytes += len(data) - len(direct.data)
        direct.data = data

    def bring_forward(self, end: int) -> None:
        """Make no message wait for a record after this one."""
        for direct in self.waiting:
            direct.after = min(direct.after, end)

    def clear(self, is_wanted: Callable[[DirectMessage], bool] = lambda _: True) -> list[DirectMessage]:
        """Remove and return the waiting messages, all or those wanted."""
        removed = [direct for direct in self.waiting if is_wanted(direct)]
        kept = [direct for direct in self.waiting if not is_wanted(direct)]
        self.waiting.clear()
        self.waiting.extend(kept)
        self._backlog.bytes -= sum(len(direct.data) for direct in removed)
        return removed

    def pop(self) -> DirectMessage:
        """Remove and return the first message."""
        return self._sent(self.waiting.popleft())

    def pop_ready(self, is_ready: Callable[[DirectMessage], bool], max_bytes: int) -> list[DirectMessage]:
        """Remove and return the messages that may be sent now, at any position, as far as they fit."""
        ready: list[DirectMessage] = []
        passed: list[DirectMessage] = []
        size = 0
        while self.waiting and size < max_bytes:
            direct = self.waiting.popleft()
            if is_ready(direct):
                size += len(direct.data)
                ready.append(self._sent(direct))
            else:
                passed.append(direct)
        self.waiting.extendleft(reversed(passed))
        return ready

    def rewind(self, number: int | None = None) -> None:
        """Forget messages up to this number, which the viewer has, and repeat the rest.

        Without a number, the viewer has the messages up to the last one that it named.
        """
        number = self._named if number is None else number
        again = [direct for direct in self._kept or () if direct.number > number]
        self._kept = None
        self._kept_bytes = 0
        self.number = self._named = min(self.number, number)
        self._backlog.bytes += sum(len(direct.data) for direct in again)
        self.waiting.extendleft(reversed(again))

    def _sent(self, direct: DirectMessage) -> DirectMessage:
        self.number += 1
        direct.number = self.number
        self._backlog.bytes -= len(direct.data)
        if self._keep_bytes:
            self._keep(direct)
        return direct

    def _keep(self, direct: DirectMessage) -> None:
        """Keep a message until the viewer names it or a later one."""
        kept = self._kept = deque() if self._kept is None else self._kept
        kept.append(direct)
        self._kept_bytes += len(direct.data)
        while self._kept_bytes > self._keep_bytes and len(kept) > 1:
            self._kept_bytes -= len(kept.popleft().data)
