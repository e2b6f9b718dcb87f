"""Routes the messages of viewers on this node to sessions that other nodes own.

Every message of a viewer passes through here:

    about an open session, or none    the router of this node
    session owned by another node     that node receives the message unchanged
    session without an owner          this node becomes the owner, then its router

While the owner of a session is looked up in the database, later messages of the viewer wait, so that they stay in
order.

A viewer follows a session of another node through a `RemoteSession`, which reads its journal from the database. If the
owner ends, the viewer stays subscribed. The requests that the owner had are refused, and the viewer is connected to the
next owner as soon as there is one.
"""

import time
import uuid
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.bridge.delivery import TailBudget
from dragoman.bridge.delivery.database_histories import SharedTables
from dragoman.bridge.envelope import fields_of, string_of, with_param
from dragoman.bridge.nodes.code_directory import UNAVAILABLE
from dragoman.bridge.nodes.messages import (
    Bound,
    CloseLink,
    Direct,
    FromOwner,
    LinkClosed,
    NodeMessage,
    OpenLink,
    Skip,
    TerminalNames,
    Unbound,
    ViewerLine,
)
from dragoman.bridge.nodes.remote_session import RemoteSession
from dragoman.bridge.nodes.remote_viewer import RemoteViewer
from dragoman.bridge.router.router import is_for_readers
from dragoman.bridge.viewers import Subscription, Viewer
from dragoman.bridge.viewers.direct_queue import DirectMessage
from dragoman.errors import DragomanError, ErrorCode, SessionBusyError
from dragoman.protocol import methods
from dragoman.store.block import Header
from dragoman.store.postgresql.history import ReplicaHistory
from dragoman.store.postgresql.message_table import SessionTip
from dragoman.store.postgresql.session_table import LocatedSession
from dragoman.wire import Malformed, Message, parse
from dragoman.wire.envelope import make_error, make_request, session_of

if TYPE_CHECKING:
    from dragoman.bridge.nodes.agent_node import AgentNode

_LOAD, _RESUME = methods.SESSION_LOAD.name, methods.SESSION_RESUME.name
_INSPECT = "_dragoman/inspect"
_REOPENING = frozenset({_LOAD, _RESUME})

_WITHOUT_AGENT = frozenset(
    {
        methods.SESSION_SET_TITLE.name,
        methods.SESSION_ARCHIVE.name,
        methods.SESSION_UNARCHIVE.name,
        methods.SESSION_STATUS.name,
        methods.SESSION_DELETE.name,
    }
)
"""Requests about a session that do not need the session to be open."""

MAX_HELD = 1_000
"""Messages of one viewer that may wait while the owner of a session is looked up."""

_GONE_KEPT_S = 60.0
"""Time to remember a node that has ended, longer than any query of the database takes."""

_MOVED = "another bridge has taken over this session; send the request again"
_ENDED = "the bridge that had this session stopped, and the turn ended with it; send the prompt again"

_decode_header = msgspec.json.Decoder(Header).decode


class PendingRelay(msgspec.Struct, frozen=True):
    """A request that was sent to another node."""

    method: str
    session_id: str | None
    is_internal: bool = False
    """Whether this node sent it by itself, so that the viewer does not receive the answer."""
    keeps_place: bool = False
    """Whether the viewer continues at the position that it has when the answer arrives."""


class OwnerLink:
    """The link of one viewer on this node to one other node."""

    def __init__(self, viewer: Viewer, owner: uuid.UUID) -> None:
        self.id = str(uuid.uuid4())
        self.viewer = viewer
        self.owner = owner
        self.pending: dict[bytes, PendingRelay] = {}
        self.asked: set[bytes] = set()
        """Ids of the owner's requests that the viewer has not answered."""
        self.end_reason: str | None = None
        """The reason why the owner has closed the link."""


class ViewerRelay:
    """Finds the owner of a session for each message, and passes messages to and from other nodes."""

    def __init__(
        self,
        agent: str,
        tables: SharedTables,
        *,
        budget: TailBudget,
        agent_node: "AgentNode",
        send: Callable[[uuid.UUID, NodeMessage], None],
    ) -> None:
        self.sessions: dict[str, RemoteSession] = {}
        """The sessions of other nodes that viewers here follow."""
        self._agent = agent
        self._node = tables.node.id
        self._tables = tables
        self._budget = budget
        self._agent_node = agent_node
        self._send = send
        self._links: dict[str, OwnerLink] = {}
        self._held: dict[Viewer, deque[bytes]] = {}
        self._numbers = count(1)
        self._gone: dict[uuid.UUID, float] = {}
        """Nodes that have ended, with the time. A result of the database may be older than that."""
        self._losses: Counter[uuid.UUID] = Counter()
        """How often the links to a node were given up. Their requests were refused, so it must not serve them later."""

    # Messages of viewers.

    def receive(self, viewer: Viewer, line: bytes) -> None:
        """Route a message of a viewer, after the ones that wait."""
        held = self._held.get(viewer)
        if held is None:
            self._dispatch(viewer, line)
        elif len(held) < MAX_HELD:
            held.append(line)
        else:
            viewer.drop(f"it sent {MAX_HELD} messages before the owner of its session was found")

    def viewer_left(self, viewer: Viewer) -> None:
        """Close the links of a viewer, and unsubscribe it."""
        self._held.pop(viewer, None)
        for link in self._links_of(viewer):
            del self._links[link.id]
            self._send(link.owner, CloseLink(self._agent, link.id))
        for remote in list(self.sessions.values()):
            self._unwatch(remote, viewer)

    def _dispatch(self, viewer: Viewer, line: bytes) -> None:
        message = parse(line) if viewer.capabilities is not None else None
        if message is None or isinstance(message, Malformed):
            self._route(viewer, line)
            return
        link = self._link_of_answer(viewer, message)
        if link is not None:
            self._send(link.owner, ViewerLine(self._agent, link.id, line))
            return
        session_id = session_of(message.params)
        if message.method == _INSPECT and session_id is None:
            self._end_inspection(viewer, message.params)
        if message.method is None or session_id is None or self._is_for_router(viewer, message, session_id):
            self._route(viewer, line)
            return
        self._held[viewer] = deque()
        self._tables.bridge.spawn(self._find_owner(viewer, message, line, session_id))

    def _route(self, viewer: Viewer, line: bytes) -> None:
        """Pass a message to the router of this node."""
        self._agent_node.parts.router.receive(viewer, line)

    def _is_open(self, session_id: str) -> bool:
        """Return whether a session is open here."""
        return self._agent_node.parts.sessions.find(session_id) is not None

    def _is_for_router(self, viewer: Viewer, message: Message, session_id: str) -> bool:
        """Return whether the session is open here, or the router must refuse the message."""
        is_refused = viewer.read_only and not is_for_readers(message)
        return is_refused or not viewer.sees(session_id) or self._is_open(session_id)

    def _end_inspection(self, viewer: Viewer, params: Raw | UnsetType) -> None:
        """Stop other nodes from sending a viewer their wire messages, if it no longer wants any."""
        if bytes(fields_of(params).get("on", b"")) == b"false":
            for link in self._links_of(viewer):
                self._ask(link, _INSPECT, {"on": False}, None)

    def _ask(self, link: OwnerLink, method: str, params: dict[str, Any], session_id: str | None) -> None:
        """Send a request of this node for a viewer, which does not receive the answer."""
        id_ = b'"dragoman-%d"' % next(self._numbers)
        link.pending[id_] = PendingRelay(method, session_id, is_internal=True)
        self._send(link.owner, ViewerLine(self._agent, link.id, make_request(id_, method, params)))

    def _link_of_answer(self, viewer: Viewer, message: Message) -> OwnerLink | None:
        """Return the link of an answer to another node, or of the request that a viewer cancels there."""
        id_ = None if message.id is UNSET else bytes(message.id)
        if message.method == methods.CANCEL_REQUEST.name:
            requested = fields_of(message.params).get("requestId")
            id_ = None if requested is None else bytes(requested)
            return next((link for link in self._links_of(viewer) if id_ in link.pending), None)
        if message.method is not None or id_ is None:
            return None
        link = next((link for link in self._links_of(viewer) if id_ in link.asked), None)
        if link is not None:
            link.asked.discard(id_)
        return link

    async def _find_owner(self, viewer: Viewer, message: Message, line: bytes, session_id: str) -> None:
        """Send a message to the owner of its session, or become the owner if there is none."""
        try:
            may_own = message.method not in _REOPENING | _WITHOUT_AGENT and not viewer.read_only
            owner = await self._own_or_locate(session_id, may_own=may_own)
            if viewer.closed.is_set():
                return
            if owner is None:
                self._route(viewer, line)
            elif owner in self._gone:
                self._refuse(viewer, message, _ENDED)
            elif isinstance(viewer, RemoteViewer):
                self._refuse(viewer, message, _MOVED)
            else:
                self._pass_on(viewer, message, line, session_id, owner)
        except (DragomanError, OSError) as error:
            self._refuse(viewer, message, UNAVAILABLE if viewer.read_only else str(error))
        finally:
            self._dispatch_held(viewer)

    async def _own_or_locate(self, session_id: str, *, may_own: bool) -> uuid.UUID | None:
        """Return the other node that owns or is opening a session, or None if this node serves it.

        If no node owns the session and `may_own` is set, this node becomes the owner, unless another one is faster.
        """
        while True:
            located = await self.locate(session_id)
            if located is not None and located.owner not in (None, self._node):
                return located.owner
            if located is None or not may_own:
                return None
            with suppress(SessionBusyError):
                await self._agent_node.parts.sessions.open_stored(session_id)
                return None

    async def locate(self, session_id: str) -> LocatedSession | None:
        """Look up a session, or the node that is opening a session which only its agent has."""
        return await self._tables.histories.locate(session_id) or await self._tables.bridge.replays.locate(session_id)

    def _dispatch_held(self, viewer: Viewer) -> None:
        """Route the messages that waited, until one has to wait again."""
        held = self._held.pop(viewer, deque())
        while held and not viewer.closed.is_set():
            self._dispatch(viewer, held.popleft())
            if viewer in self._held:
                self._held[viewer].extend(held)
                return

    def _pass_on(self, viewer: Viewer, message: Message, line: bytes, session_id: str, owner: uuid.UUID) -> None:
        link = self._link(viewer, owner)
        given = line
        if message.method in _REOPENING:
            line = self._with_position(viewer, message, line, session_id)
        keeps_place = message.method == _RESUME and line is not given
        if message.id is not UNSET and message.method is not None:
            link.pending[bytes(message.id)] = PendingRelay(message.method, session_id, keeps_place=keeps_place)
        self._send(link.owner, ViewerLine(self._agent, link.id, line))

    def _with_position(self, viewer: Viewer, message: Message, line: bytes, session_id: str) -> bytes:
        """Add the viewer's position, which the owner does not know, unless the request already has one."""
        subscription = viewer.subscription(session_id)
        meta = fields_of(fields_of(message.params).get("_meta", UNSET))
        own = fields_of(meta.get("dragoman", UNSET))
        if subscription is None or string_of(own.get("after")) is not None:
            return line
        cursor = subscription.pop_resume_from()
        after: str | None = None
        if cursor is not None:
            after = f"{cursor.epoch}.{cursor.seq}"
        elif subscription.history is not None and message.method == _RESUME:
            after = subscription.history.cursor(subscription.position)
        return line if after is None else with_param(line, "_meta", {**meta, "dragoman": {**own, "after": after}})

    def _link(self, viewer: Viewer, owner: uuid.UUID) -> OwnerLink:
        """Return the link of a viewer to another node. Open it if there is none."""
        link = next((link for link in self._links_of(viewer) if link.owner == owner), None)
        if link is None:
            link = OwnerLink(viewer, owner)
            self._links[link.id] = link
            params = bytes(self._agent_node.parts.router.initialize_params(viewer))
            address = self._agent_node.parts.router.logins.address_of(viewer)
            losses = self._losses[owner]
            opened = OpenLink(self._agent, link.id, params, viewer.access, viewer.over_http, address, losses)
            self._send(owner, opened)
        return link

    def _links_of(self, viewer: Viewer) -> list[OwnerLink]:
        return [link for link in self._links.values() if link.viewer is viewer]

    def _refuse(self, viewer: Viewer, message: Message, problem: str) -> None:
        if message.id is not UNSET and message.method is not None:
            subscription = viewer.subscription(session_of(message.params))
            viewer.refuse(bytes(message.id), ErrorCode.INTERNAL_ERROR, problem, subscription)

    # Messages of owners.

    def receive_from_owner(self, message: FromOwner, sender: uuid.UUID) -> None:
        """Handle a message of the owner of a session."""
        link = self._links.get(message.link)
        if link is None:
            if not isinstance(message, LinkClosed):  # an owner that was disconnected may not know that the viewer left
                self._send(sender, CloseLink(self._agent, message.link))
            return
        match message:
            case Bound():
                self._bind(link, message)
            case Direct():
                self._deliver(link, message)
            case TerminalNames():
                link.viewer.terminal_names[message.session] = dict(message.names)
            case LinkClosed():
                link.end_reason = message.reason  # `follow` closes the link, after the records committed before
            case Unbound() | Skip():
                remote = self.sessions.get(message.session)
                if remote is not None and link.viewer in remote.subscriptions:
                    self._change(remote, link.viewer, message)

    def _change(self, remote: RemoteSession, viewer: Viewer, message: Unbound | Skip) -> None:
        if isinstance(message, Skip):
            remote.subscriptions[viewer].skip(message.seq)
        else:
            self._unwatch(remote, viewer)
            viewer.outbox.unsubscribe(message.session)

    def _bind(self, link: OwnerLink, message: Bound) -> None:
        """Subscribe a viewer to a session, with a new copy of its history if the journal is another one."""
        viewer = link.viewer
        remote = self.sessions.get(message.session)
        if remote is None or remote.history.key != message.key:
            others = {} if remote is None else remote.subscriptions
            history = ReplicaHistory(
                self._tables.histories,
                message.key,
                _decode_header(message.header),
                end=message.end,
                changes=message.versions,
                budget=self._budget,
            )
            self.sessions[message.session] = remote = RemoteSession(message.session, history, link.owner)
            remote.subscriptions.update(others)
        remote.owner = link.owner
        here = remote.subscriptions.get(viewer)
        is_asked = any(
            each.method in _REOPENING
            and not (each.is_internal or each.keeps_place)
            and each.session_id == message.session
            for each in link.pending.values()
        )
        if not is_asked and here is not None and here.history is remote.history:
            return  # the viewer keeps its position, although a new owner would start it at the end
        remote.subscribe(viewer, message.cursor, has_history=message.has_history)

    def _deliver(self, link: OwnerLink, message: Direct) -> None:
        """Send a viewer a message of the owner, after the record that it must follow."""
        viewer = link.viewer
        subscription = viewer.subscription(message.session)
        line = parse(message.line)
        if not isinstance(line, Malformed) and line.id is not UNSET:
            if line.method is not None:
                link.asked.add(bytes(line.id))
            elif (pending := link.pending.pop(bytes(line.id), None)) is not None and pending.is_internal:
                return
        if subscription is None or subscription.history is None:
            viewer.send(message.line)
        elif message.opens:
            viewer.send_opened(message.line, subscription, message.after)
        else:
            viewer.send(message.line, subscription, message.after)

    def _close(self, link: OwnerLink, reason: str) -> None:
        """Refuse the requests that an owner had. The viewer stays subscribed to its sessions."""
        self._links.pop(link.id, None)
        for id_, pending in link.pending.items():
            if not pending.is_internal:
                subscription = link.viewer.subscription(pending.session_id)
                link.viewer.refuse(id_, ErrorCode.INTERNAL_ERROR, reason, subscription)
        for remote in self.sessions.values():
            if remote.owner == link.owner and link.viewer in remote.subscriptions:
                remote.owner = None
                link.viewer.terminal_names.pop(remote.id, None)
                refuse_uncommitted(link.viewer, remote.subscriptions[link.viewer], remote.history.end, reason)

    # Owners that end, start or change.

    def drop_node(self, node: uuid.UUID) -> None:
        """Close all links to a node that is gone."""
        now = time.monotonic()
        self._gone = {each: since for each, since in self._gone.items() if since > now - _GONE_KEPT_S}
        self._gone[node] = now
        self.close_links(node, _ENDED)

    def add_node(self, node: uuid.UUID) -> None:
        """Accept a node that has started or reconnected as an owner."""
        self._gone.pop(node, None)

    def close_links(self, node: uuid.UUID, reason: str) -> None:
        """Close all links to a node, and notify it in case it is alive."""
        self._losses[node] += 1  # the notification may be lost as well
        for link in [link for link in self._links.values() if link.owner == node]:
            self._close(link, reason)
            self._send(node, CloseLink(self._agent, link.id))

    def lose_all(self, reason: str) -> None:
        """Close all links, because other nodes may regard this one as dead."""
        self._losses.update({link.owner for link in self._links.values()})
        for link in list(self._links.values()):
            self._close(link, reason)

    def followed(self) -> list[int]:
        """Return the keys of all sessions that viewers here follow."""
        return [remote.history.key for remote in self.sessions.values()]

    async def follow(self, tips: dict[int, SessionTip]) -> None:
        """Read the committed records, and connect viewers to the new owners of sessions. Raises DragomanError."""
        grown: list[RemoteSession] = []
        try:
            for remote in list(self.sessions.values()):
                tip = tips.get(remote.history.key)
                if tip is not None and tip.last > remote.history.end and await remote.follow(tip.last):
                    grown.append(remote)
        finally:
            # Wake them together, because the end of a turn must follow the updates of its subagents.
            for remote in grown:
                remote.wake_viewers()
        # The records are read, so links that their owners have closed can end now.
        for link in [link for link in self._links.values() if link.end_reason is not None]:
            self._close(link, link.end_reason or "")
        for remote in list(self.sessions.values()):
            tip = tips.get(remote.history.key)
            if tip is None or tip.owner is None or tip.owner in self._gone:
                continue
            if tip.owner != remote.owner and not self._is_open(remote.id):
                self._attach(remote, tip.owner)

    def watch(self, session_id: str, history: ReplicaHistory, viewers: dict[Viewer, int]) -> None:
        """Subscribe viewers to a session that this node has lost, each at its position."""
        remote = RemoteSession(session_id, history, None)
        self.sessions[session_id] = remote
        for viewer, position in viewers.items():
            remote.subscribe(viewer, position, has_history=True)

    def unwatch(self, session_id: str) -> dict[Viewer, int]:
        """Forget a session that this node now owns. Return its viewers with their positions."""
        remote = self.sessions.pop(session_id, None)
        return {} if remote is None else remote.positions()

    def _attach(self, remote: RemoteSession, owner: uuid.UUID) -> None:
        """Connect the viewers of a session to its new owner."""
        remote.owner = owner
        if owner == self._node:
            return
        for viewer, subscription in remote.subscriptions.items():
            self._ask(self._link(viewer, owner), _RESUME, remote.resume_params(subscription), remote.id)

    def _unwatch(self, remote: RemoteSession, viewer: Viewer) -> None:
        remote.unsubscribe(viewer)
        if not remote.subscriptions:
            self.sessions.pop(remote.id, None)


def refuse_uncommitted(viewer: Viewer, subscription: Subscription, end: int, reason: str) -> None:
    """Refuse requests whose answers wait for records that will never be committed. Send the other messages."""
    for direct in subscription.queue.clear():
        if direct.after <= end:
            viewer.send(direct.data, subscription, direct.after)
        elif (refusal := _refusal_of(direct, reason)) is not None:
            viewer.send(refusal, subscription, end)
    for direct in viewer.outbox.pop_gated(subscription, end):
        if (refusal := _refusal_of(direct, reason)) is not None:
            viewer.send(refusal)


def _refusal_of(direct: DirectMessage, reason: str) -> bytes | None:
    """Return the error that replaces an answer, or None if the message is not an answer."""
    message = parse(direct.data)
    if isinstance(message, Malformed) or message.method is not None or message.id is UNSET:
        return None
    return make_error(bytes(message.id), ErrorCode.INTERNAL_ERROR, reason)
