"""The outbox of one viewer: its direct messages, its subscriptions, and the streams that read them.

Messages are not pushed to a viewer. A stream reads the next batch once it has sent the last one. Over a WebSocket one
stream reads everything. Over HTTP the stream of the connection has the messages that belong to no session or open one,
and each session has its own stream.
"""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from dragoman.bridge.delivery import MessageRun, StreamItem, read_cursor
from dragoman.bridge.viewers.direct_queue import Backlog, DirectMessage, DirectQueue
from dragoman.bridge.viewers.subscription import Subscription

if TYPE_CHECKING:
    from dragoman.bridge.viewers.viewer import Viewer

BATCH_BYTES = 128 * 1024
"""The most bytes of one batch: twice the size of one read from an agent, so that such a block is sent in one piece."""

Pull = Callable[[int], list[StreamItem]]
"""Returns the available messages, up to so many bytes."""


class ViewerStream:
    """A stream of messages for one viewer, read batch by batch."""

    def __init__(
        self,
        pull: Pull,
        has_more: Callable[[], bool],
        on_end: Callable[[], None] = lambda: None,
        event_id: Callable[[], bytes | None] = lambda: None,
    ) -> None:
        self.ended = False
        self.event_id = event_id
        """Returns the current position as an event id, or None without a position."""
        self.on_push: Callable[[], None] | None = None
        """Sends the next batch now if the transport has room. A transport without this sends it one tick later."""
        self._on_end = on_end
        self._pull = pull
        self._has_more = has_more
        self._waiter: asyncio.Future[None] | None = None
        self._free_since = time.monotonic()

    async def next_batch(self, max_bytes: int = BATCH_BYTES) -> list[StreamItem]:
        """Wait for at least one message, and return the messages that fit. An empty list is the end.

        If the reader is cancelled here, the stream ends.
        """
        while not self.ended:
            items = self._pull(max_bytes)
            if items:
                self._free_since = time.monotonic()
                return items
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            except asyncio.CancelledError:
                self.end()
                raise
            finally:
                self._waiter = None
                self._free_since = time.monotonic()
        return []

    def pop_batch(self) -> list[StreamItem]:
        """Return the messages that wait, as far as they fit."""
        self._free_since = time.monotonic()
        return self._pull(BATCH_BYTES)

    def push(self) -> None:
        """Send waiting messages now, if the reader waits and the transport has room.

        This callback is for answers, which are on the hot path of a round trip. Without it, the work at the end of a
        turn would run before the task that sends the answer, and the client would wait for it.
        """
        if self.on_push is not None and self.is_hungry and not self.ended:
            self.on_push()

    @property
    def is_hungry(self) -> bool:
        """Whether a reader waits in `next_batch` and receives the next message at once."""
        return self._waiter is not None

    def end(self) -> None:
        """End the stream. Its reader calls this when the connection is closed."""
        self.ended = True
        self.wake()
        self._on_end()

    def wake(self) -> None:
        """Wake the reader."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def stalled_s(self, now: float) -> float:
        """Return for how long nothing was read although messages were waiting."""
        if self.ended or self._waiter is not None or not self._has_more():
            return 0.0
        return now - self._free_since


class ViewerOutbox:
    """The messages of one viewer, which it merges into streams."""

    def __init__(self, viewer_id: str, window_bytes: int) -> None:
        self.subscriptions: dict[str, Subscription] = {}
        self.over_http = False
        self._name = viewer_id.encode()
        self._window_bytes = window_bytes
        self._backlog = Backlog()
        self._queue = DirectQueue(self._backlog)
        self._announcements: dict[str, DirectMessage] = {}
        self._ready: dict[Subscription, None] = {}
        self._stream: ViewerStream | None = None
        self._session_streams: dict[str, ViewerStream] = {}

    @property
    def backlog_bytes(self) -> int:
        """The size of all direct messages that wait."""
        return self._backlog.bytes

    def use_http(self) -> None:
        """Serve a viewer over HTTP. Sent messages are kept until it names them."""
        self.over_http = True
        self._queue = DirectQueue(self._backlog, keep_bytes=self._window_bytes)

    def put(self, data: bytes, subscription: Subscription | None, after: int | None) -> None:
        """Queue a message after a record of a session, by default the last one, or in the stream of the connection."""
        if subscription is None or subscription.history is None:
            self._queue.put(DirectMessage(data))
            self._wake_connection()
            return
        end = subscription.history.next_end if after is None else after
        subscription.queue.put(DirectMessage(data, end))
        self.wake(subscription)

    def put_gated(self, data: bytes, subscription: Subscription, after: int) -> None:
        """Queue the answer that opens a session in the stream of the connection, after a record of the session."""
        self._queue.put(DirectMessage(data, after, gate=subscription))
        self._wake_connection()

    def pop_gated(self, subscription: Subscription, end: int) -> list[DirectMessage]:
        """Remove and return the answers in the connection's stream that wait for a session's records behind `end`."""
        return self._queue.clear(lambda direct: direct.gate is subscription and direct.after > end)

    def announce(self, session_id: str, data: bytes) -> None:
        """Queue an announcement of a session, in place of an older one that still waits."""
        waiting = self._announcements.get(session_id)
        if waiting is not None:
            self._queue.replace(waiting, data)
            return
        self._announcements[session_id] = direct = DirectMessage(data, key=session_id)
        self._queue.put(direct)
        self._wake_connection()

    def subscribe(self, viewer: "Viewer", session_id: str) -> Subscription:
        """Return the subscription to a session. Create it if there is none."""
        subscription = self.subscriptions.get(session_id)
        if subscription is None:
            queue = DirectQueue(self._backlog, keep_bytes=self._window_bytes if self.over_http else 0)
            subscription = self.subscriptions[session_id] = Subscription(viewer, session_id, queue)
        return subscription

    def unsubscribe(self, session_id: str) -> None:
        """Remove a subscription. Its direct messages still reach the viewer."""
        subscription = self.subscriptions.pop(session_id, None)
        if subscription is not None:
            self._ready.pop(subscription, None)
            for direct in subscription.queue.clear():
                self._queue.put(DirectMessage(direct.data))
            self._wake_connection()
            if stream := self._session_streams.pop(session_id, None):
                stream.end()

    def stream(self) -> ViewerStream:
        """Return one stream of all messages. A stream opened before ends."""
        return self._replace(ViewerStream(self._pull_all, self._has_any))

    def connection_stream(self, last_event_id: str | None) -> ViewerStream:
        """Return the stream of messages that belong to no session or open one."""
        cursor = read_cursor(last_event_id)
        if cursor is not None and cursor.epoch == self._name.decode() and cursor.number is not None:
            self._queue.rewind(cursor.number)
        else:
            self._queue.rewind()
        return self._replace(ViewerStream(self._pull_connection, self._has_direct, event_id=self._event_id))

    def session_stream(self, subscription: Subscription, last_event_id: str | None) -> ViewerStream:
        """Return the stream of one session. A stream of it that was opened before ends."""
        session_id = subscription.session_id
        cursor = read_cursor(last_event_id)
        subscription.go_back(cursor)

        def ended() -> None:
            if subscription.history is None and self._session_streams.get(session_id) is stream:
                self.subscriptions.pop(session_id, None)  # the session was never opened, and no stream waits for it
                self._session_streams.pop(session_id, None)
            self._wake_connection()

        pull = partial(self._pull_session, subscription)
        stream = ViewerStream(pull, subscription.has_more, ended, subscription.event_id)
        older, self._session_streams[session_id] = self._session_streams.get(session_id), stream
        if older is not None:
            older.end()
        self._wake_connection()
        return stream

    def end(self) -> None:
        """End all streams."""
        for stream in self._streams():
            stream.end()

    def wake(self, subscription: Subscription) -> None:
        """Wake the streams for a subscription."""
        if self.over_http:
            if stream := self._session_streams.get(subscription.session_id):
                stream.wake()
            if self._queue.waiting:
                self._wake_connection()
        elif not subscription.pass_over():
            self._ready[subscription] = None
            if self._stream is not None:
                self._stream.wake()

    def push(self) -> None:
        """Send the messages of a WebSocket now, if it has room."""
        if self._stream is not None:
            self._stream.push()

    def is_stalled(self, stall_s: float, now: float) -> bool:
        """Return whether nothing was read from a stream for so long although messages were waiting."""
        return any(stream.stalled_s(now) > stall_s for stream in self._streams() if not stream.ended)

    def is_hungry(self, subscription: Subscription | None) -> bool:
        """Return whether the stream of a message has a waiting reader."""
        stream = self._stream
        if subscription is not None and self.over_http:
            stream = self._session_streams.get(subscription.session_id)
        return stream is not None and stream.is_hungry

    def _streams(self) -> list[ViewerStream]:
        own = [] if self._stream is None else [self._stream]
        return [*own, *self._session_streams.values()]

    def _replace(self, stream: ViewerStream) -> ViewerStream:
        if self._stream is not None:
            self._stream.end()
        self._stream = stream
        return stream

    def _wake_connection(self) -> None:
        if self._stream is not None:
            self._stream.wake()

    def _is_ready(self, direct: DirectMessage) -> bool:
        if direct.gate is None:
            return True
        if not direct.gate.may_show(direct.after):
            return False
        if direct.gate.arrived >= direct.after:
            return True
        # Without a stream for the session, the records that the answer waits for would never be read.
        stream = self._session_streams.get(direct.gate.session_id)
        return stream is None or stream.ended

    def _has_direct(self) -> bool:
        return any(map(self._is_ready, self._queue.waiting))

    def _has_any(self) -> bool:
        return bool(self._queue.waiting) or any(subscription.has_more() for subscription in self._ready)

    def _event_id(self) -> bytes:
        return b"%b.0.%d" % (self._name, self._queue.number)

    def _pull_connection(self, max_bytes: int) -> list[StreamItem]:
        popped = self._pop_direct(max_bytes)
        return [StreamItem(MessageRun.of_message(direct.data), self._name, direct.number) for direct in popped]

    def _pop_direct(self, max_bytes: int) -> list[DirectMessage]:
        if not self._queue.waiting:
            return []
        popped = self._queue.pop_ready(self._is_ready, max_bytes)
        for direct in popped:
            if direct.key is not None:
                self._announcements.pop(direct.key, None)
        return popped

    def _pull_session(self, subscription: Subscription, max_bytes: int) -> list[StreamItem]:
        # A reader that comes again has sent the last batch. If there is nothing more, it also is at the end.
        subscription.record_sent()
        items, _ = subscription.pull(max_bytes, numbered=True)
        if not items:
            subscription.record_sent()
        if self._queue.waiting:
            self._wake_connection()
        return items

    def _pull_all(self, max_bytes: int) -> list[StreamItem]:
        # Direct messages of the connection go first. Then each subscription with messages has its turn, and one that
        # has more moves to the end of the line.
        items = [StreamItem(MessageRun.of_message(direct.data)) for direct in self._pop_direct(max_bytes)]
        size = sum(len(item.run.lines) for item in items)
        if self._queue.waiting:
            return items
        for subscription in list(self._ready):
            if size >= max_bytes:
                break
            more, more_bytes = subscription.pull(max_bytes - size, numbered=False)
            items += more
            size += more_bytes
            del self._ready[subscription]
            if subscription.has_more():
                self._ready[subscription] = None
        return items
