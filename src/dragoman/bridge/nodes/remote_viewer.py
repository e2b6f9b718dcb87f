"""Viewers of other nodes on sessions that this node owns. The router treats them like other viewers.

The viewer's node reads the records of the journal from the database. Messages for this viewer only are sent to that
node, each with the record that it must follow. So no record is sent twice, and the order is kept.
"""

import uuid
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from dragoman.bridge.delivery.database_histories import rows_of
from dragoman.bridge.nodes.mailbox import Mailbox
from dragoman.bridge.nodes.messages import (
    Bound,
    CloseLink,
    Direct,
    FromOwner,
    LinkClosed,
    OpenLink,
    Skip,
    TerminalNames,
    Unbound,
    ViewerLine,
)
from dragoman.bridge.problem import TooManyViewersError
from dragoman.bridge.viewers import DirectQueue, Subscription, Viewer
from dragoman.bridge.viewers.direct_queue import Backlog
from dragoman.bridge.viewers.outbox import ViewerOutbox
from dragoman.bridge.viewers.viewer import ViewerHandler
from dragoman.protocol import methods
from dragoman.store.history import ReadableHistory
from dragoman.store.postgresql.history import DatabaseHistory
from dragoman.wire import Malformed, parse
from dragoman.wire.envelope import make_request
from dragoman.wire.message import parse_error

_OPENING_ID = b'"dragoman-open"'
"""The id of the `initialize` that opens a viewer here. The viewer's node has answered it already."""

_AGENT_STATUS = b'"method":"_dragoman/agent"'
"""The status of this node's agent, which is meaningless to viewers of other nodes."""

_HEAD_BYTES = 64

_encode_header = msgspec.json.Encoder().encode


class ViewerLink:
    """The link from this node back to one viewer of another node."""

    def __init__(self, opened: OpenLink, node: uuid.UUID, mailbox: Mailbox) -> None:
        self.agent = opened.agent
        self.id = opened.link
        self.losses = opened.losses
        """See `OpenLink.losses`."""
        self.node = node
        self._mailbox = mailbox

    @property
    def unsent_bytes(self) -> int:
        """The size of the messages to that node that are not in the database yet."""
        return self._mailbox.unsent_bytes(self.node)

    def send(self, message: FromOwner) -> None:
        """Send a message to the viewer's node."""
        self._mailbox.send(self.node, message)

    def send_before_records(self, message: Skip | TerminalNames, history: ReadableHistory | None) -> None:
        """Send a message that the viewer's node needs before the next records. They are committed after it."""
        self.send(message)
        if (rows := rows_of(history)) is not None:
            rows.wait_for(self._mailbox.sent(self.node))


class RemoteSubscription(Subscription):
    """The subscription of another node's viewer to a session of this node. It sends that node the start position."""

    def __init__(self, viewer: Viewer, session_id: str, link: ViewerLink) -> None:
        super().__init__(viewer, session_id, DirectQueue(Backlog()))
        self._link = link

    def bind(self, history: ReadableHistory, cursor: int, *, has_history: bool = False) -> None:
        super().bind(history, cursor, has_history=has_history)
        if (rows := rows_of(history)) is not None:
            rows.when_created(lambda: self._send_bound(rows, cursor, has_history=has_history))

    def skip(self, seq: int) -> None:
        super().skip(seq)
        self._link.send_before_records(Skip(self._link.agent, self._link.id, self.session_id, seq), self.history)

    def _send_bound(self, rows: DatabaseHistory, cursor: int, *, has_history: bool) -> None:
        link, history = self._link, rows.history
        if self.history is not history or rows.session is None:
            return
        bound = Bound(
            link.agent,
            link.id,
            self.session_id,
            rows.session.key,
            _encode_header(history.header),
            history.end,
            cursor,
            has_history,
            history.versions.changes,
        )
        link.send(bound)


class RemoteOutbox(ViewerOutbox):
    """Sends the messages of one viewer to its node."""

    def __init__(self, link: ViewerLink, window_bytes: int) -> None:
        super().__init__(link.id, window_bytes)
        self._link = link

    @property
    def backlog_bytes(self) -> int:
        return self._link.unsent_bytes

    def put(self, data: bytes, subscription: Subscription | None, after: int | None) -> None:
        if subscription is not None and subscription.history is not None:
            self._send_behind(data, subscription, subscription.history.next_end if after is None else after)
        elif _AGENT_STATUS not in data[:_HEAD_BYTES]:
            self._link.send(Direct(self._link.agent, self._link.id, data))

    def put_gated(self, data: bytes, subscription: Subscription, after: int) -> None:
        self._send_behind(data, subscription, after, opens=True)

    def announce(self, session_id: str, data: bytes) -> None:
        """Do nothing, because nodes announce their sessions to each other."""

    def subscribe(self, viewer: Viewer, session_id: str) -> Subscription:
        subscription = self.subscriptions.get(session_id)
        if subscription is None:
            subscription = self.subscriptions[session_id] = RemoteSubscription(viewer, session_id, self._link)
        return subscription

    def unsubscribe(self, session_id: str) -> None:
        if self.subscriptions.pop(session_id, None) is not None:
            self._link.send(Unbound(self._link.agent, self._link.id, session_id))

    def wake(self, subscription: Subscription) -> None:
        """Do nothing, because the viewer's node reads the journal."""

    def is_stalled(self, stall_s: float, now: float) -> bool:
        del stall_s, now
        return False

    def is_hungry(self, subscription: Subscription | None) -> bool:
        del subscription
        return True

    def _send_behind(self, data: bytes, subscription: Subscription, after: int, *, opens: bool = False) -> None:
        if (rows := rows_of(subscription.history)) is not None:
            message = Direct(self._link.agent, self._link.id, data, subscription.session_id, after, opens)
            rows.when_created(lambda: self._link.send(message))


class RemoteViewer(Viewer):
    """A viewer whose connection is at another node."""

    def __init__(
        self,
        handler: ViewerHandler,
        window_bytes: int,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        link: ViewerLink,
        opened: OpenLink,
    ) -> None:
        super().__init__(handler, window_bytes, spawn, opened.access)
        self.link = link
        self.outbox = RemoteOutbox(link, window_bytes)
        self.outbox.over_http = opened.over_http

    def send(self, data: bytes, subscription: Subscription | None = None, after: int | None = None) -> None:
        if _OPENING_ID not in data[:_HEAD_BYTES]:
            super().send(data, subscription, after)
            return
        answer = parse(data)
        if not isinstance(answer, Malformed) and answer.error is not UNSET:
            self.drop(parse_error(answer.error).text)

    def name_terminal(self, session_id: str, id_: str, own: str) -> None:
        super().name_terminal(session_id, id_, own)
        self._send_terminals(session_id, self.terminal_names[session_id])

    def forget_terminals(self) -> None:
        for session_id in self.terminal_names:
            self._send_terminals(session_id, {})
        super().forget_terminals()

    def end(self) -> None:
        super().end()
        reason = self.close_reason or "the owner of the session closed the connection"
        self.link.send(LinkClosed(self.link.agent, self.link.id, reason))

    def _send_terminals(self, session_id: str, names: dict[str, str]) -> None:
        if (subscription := self.subscription(session_id)) is not None:
            message = TerminalNames(self.link.agent, self.link.id, session_id, dict(names))
            self.link.send_before_records(message, subscription.history)


class RemoteViewers:
    """The viewers of other nodes."""

    def __init__(self, mailbox: Mailbox, admit: Callable[[OpenLink, ViewerLink], RemoteViewer]) -> None:
        """`admit` creates a viewer. It raises TooManyViewersError."""
        self._mailbox = mailbox
        self._admit = admit
        self._viewers: dict[tuple[uuid.UUID, str], RemoteViewer] = {}

    def open(self, message: OpenLink, sender: uuid.UUID) -> None:
        """Open a viewer of another node."""
        # A request that its node has refused may have arrived here and wait for the owner of its session. Without this,
        # it would be served after the user has sent it again.
        for viewer in [each for (node, _), each in self._viewers.items() if node == sender]:
            if viewer.link.losses != message.losses:
                viewer.drop("its node lost touch with this one, and has refused its requests")
                del self._viewers[sender, viewer.link.id]
        link = ViewerLink(message, sender, self._mailbox)
        try:
            viewer = self._admit(message, link)
        except TooManyViewersError as problem:
            link.send(LinkClosed(message.agent, message.link, str(problem)))
            return
        self._viewers[sender, message.link] = viewer
        viewer.receive(make_request(_OPENING_ID, methods.INITIALIZE.name, Raw(message.initialize)))

    def receive(self, message: ViewerLine | CloseLink, sender: uuid.UUID) -> None:
        """Handle a message of another node's viewer, or its end."""
        viewer = self._viewers.get((sender, message.link))
        if isinstance(message, CloseLink):
            if viewer is not None:
                self._close(viewer)
        elif viewer is None or viewer.closed.is_set():
            reason = "the bridge that owns this session does not know this viewer; open the session again"
            self._mailbox.send(sender, LinkClosed(message.agent, message.link, reason))
        else:
            viewer.receive(message.line)

    def drop_node(self, node: uuid.UUID) -> None:
        """Forget the viewers of a node that is gone."""
        for viewer in [viewer for (each, _), viewer in self._viewers.items() if each == node]:
            self._close(viewer)

    def forget_closed(self) -> None:
        """Forget viewers that were dropped."""
        self._viewers = {link: viewer for link, viewer in self._viewers.items() if not viewer.closed.is_set()}

    def _close(self, viewer: RemoteViewer) -> None:
        self._viewers.pop((viewer.link.node, viewer.link.id), None)
        viewer.spawn(viewer.close())
