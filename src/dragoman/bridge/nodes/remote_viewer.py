"""Viewers of other nodes on sessions that this node owns: to the router they are viewers as any other.

What a viewer gets of a journal, its own node reads from the database. What is for it alone is sent there, with the
record that it has to follow. So no record is sent twice, and no order is lost.
"""

import uuid
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

import msgspec
from msgspec import Raw

from dragoman.bridge.delivery import DirectQueue, JournalSource, Subscription, Viewer, ViewerAccess
from dragoman.bridge.delivery.database_journal import DatabaseJournal
from dragoman.bridge.delivery.direct_queue import Backlog
from dragoman.bridge.delivery.outbox import ViewerOutbox
from dragoman.bridge.delivery.subscription import Subscriber
from dragoman.bridge.delivery.viewer import ViewerHandler
from dragoman.bridge.envelope import make_request
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
from dragoman.bridge.problem import TooManyViewers
from dragoman.wire import Malformed, parse
from dragoman.wire.message import parse_error

_OPENING_ID = b'"dragoman-open"'
"""The id of the `initialize` by which a viewer is made known here; its own node has answered it."""

_AGENT_STATUS = b'"method":"_dragoman/agent"'
"""Of the agent of this node, which means nothing to a viewer of another one."""

_HEAD_BYTES = 64

_encode_header = msgspec.json.Encoder().encode


class ViewerLink(msgspec.Struct, frozen=True):
    """One viewer of another node."""

    agent: str
    id: str
    node: uuid.UUID
    address: str | None = None
    """The address at which it reaches its node."""


class LinkSender(Protocol):
    """The way to the node of a viewer."""

    def send(self, receiver: uuid.UUID, message: FromOwner) -> None:
        """Send a message soon."""
        ...

    def unsent_bytes(self, receiver: uuid.UUID) -> int:
        """Return the size of the messages for a node that are not in the table."""
        ...

    async def sent(self, receiver: uuid.UUID) -> None:
        """Wait until all that was sent to a node so far is in the table."""
        ...


class RemoteSubscription(Subscription):
    """A viewer of another node on a session of this one: its node is told where it begins."""

    def __init__(self, viewer: Subscriber, session_id: str, link: ViewerLink, sender: LinkSender) -> None:
        super().__init__(viewer, session_id, DirectQueue(Backlog()))
        self._link = link
        self._sender = sender

    def bind(self, journal: JournalSource, cursor: int, *, has_history: bool = False) -> None:
        super().bind(journal, cursor, has_history=has_history)
        if isinstance(journal, DatabaseJournal):
            journal.when_created(lambda: self._tell_node(journal, cursor, has_history=has_history))

    def skip(self, seq: int) -> None:
        super().skip(seq)
        self.send_before_records(Skip(self._link.agent, self._link.id, self.session_id, seq))

    def send_before_records(self, message: Skip | TerminalNames) -> None:
        """Tell the viewer's node how to show the records from now on, which are committed behind this message."""
        self._sender.send(self._link.node, message)
        if isinstance(self.journal, DatabaseJournal):
            self.journal.wait_for(self._sender.sent(self._link.node))

    def _tell_node(self, journal: DatabaseJournal, cursor: int, *, has_history: bool) -> None:
        link = self._link
        if self.journal is not journal or journal.session is None:
            return
        bound = Bound(
            link.agent,
            link.id,
            self.session_id,
            journal.session.key,
            _encode_header(journal.header),
            journal.end,
            cursor,
            has_history,
            journal.versions,
        )
        self._sender.send(link.node, bound)


class RemoteOutbox(ViewerOutbox):
    """Sends the messages of one viewer to its node."""

    def __init__(self, link: ViewerLink, sender: LinkSender, window_bytes: int) -> None:
        super().__init__(link.id, window_bytes)
        self._link = link
        self._sender = sender

    @property
    def backlog_bytes(self) -> int:
        return self._sender.unsent_bytes(self._link.node)

    def put(
        self, data: bytes, subscription: Subscription | None, after: int | None, request_id: bytes | None = None
    ) -> None:
        link = self._link
        if subscription is None or subscription.journal is None:
            if _AGENT_STATUS in data[:_HEAD_BYTES]:
                return
            self._sender.send(link.node, Direct(link.agent, link.id, data, request_id=request_id))
            return
        end = subscription.journal.next_end if after is None else after
        self._send_behind(Direct(link.agent, link.id, data, subscription.session_id, end, request_id), subscription)

    def put_opened(self, data: bytes, subscription: Subscription, after: int, *, is_new: bool) -> None:
        """Queue the answer to a request that opened a session."""
        link = self._link
        message = Direct(link.agent, link.id, data, subscription.session_id, after, opens=True, is_new=is_new)
        self._send_behind(message, subscription)

    def announce(self, session_id: str, data: bytes) -> None:
        """Do nothing: nodes tell each other of their sessions."""

    def subscribe(self, viewer: Subscriber, session_id: str) -> Subscription:
        subscription = self.subscriptions.get(session_id)
        if subscription is None:
            subscription = RemoteSubscription(viewer, session_id, self._link, self._sender)
            self.subscriptions[session_id] = subscription
        return subscription

    def unsubscribe(self, session_id: str) -> None:
        if self.subscriptions.pop(session_id, None) is not None:
            self._sender.send(self._link.node, Unbound(self._link.agent, self._link.id, session_id))

    def wake(self, subscription: Subscription) -> None:
        """Do nothing: its node reads the journal itself."""

    def is_stalled(self, stall_s: float, now: float) -> bool:
        del stall_s, now
        return False

    def is_hungry(self, subscription: Subscription | None) -> bool:
        del subscription
        return True

    def _send_behind(self, message: Direct, subscription: Subscription) -> None:
        journal = subscription.journal
        if isinstance(journal, DatabaseJournal):
            journal.when_created(lambda: self._sender.send(self._link.node, message))


class RemoteViewer(Viewer):
    """A viewer whose connection is at another node."""

    def __init__(
        self,
        handler: ViewerHandler,
        window_bytes: int,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        link: ViewerLink,
        sender: LinkSender,
        *,
        access: ViewerAccess,
        over_http: bool,
    ) -> None:
        super().__init__(handler, window_bytes, spawn, access)
        self.link = link
        self.remote = RemoteOutbox(link, sender, window_bytes)
        self.remote.over_http = over_http
        self.outbox = self.remote
        self._sender = sender

    def send(
        self,
        data: bytes,
        subscription: Subscription | None = None,
        after: int | None = None,
        *,
        request_id: bytes | None = None,
    ) -> None:
        if _OPENING_ID in data[:_HEAD_BYTES]:
            self._note_opened(data)
        else:
            super().send(data, subscription, after, request_id=request_id)

    def send_opened(self, data: bytes, subscription: Subscription, after: int, *, is_new: bool = False) -> None:
        if self._takes_more(subscription):
            self.remote.put_opened(data, subscription, after, is_new=is_new)

    def name_terminal(self, session_id: str, id_: str, own: str) -> None:
        super().name_terminal(session_id, id_, own)
        self._tell_terminals(session_id, self.terminal_names[session_id])

    def forget_terminals(self) -> None:
        for session_id in self.terminal_names:
            self._tell_terminals(session_id, {})
        super().forget_terminals()

    def _tell_terminals(self, session_id: str, names: dict[str, str]) -> None:
        subscription = self.subscription(session_id)
        if isinstance(subscription, RemoteSubscription):
            subscription.send_before_records(TerminalNames(self.link.agent, self.link.id, session_id, dict(names)))

    def end(self) -> None:
        super().end()
        reason = self.close_reason or "the owner of the session closed the connection"
        self._sender.send(self.link.node, LinkClosed(self.link.agent, self.link.id, reason))

    def _note_opened(self, data: bytes) -> None:
        """Take the answer to its `initialize` here: one that is refused has nothing to ask."""
        message = parse(data)
        if not isinstance(message, Malformed) and message.error is not msgspec.UNSET:
            self.drop(parse_error(message.error).words)


class RemoteViewers:
    """The viewers of other nodes."""

    def __init__(self, agent: str, sender: LinkSender, admit: Callable[[RemoteViewer], None]) -> None:
        self._agent = agent
        self._sender = sender
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
        """Make a viewer of another node known."""
        link = ViewerLink(self._agent, message.link, sender, message.address)
        viewer = RemoteViewer(
            handler,
            window_bytes,
            spawn,
            link,
            self._sender,
            access=message.access,
            over_http=message.over_http,
        )
        try:
            self._admit(viewer)
        except TooManyViewers as problem:
            self._sender.send(sender, LinkClosed(self._agent, message.link, str(problem)))
            return
        self._viewers[sender, message.link] = viewer
        viewer.receive(make_request(_OPENING_ID, "initialize", Raw(message.initialize)))

    def take(self, message: ViewerLine | CloseLink, sender: uuid.UUID) -> None:
        """Take a message of such a viewer, or that it has left."""
        viewer = self._viewers.get((sender, message.link))
        if isinstance(message, CloseLink):
            if viewer is not None:
                self._close(viewer)
        elif viewer is None or viewer.closed.is_set():
            reason = "this viewer is not known at the owner of the session; open the session again"
            self._sender.send(sender, LinkClosed(self._agent, message.link, reason))
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
