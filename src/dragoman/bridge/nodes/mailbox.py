"""Messages to other nodes: in order for each receiver, one INSERT under way at a time.

A message is in the table once, however often its INSERT is tried. One that cannot be sent for as long as a lease lasts,
for which there is no room, or whose receiver has left, is never sent, and neither are those behind it: this node has
lost touch with its receiver then, and everybody who waits for one of these messages has to be told.

The numbers of the messages for a receiver begin with the time. So a receiver can be forgotten while nothing is under
way to it: the next numbers are higher than those that it has seen.
"""

import asyncio
import logging
import time
import uuid
from collections import deque
from collections.abc import Callable, Container

from dragoman.bridge.nodes import messages
from dragoman.bridge.nodes.messages import NodeMessage
from dragoman.errors import DragomanError
from dragoman.store.postgresql.message_table import MessageTable, ReceiverGone

MAX_UNSENT_BYTES = 64 * 1024 * 1024
"""For one node, while the database takes nothing."""

_MAX_BATCH = 200
_RETRY_S = 0.2

_log = logging.getLogger("dragoman.bridge")


class _Receiver:
    """The messages for one node."""

    def __init__(self) -> None:
        self.waiting: deque[bytes] = deque()
        self.sending: list[bytes] = []
        """The messages of the INSERT that is under way, unless they were dropped meanwhile."""
        self._under_way = 0
        """How many messages that INSERT has."""
        self.bytes = 0
        self.sent = time.monotonic_ns() // 1_000
        """The number of the last message that is in the table."""
        self.task: asyncio.Task[None] | None = None
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []

    def begin_batch(self) -> list[bytes]:
        """Take the messages of the next INSERT."""
        self.sending = [self.waiting.popleft() for _ in range(min(_MAX_BATCH, len(self.waiting)))]
        self._under_way = len(self.sending)
        return self.sending

    def end_batch(self, batch: list[bytes]) -> None:
        """Count messages that are in the table, or were dropped: numbers may have a gap, which no receiver minds."""
        self.sent += len(batch)
        self._under_way = 0
        if self.sending is batch:
            self.sending = []
            self.bytes -= sum(map(len, batch))
        self._wake([each for each in self._waiters if each[0] <= self.sent])

    def drop(self) -> None:
        """Drop what is not known to be in the table."""
        self.waiting.clear()
        self.sending = []
        self.bytes = 0
        self._wake(self._waiters)

    async def reach(self) -> None:
        """Wait until all messages so far are in the table, or were dropped; not for those that come meanwhile."""
        if self.sending or self.waiting:
            done = asyncio.get_running_loop().create_future()
            self._waiters.append((self.sent + self._under_way + len(self.waiting), done))
            await done

    def _wake(self, waiters: list[tuple[int, asyncio.Future[None]]]) -> None:
        self._waiters = [each for each in self._waiters if each not in waiters]
        for _, done in waiters:
            if not done.done():
                done.set_result(None)


class Mailbox:
    """Sends the messages of this node."""

    def __init__(self, table: MessageTable, patience_s: float) -> None:
        """Take the time in which a message has to be sent."""
        self.on_lost_touch: Callable[[uuid.UUID, str], None] | None = None
        """Called with a receiver when messages for it were dropped, and the reason."""
        self._table = table
        self._patience_s = patience_s
        self._receivers: dict[uuid.UUID, _Receiver] = {}

    @property
    def receivers(self) -> list[uuid.UUID]:
        """The nodes that are remembered."""
        return list(self._receivers)

    def unsent_bytes(self, receiver: uuid.UUID) -> int:
        """Return the size of the messages for a node that are not in the table."""
        found = self._receivers.get(receiver)
        return 0 if found is None else found.bytes

    def send(self, receiver: uuid.UUID, message: NodeMessage) -> None:
        """Send a message soon."""
        to = self._receivers.setdefault(receiver, _Receiver())
        body = messages.encode(message)
        if to.bytes + len(body) > MAX_UNSENT_BYTES:
            self._lose_touch(receiver, to, f"{to.bytes:,} bytes wait for it already")
            return
        to.waiting.append(body)
        to.bytes += len(body)
        if to.task is None:
            to.task = asyncio.create_task(self._send_all(receiver, to))

    async def sent(self, receiver: uuid.UUID) -> None:
        """Wait until all that was sent to a node so far is in the table, or never will be."""
        to = self._receivers.get(receiver)
        if to is not None:
            await to.reach()

    async def finish(self, timeout_s: float) -> None:
        """Have all messages sent, in bounded time."""
        tasks = [to.task for to in self._receivers.values() if to.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=timeout_s)
        for task in tasks:
            task.cancel()

    def drop_all(self) -> None:
        """Drop what is not sent, because this node may be taken for dead; its links end with its lease."""
        for to in self._receivers.values():
            to.drop()

    def drop(self, receiver: uuid.UUID) -> None:
        """Drop the messages for a node that is gone."""
        to = self._receivers.get(receiver)
        if to is not None:
            to.drop()

    def forget_others(self, nodes: Container[uuid.UUID]) -> None:
        """Forget all receivers but these, unless something is under way to them."""
        self._receivers = {each: to for each, to in self._receivers.items() if each in nodes or to.task is not None}

    async def _send_all(self, receiver: uuid.UUID, to: _Receiver) -> None:
        try:
            while to.waiting:
                batch = to.begin_batch()
                await self._send(receiver, to, batch)
                to.end_batch(batch)
        finally:
            to.task = None

    async def _send(self, receiver: uuid.UUID, to: _Receiver, batch: list[bytes]) -> None:
        """Try until it is done or dropped."""
        give_up_at = time.monotonic() + self._patience_s
        while to.sending is batch:
            try:
                await self._table.send(receiver, to.sent + 1, batch)
            except ReceiverGone as error:
                self._lose_touch(receiver, to, str(error), logging.DEBUG)
                return
            except DragomanError as error:
                if time.monotonic() > give_up_at:
                    self._lose_touch(receiver, to, str(error))
                    return
                await asyncio.sleep(_RETRY_S)
            else:
                return

    def _lose_touch(self, receiver: uuid.UUID, to: _Receiver, reason: str, level: int = logging.WARNING) -> None:
        _log.log(level, "messages for node %s are dropped: %s", receiver, reason)
        to.drop()
        if self.on_lost_touch is not None:
            self.on_lost_touch(receiver, f"messages to the bridge that has this session cannot be sent: {reason}")
