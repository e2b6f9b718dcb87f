"""Viewers of other nodes on sessions that this node owns. The router treats them like other viewers.

The viewer's node reads the records of the journal from the database. Messages for this viewer only are sent to that
node, each with the record that it must follow. So no record is sent twice, and the order is kept.
"""

import uuid
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
from msgspec import Raw

from dragoman.bridge.delivery.database_histories import rows_of
from dragoman.bridge.nodes.mailbox import Mailbox
from dragoman.bridge.nodes.messages import (
    Bound,
    CloseLink,
    Direct,
    LinkClosed,
    OpenLink,
    Skip,
    TerminalNames,
    Unbound,
    ViewerLine,
)
from dragoman.bridge.problem import TooManyViewersError
from dragoman.bridge.viewers import DirectQueue, Subscription, Viewer, ViewerAccess
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


class ViewerLink(msgspec.Struct, frozen=True):
    """One viewer of another node."""

    agent: str
    id: str
    node: uuid.UUID
    address: str | None = None
    """The address at which the viewer reaches its node."""
    losses: int = 0
    """See `OpenLink.losses`."""


class RemoteSubscription(Subscription):
    """The subscription of another node's viewer to a session of this node. It sends that node the start position."""

    def __init__(self, viewer: Viewer, session_id: str, link: ViewerLink, mailbox: Mailbox) -> None:
        super().__init__(viewer, session_id, DirectQueue(Backlog()))
        self._link = link
        self._mailbox = mailbox

    def bind(self, history: ReadableHistory, cursor: int, *, has_history: bool = False) -> None:
        super().bind(history, cursor, has_history=has_history)
        if (rows := rows_of(history)) is not None:
            rows.when_created(lambda: self._send_bound(rows, cursor, has_history=has_history))

    def skip(self, seq: int) -> None:
        super().skip(seq)
        self.send_before_records(Skip(self._link.agent, self._link.id, self.session_id, seq))

    def send_before_records(self, message: Skip | TerminalNames) -> None:
        """Send a message that the viewer's node needs before the next records. They are committed after it."""
        self._mailbox.send(self._link.node, message)
        if (rows := rows_of(self.history)) is not None:
            rows.wait_for(self._mailbox.sent(self._link.node))

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
        self._mailbox.send(link.node, bound)


class RemoteOutbox(ViewerOutbox):
    """Sends the messages of one viewer to its node."""

    def __init__(self, link: ViewerLink, mailbox: Mailbox, window_bytes: int) -> None:
        super().__init__(link.id, window_bytes)
        self._link = link
        self._mailbox = mailbox

    @property
    def backlog_bytes(self) -> int:
        return self._mailbox.unsent_bytes(self._link.node)

    def put(self, data: bytes, subscription: Subscription | None, after: int | None) -> None:
        link = self._link
        if subscription is None or subscription.history is None:
            if _AGENT_STATUS in data[:_HEAD_BYTES]:
                return
            self._mailbox.send(link.node, Direct(link.agent, link.id, data))
            return
        end = subscription.history.next_end if after is None else after
        self._send_behind(Direct(link.agent, link.id, data, subscription.session_id, end), subscription)

    def put_opened(self, data: bytes, subscription: Subscription, after: int) -> None:
        """Queue the answer to a request that opened a session."""
        link = self._link
        message = Direct(link.agent, link.id, data, subscription.session_id, after, opens=True)
        self._send_behind(message, subscription)

    def announce(self, session_id: str, data: bytes) -> None:
        """Do nothing, because nodes announce their sessions to each other."""

    def subscribe(self, viewer: Viewer, session_id: str) -> Subscription:
        subscription = self.subscriptions.get(session_id)
        if subscription is None:
            subscription = RemoteSubscription(viewer, session_id, self._link, self._mailbox)
            self.subscriptions[session_id] = subscription
        return subscription

    def unsubscribe(self, session_id: str) -> None:
        if self.subscriptions.pop(session_id, None) is not None:
            self._mailbox.send(self._link.node, Unbound(self._link.agent, self._link.id, session_id))

    def wake(self, subscription: Subscription) -> None:
        """Do nothing, because the viewer's node reads the journal."""

    def is_stalled(self, stall_s: float, now: float) -> bool:
        del stall_s, now
        return False

    def is_hungry(self, subscription: Subscription | None) -> bool:
        del subscription
        return True

    def _send_behind(self, message: Direct, subscription: Subscription) -> None:
        if (rows := rows_of(subscription.history)) is not None:
            rows.when_created(lambda: self._mailbox.send(self._link.node, message))


class RemoteViewer(Viewer):
    """A viewer whose connection is at another node."""

    def __init__(
        self,
        handler: ViewerHandler,
        window_bytes: int,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        link: ViewerLink,
        mailbox: Mailbox,
        *,
        access: ViewerAccess,
        over_http: bool,
    ) -> None:
        super().__init__(handler, window_bytes, spawn, access)
        self.link = link
        self.remote = RemoteOutbox(link, mailbox, window_bytes)
        self.remote.over_http = over_http
        self.outbox = self.remote
        self._mailbox = mailbox

    def send(
        self,
        data: bytes,
        subscription: Subscription | None = None,
        after: int | None = None,
    ) -> None:
        if _OPENING_ID in data[:_HEAD_BYTES]:
            self._record_opened(data)
        else:
            super().send(data, subscription, after)

    def send_opened(self, data: bytes, subscription: Subscription, after: int) -> None:
        if self._takes_more(subscription):
            self.remote.put_opened(data, subscription, after)

    def name_terminal(self, session_id: str, id_: str, own: str) -> None:
        super().name_terminal(session_id, id_, own)
        self._send_terminals(session_id, self.terminal_names[session_id])

    def forget_terminals(self) -> None:
        for session_id in self.terminal_names:
            self._send_terminals(session_id, {})
        super().forget_terminals()

    def _send_terminals(self, session_id: str, names: dict[str, str]) -> None:
        subscription = self.subscription(session_id)
        if isinstance(subscription, RemoteSubscription):
            subscription.send_before_records(TerminalNames(self.link.agent, self.link.id, session_id, dict(names)))

    def end(self) -> None:
        super().end()
        reason = self.close_reason or "the owner of the session closed the connection"
        self._mailbox.send(self.link.node, LinkClosed(self.link.agent, self.link.id, reason))

    def _record_opened(self, data: bytes) -> None:
        """Handle the answer to the `initialize` of `open`. A viewer that is refused is dropped."""
        message = parse(data)
        if not isinstance(message, Malformed) and message.error is not msgspec.UNSET:
            self.drop(parse_error(message.error).text)


class RemoteViewers:
    """The viewers of other nodes."""

    def __init__(self, agent: str, mailbox: Mailbox, admit: Callable[[RemoteViewer], None]) -> None:
        self._agent = agent
        self._mailbox = mailbox
        self._admit = admit
        self._viewers: dict[tuple[uuid.UUID, str], RemoteViewer] = {}

    def open(
        self,
        message: OpenLink,
        sender: uuid.UUID,
        handler: ViewerHandler,
        window_bytes: int,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        """Open a viewer of another node."""
        # A request that its node has refused may have arrived here and wait for the owner of its session. Without this,
        # it would be served after the user has sent it again.
        for viewer in [each for (node, _), each in self._viewers.items() if node == sender]:
            if viewer.link.losses != message.losses:
                viewer.drop("its node lost touch with this one, and has refused its requests")
                del self._viewers[sender, viewer.link.id]
        link = ViewerLink(self._agent, message.link, sender, message.address, message.losses)
        viewer = RemoteViewer(
            handler,
            window_bytes,
            spawn,
            link,
            self._mailbox,
            access=message.access,
            over_http=message.over_http,
        )
        try:
            self._admit(viewer)
        except TooManyViewersError as problem:
            self._mailbox.send(sender, LinkClosed(self._agent, message.link, str(problem)))
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
            self._mailbox.send(sender, LinkClosed(self._agent, message.link, reason))
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
