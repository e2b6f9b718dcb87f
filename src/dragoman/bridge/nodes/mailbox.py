"""Sends messages to other nodes, in order for each receiver, with one INSERT at a time.

A message is in the table once, even if its INSERT is retried. A message is dropped if it cannot be sent within the time
of a lease, if the queue is full, or if its receiver has left. The messages after it are then dropped as well. This node
has lost touch with the receiver and notifies everything that waits for one of these messages.

Message numbers for a receiver start from the clock. So a receiver without pending messages can be forgotten: the next
numbers are higher than all that it has seen.
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
from dragoman.store.postgresql.message_table import MessageTable, ReceiverGoneError
from dragoman.wire import MAX_LINE_BYTES

MAX_UNSENT_BYTES = 2 * MAX_LINE_BYTES
"""Limit per receiver while the database is away: the longest message and as much again."""

_MAX_BATCH = 200
_RETRY_S = 0.2

_log = logging.getLogger("dragoman.bridge")


class _Receiver:
    """The messages for one node."""

    def __init__(self) -> None:
        self.waiting: deque[bytes] = deque()
        self.sending: list[bytes] = []
        """The messages of the current INSERT. Empty if they were dropped."""
        self._under_way = 0
        """The number of messages in the current INSERT."""
        self.bytes = 0
        self.sent = time.monotonic_ns() // 1_000
        """The number of the last message in the table."""
        self.task: asyncio.Task[None] | None = None
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []

    def begin_batch(self) -> list[bytes]:
        """Remove the messages of the next INSERT from the queue, and return them."""
        self.sending = [self.waiting.popleft() for _ in range(min(_MAX_BATCH, len(self.waiting)))]
        self._under_way = len(self.sending)
        return self.sending

    def end_batch(self, batch: list[bytes]) -> None:
        """Count a batch that is in the table or was dropped. Receivers accept gaps in the numbers."""
        self.sent += len(batch)
        self._under_way = 0
        if self.sending is batch:
            self.sending = []
            self.bytes -= sum(map(len, batch))
        self._wake([each for each in self._waiters if each[0] <= self.sent])

    def drop(self) -> None:
        """Drop all messages that are not known to be in the table."""
        self.waiting.clear()
        self.sending = []
        self.bytes = 0
        self._wake(self._waiters)

    async def reach(self) -> None:
        """Wait until all messages queued so far are in the table or were dropped."""
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
    """Sends the messages of this node. A message must be sent within `patience_s`."""

    def __init__(self, table: MessageTable, patience_s: float) -> None:
        self.on_lost_touch: Callable[[uuid.UUID, str], None] | None = None
        """Called with a receiver and a reason when messages for it were dropped."""
        self._table = table
        self._patience_s = patience_s
        self._receivers: dict[uuid.UUID, _Receiver] = {}

    def unsent_bytes(self, receiver: uuid.UUID) -> int:
        """Return the size of the messages for a node that are not in the table yet."""
        found = self._receivers.get(receiver)
        return 0 if found is None else found.bytes

    def send(self, receiver: uuid.UUID, message: NodeMessage) -> None:
        """Enqueue a message for a node."""
        to = self._receivers.setdefault(receiver, _Receiver())
        body = messages.encode(message)
        if to.bytes + len(body) > MAX_UNSENT_BYTES:
            self._lose_touch(receiver, to, f"{to.bytes:,} bytes are already waiting for it")
            return
        to.waiting.append(body)
        to.bytes += len(body)
        if to.task is None:
            to.task = asyncio.create_task(self._send_all(receiver, to))

    async def sent(self, receiver: uuid.UUID) -> None:
        """Wait until all messages sent to a node so far are in the table or were dropped."""
        to = self._receivers.get(receiver)
        if to is not None:
            await to.reach()

    async def finish(self, timeout_s: float) -> None:
        """Wait until all messages are sent, in bounded time."""
        tasks = [to.task for to in self._receivers.values() if to.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=timeout_s)
        for task in tasks:
            task.cancel()

    def drop_all(self) -> None:
        """Drop all unsent messages, because other nodes may regard this one as dead. Its links end with its lease."""
        for to in self._receivers.values():
            to.drop()

    def drop(self, receiver: uuid.UUID) -> None:
        """Drop the messages for a node that is gone."""
        to = self._receivers.get(receiver)
        if to is not None:
            to.drop()

    def keep_only(self, nodes: Container[uuid.UUID]) -> None:
        """Forget all receivers except these and those with pending messages."""
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
        """Retry the INSERT of a batch until it succeeds or the batch is dropped."""
        give_up_at = time.monotonic() + self._patience_s
        while to.sending is batch:
            try:
                await self._table.send(receiver, to.sent + 1, batch)
            except ReceiverGoneError as error:
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
