"""Messages to other nodes: in order for each receiver, one INSERT under way at a time."""

import asyncio
import logging
import uuid
from collections import deque

from dragoman.bridge.nodes import messages
from dragoman.bridge.nodes.messages import NodeMessage
from dragoman.errors import DragomanError
from dragoman.store.postgresql.message_table import MessageTable

MAX_UNSENT_BYTES = 64 * 1024 * 1024
"""For one node, while the database takes nothing; more are dropped with all links to it."""

_MAX_BATCH = 200
_RETRY_S = 0.2

_log = logging.getLogger("dragoman.bridge")


class _Receiver:
    """The messages for one node."""

    def __init__(self) -> None:
        self.waiting: deque[bytes] = deque()
        self.sending: list[bytes] = []
        """The messages of the INSERT that is under way."""
        self.bytes = 0
        self.sent = 0
        """The number of the last message that is in the table."""
        self.task: asyncio.Task[None] | None = None

    def drop(self) -> None:
        """Drop what is not known to be in the table; numbers may have a gap then, which no receiver minds."""
        self.waiting.clear()
        self.sending = []
        self.bytes = 0


class Mailbox:
    """Sends the messages of this node."""

    def __init__(self, table: MessageTable) -> None:
        self._table = table
        self._receivers: dict[uuid.UUID, _Receiver] = {}

    def unsent_bytes(self, receiver: uuid.UUID) -> int:
        """Return the size of the messages for a node that are not in the table."""
        found = self._receivers.get(receiver)
        return 0 if found is None else found.bytes

    def send(self, receiver: uuid.UUID, message: NodeMessage) -> None:
        """Send a message soon."""
        to = self._receivers.setdefault(receiver, _Receiver())
        body = messages.encode(message)
        if to.bytes + len(body) > MAX_UNSENT_BYTES:
            # The lease of this node ends soon, and its links with it.
            _log.warning("a message for node %s is dropped: the database takes none, and too many wait", receiver)
            return
        to.waiting.append(body)
        to.bytes += len(body)
        if to.task is None:
            to.task = asyncio.create_task(self._send_all(receiver, to))

    async def sent(self, receiver: uuid.UUID) -> None:
        """Wait until all that was sent to a node so far is in the table, or never will be."""
        to = self._receivers.get(receiver)
        while to is not None and to.task is not None:
            await asyncio.wait([to.task])

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

    def forget(self, receiver: uuid.UUID) -> None:
        """Drop the messages for a node that is gone; one that comes back goes on with the numbers."""
        to = self._receivers.get(receiver)
        if to is not None:
            to.drop()

    async def _send_all(self, receiver: uuid.UUID, to: _Receiver) -> None:
        try:
            while to.waiting:
                batch = [to.waiting.popleft() for _ in range(min(_MAX_BATCH, len(to.waiting)))]
                to.sending = batch
                await self._send(receiver, to, batch)
                to.sent += len(batch)
                to.bytes = max(0, to.bytes - sum(map(len, batch)))
        finally:
            to.task = None

    async def _send(self, receiver: uuid.UUID, to: _Receiver, batch: list[bytes]) -> None:
        """Send until it is done or dropped: links that are made without a lease last until the database is back."""
        while to.sending is batch:
            try:
                await self._table.send(receiver, to.sent + 1, batch)
            except DragomanError:
                await asyncio.sleep(_RETRY_S)
            else:
                return
