"""Viewers here on sessions that another node owns.

Every message of a viewer comes through here. One about a session that is open here, or about none, goes to the router.
For any other the database tells who owns the session: a node that lives gets the message as it came; a session that
nobody owns is taken, and then it is open here. Messages of one viewer stay in order: those behind one whose session is
looked for wait.

A viewer follows such a session by a replica of its journal (`replica`). If its owner ends, the replica stays, requests
that the owner had are refused, and the viewer is made known at the next owner as soon as there is one.
"""

import logging
import time
import uuid
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any, Protocol

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.bridge.delivery import Subscription, TailBudget, Viewer
from dragoman.bridge.delivery.database_journal import SharedTables
from dragoman.bridge.envelope import fields_of, make_request, session_of, string_of, with_param
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
from dragoman.bridge.nodes.remote_viewer import RemoteViewer
from dragoman.bridge.nodes.replica import ReplicaJournal, WatchedSession
from dragoman.bridge.router.router import FOR_READERS
from dragoman.errors import DragomanError, ErrorCode, SessionBusy, SessionUnreadable
from dragoman.store.block import Header
from dragoman.store.postgresql.message_table import SessionTip
from dragoman.store.postgresql.session_table import LocatedSession
from dragoman.wire import Malformed, Message, parse

_LOAD, _RESUME = "session/load", "session/resume"
_INSPECT, _LEAVE = "_dragoman/inspect", "_dragoman/leave"
_REOPENING = frozenset({_LOAD, _RESUME})

_WITHOUT_AGENT = frozenset(
    {"session/set_title", "session/archive", "session/unarchive", "session/status", "session/delete"}
)
"""Requests about a session that nobody has to open for them."""

MAX_HELD = 1_000
"""Messages of one viewer that wait while the owner of a session is looked for."""

_GONE_KEPT_S = 60.0
"""Longer than anybody waits for an answer of the database."""

_MOVED = "another bridge has this session by now; ask again"
_ENDED = "the bridge that had this session has ended, and the turn with it; ask again"

_log = logging.getLogger("dragoman.bridge")

_decode_header = msgspec.json.Decoder(Header).decode


class RelayParts(Protocol):
    """The rest of the bridge, as the relay needs it."""

    def is_open(self, session_id: str) -> bool:
        """Tell whether a session is open here."""
        ...

    def route(self, viewer: Viewer, line: bytes) -> None:
        """Have the router take a message."""
        ...

    async def adopt(self, session_id: str) -> bool:
        """Own a session that nobody owns, and open it here; tells whether there is such a session."""
        ...

    def initialize_params(self, viewer: Viewer) -> Raw:
        """Return the params of a viewer's `initialize`."""
        ...

    def address_of(self, viewer: Viewer) -> str | None:
        """Return the address at which a viewer reaches this bridge, if it is known."""
        ...


class PendingRelay(msgspec.Struct, frozen=True):
    """A request of a viewer that another node has."""

    method: str
    session_id: str | None
    is_ours: bool = False
    """Whether the viewer did not ask it."""
    keeps_place: bool = False
    """Whether the viewer goes on where it is by the time of the answer: it takes records meanwhile."""


class OwnerLink:
    """One viewer here at one other node."""

    def __init__(self, viewer: Viewer, owner: uuid.UUID) -> None:
        self.id = str(uuid.uuid4())
        self.viewer = viewer
        self.owner = owner
        self.pending: dict[bytes, PendingRelay] = {}
        self.asked: dict[bytes, str | None] = {}
        """Requests of the owner that the viewer has not answered, with their sessions."""
        self.end_reason: str | None = None
        """The reason why the owner has closed it."""


class ViewerRelay:
    """Finds the owner of a session for each message, and passes messages to and from other nodes."""

    def __init__(
        self,
        agent: str,
        tables: SharedTables,
        *,
        budget: TailBudget,
        parts: RelayParts,
        send: Callable[[uuid.UUID, NodeMessage], None],
    ) -> None:
        self.watched: dict[str, WatchedSession] = {}
        self._agent = agent
        self._node = tables.node.id
        self._tables = tables
        self._budget = budget
        self._parts = parts
        self._send = send
        self._links: dict[str, OwnerLink] = {}
        self._held: dict[Viewer, deque[bytes]] = {}
        self._numbers = count(1)
        self._gone: dict[uuid.UUID, float] = {}
        """Nodes that have ended, and when: an answer of the database may be older than that."""

    # Messages of viewers.

    def receive(self, viewer: Viewer, line: bytes) -> None:
        """Take a message of a viewer."""
        held = self._held.get(viewer)
        if held is None:
            self._take(viewer, line)
        elif len(held) < MAX_HELD:
            held.append(line)
        else:
            viewer.drop(f"it sent {MAX_HELD} messages while the owner of a session was looked for")

    def viewer_left(self, viewer: Viewer) -> None:
        """Tell other nodes that a viewer has left."""
        self._held.pop(viewer, None)
        for link in self._links_of(viewer):
            del self._links[link.id]
            self._send(link.owner, CloseLink(self._agent, link.id))
        for watched in list(self.watched.values()):
            self._unwatch(watched, viewer)

    def _take(self, viewer: Viewer, line: bytes) -> None:
        message = parse(line) if viewer.capabilities is not None else None
        if message is None or isinstance(message, Malformed):
            self._parts.route(viewer, line)
            return
        link = self._link_of_answer(viewer, message)
        if link is not None:
            self._send(link.owner, ViewerLine(self._agent, link.id, line))
            return
        session_id = session_of(message.params)
        if message.method == _INSPECT and session_id is None:
            self._end_inspection(viewer, message.params)
        if message.method is None or session_id is None or self._is_for_router(viewer, message.method, session_id):
            self._parts.route(viewer, line)
            return
        self._held[viewer] = deque()
        self._tables.spawn(self._find_owner(viewer, message, line, session_id))

    def _is_for_router(self, viewer: Viewer, method: str, session_id: str) -> bool:
        """Tell whether a session is open here, or is not for this viewer: then nobody takes it, and it is refused."""
        is_refused = viewer.read_only and method not in FOR_READERS and method != _LEAVE
        return is_refused or not viewer.sees(session_id) or self._parts.is_open(session_id)

    def _end_inspection(self, viewer: Viewer, params: Raw | UnsetType) -> None:
        """Have other nodes show a viewer their wire no more, if it wants to see none."""
        if bytes(fields_of(params).get("on", b"")) == b"false":
            for link in self._links_of(viewer):
                self._ask(link, _INSPECT, {"on": False}, None)

    def _ask(self, link: OwnerLink, method: str, params: dict[str, Any], session_id: str | None) -> None:
        """Ask something that the viewer did not ask, and that it is told no answer to."""
        id_ = b'"dragoman-%d"' % next(self._numbers)
        link.pending[id_] = PendingRelay(method, session_id, is_ours=True)
        self._send(link.owner, ViewerLine(self._agent, link.id, make_request(id_, method, params)))

    def _link_of_answer(self, viewer: Viewer, message: Message) -> OwnerLink | None:
        """Return the link of an answer to another node, or of the request that a viewer cancels there."""
        id_ = None if message.id is UNSET else bytes(message.id)
        if message.method == "$/cancel_request":
            requested = fields_of(message.params).get("requestId")
            id_ = None if requested is None else bytes(requested)
            return next((link for link in self._links_of(viewer) if id_ in link.pending), None)
        if message.method is not None or id_ is None:
            return None
        link = next((link for link in self._links_of(viewer) if id_ in link.asked), None)
        if link is not None:
            viewer.outbox.note_answer(id_, viewer.subscription(link.asked.pop(id_)))
        return link

    async def _find_owner(self, viewer: Viewer, message: Message, line: bytes, session_id: str) -> None:
        """Pass a message to the owner of its session, or take the session."""
        try:
            owner = await self._own_or_locate(session_id, is_taken=message.method not in _REOPENING | _WITHOUT_AGENT)
            if viewer.closed.is_set():
                return
            if owner is None:
                self._parts.route(viewer, line)
            elif owner in self._gone:
                self._refuse(viewer, message, _ENDED)
            elif isinstance(viewer, RemoteViewer):
                self._refuse(viewer, message, _MOVED)
            else:
                self._pass_on(viewer, message, line, session_id, owner)
        except (DragomanError, OSError) as error:
            self._refuse(viewer, message, UNAVAILABLE if viewer.read_only else str(error))
        finally:
            self._go_on(viewer)

    async def _own_or_locate(self, session_id: str, *, is_taken: bool) -> uuid.UUID | None:
        """Return the other node that owns a session, or opens it just now; None if this one is to serve it.

        A session that nobody owns is taken, if so wished. Another node may take it first: then that one owns it.
        """
        while True:
            located = await self.locate(session_id)
            if located is not None and located.owner not in (None, self._node):
                return located.owner
            if located is None or not is_taken:
                return None
            with suppress(SessionBusy):
                await self._parts.adopt(session_id)
                return None

    async def locate(self, session_id: str) -> LocatedSession | None:
        """Find a session, or the node that opens one which only its agent has."""
        return await self._tables.journals.locate(session_id) or await self._tables.replays.locate(session_id)

    def _go_on(self, viewer: Viewer) -> None:
        """Take the messages that waited, until one has to wait again."""
        held = self._held.pop(viewer, deque())
        while held and not viewer.closed.is_set():
            self._take(viewer, held.popleft())
            if viewer in self._held:
                self._held[viewer].extend(held)
                return

    def _pass_on(self, viewer: Viewer, message: Message, line: bytes, session_id: str, owner: uuid.UUID) -> None:
        link = self._link(viewer, owner)
        given = line
        if message.method in _REOPENING:
            line = self._go_on_where_it_is(viewer, message, line, session_id)
        keeps_place = message.method == _RESUME and line is not given
        viewer.outbox.note_use(session_id)
        if message.method == "session/prompt":
            viewer.outbox.note_step(session_id)
        if message.id is not UNSET and message.method is not None:
            link.pending[bytes(message.id)] = PendingRelay(message.method, session_id, keeps_place=keeps_place)
        self._send(link.owner, ViewerLine(self._agent, link.id, line))

    def _go_on_where_it_is(self, viewer: Viewer, message: Message, line: bytes, session_id: str) -> bytes:
        """Name the record behind which a viewer goes on, which the owner does not know, if it named none itself."""
        subscription = viewer.subscription(session_id)
        meta = fields_of(fields_of(message.params).get("_meta", UNSET))
        own = fields_of(meta.get("dragoman", UNSET))
        if subscription is None or string_of(own.get("after")) is not None:
            return line
        cursor = subscription.take_resume_from()
        after: str | None = None
        if cursor is not None:
            after = f"{cursor.epoch}.{cursor.seq}"
        elif subscription.journal is not None and message.method == _RESUME:
            after = subscription.journal.cursor(subscription.position)
        return line if after is None else with_param(line, "_meta", {**meta, "dragoman": {**own, "after": after}})

    def _link(self, viewer: Viewer, owner: uuid.UUID) -> OwnerLink:
        """Make a viewer known at another node, or give the link there is."""
        link = next((link for link in self._links_of(viewer) if link.owner == owner), None)
        if link is None:
            link = OwnerLink(viewer, owner)
            self._links[link.id] = link
            params = bytes(self._parts.initialize_params(viewer))
            address = self._parts.address_of(viewer)
            opened = OpenLink(self._agent, link.id, params, viewer.access, viewer.over_http, address)
            self._send(owner, opened)
        return link

    def _links_of(self, viewer: Viewer) -> list[OwnerLink]:
        return [link for link in self._links.values() if link.viewer is viewer]

    def _refuse(self, viewer: Viewer, message: Message, problem: str) -> None:
        if message.id is not UNSET and message.method is not None:
            subscription = viewer.subscription(session_of(message.params))
            viewer.refuse(bytes(message.id), ErrorCode.INTERNAL_ERROR, problem, subscription)

    # Messages of owners.

    def take(self, message: FromOwner, sender: uuid.UUID) -> None:
        """Take a message of the owner of a session."""
        link = self._links.get(message.link)
        if link is None:
            if not isinstance(message, LinkClosed):  # an owner that was away does not know that its viewer has left it
                self._send(sender, CloseLink(self._agent, message.link))
            return
        match message:
            case Bound():
                self._bind(link, message)
            case Direct():
                self._give(link, message)
            case TerminalNames():
                link.viewer.terminal_names[message.session] = dict(message.names)
            case LinkClosed():
                link.end_reason = message.reason  # what was committed before is shown first
            case Unbound() | Skip():
                watched = self.watched.get(message.session)
                if watched is not None and link.viewer in watched.viewers:
                    self._change(watched, link.viewer, message)

    def _change(self, watched: WatchedSession, viewer: Viewer, message: Unbound | Skip) -> None:
        if isinstance(message, Skip):
            watched.viewers[viewer].skip(message.seq)
        else:
            self._unwatch(watched, viewer)
            viewer.outbox.unsubscribe(message.session)

    def _bind(self, link: OwnerLink, message: Bound) -> None:
        viewer = link.viewer
        watched = self.watched.get(message.session)
        if watched is None or watched.journal.key != message.key:
            others = {} if watched is None else watched.viewers
            journal = ReplicaJournal(
                self._tables.journals,
                message.key,
                _decode_header(message.header),
                end=message.end,
                versions=list(message.versions),
                budget=self._budget,
            )
            self.watched[message.session] = watched = WatchedSession(message.session, journal, link.owner)
            watched.viewers.update(others)
        watched.owner = link.owner
        here = watched.viewers.get(viewer)
        is_asked = any(
            each.method in _REOPENING and not (each.is_ours or each.keeps_place) and each.session_id == message.session
            for each in link.pending.values()
        )
        if not is_asked and here is not None and here.journal is watched.journal:
            return  # it goes on where it is: a new owner puts one that prompts at the end
        watched.subscribe(viewer, message.cursor, has_history=message.has_history)

    def _give(self, link: OwnerLink, message: Direct) -> None:
        viewer = link.viewer
        subscription = viewer.subscription(message.session)
        if message.request_id is not None:
            link.asked[message.request_id] = message.session
        else:
            answered = parse(message.line)
            if not isinstance(answered, Malformed) and answered.method is None and answered.id is not UNSET:
                pending = link.pending.pop(bytes(answered.id), None)
                if pending is not None and pending.is_ours:
                    return
        if subscription is None or subscription.journal is None:
            viewer.send(message.line, request_id=message.request_id)
        elif message.opens:
            viewer.send_opened(message.line, subscription, message.after, is_new=message.is_new)
        else:
            viewer.send(message.line, subscription, message.after, request_id=message.request_id)

    def _close(self, link: OwnerLink, reason: str) -> None:
        """Refuse the requests that an owner had; the viewer stays on its sessions."""
        self._links.pop(link.id, None)
        for id_, pending in link.pending.items():
            if not pending.is_ours:
                subscription = link.viewer.subscription(pending.session_id)
                link.viewer.refuse(id_, ErrorCode.INTERNAL_ERROR, reason, subscription)
        for watched in self.watched.values():
            if watched.owner == link.owner and link.viewer in watched.viewers:
                watched.owner = None
                link.viewer.terminal_names.pop(watched.id, None)
                give_up_unseen(link.viewer, watched.viewers[link.viewer], watched.journal.end, reason)

    # Owners, as they come and go.

    def drop_node(self, node: uuid.UUID) -> None:
        """Note that a node is gone."""
        now = time.monotonic()
        self._gone = {each: since for each, since in self._gone.items() if since > now - _GONE_KEPT_S}
        self._gone[node] = now
        self.close_links(node, _ENDED)

    def add_node(self, node: uuid.UUID) -> None:
        """Note that a node has come, or come back."""
        self._gone.pop(node, None)

    def close_links(self, node: uuid.UUID, reason: str) -> None:
        """End all use of a node; should it live, it is told."""
        for link in [link for link in self._links.values() if link.owner == node]:
            self._close(link, reason)
            self._send(node, CloseLink(self._agent, link.id))

    def lose_all(self, reason: str) -> None:
        """Note that other nodes may take this one for dead."""
        for link in list(self._links.values()):
            self._close(link, reason)

    def followed(self) -> list[int]:
        """Return the keys of all sessions that viewers here follow."""
        return [watched.journal.key for watched in self.watched.values()]

    async def follow(self, tips: dict[int, SessionTip]) -> None:
        """Read what was committed, and go to the owners that sessions have now; raises DragomanError."""
        grown: list[WatchedSession] = []
        try:
            for watched in list(self.watched.values()):
                tip = tips.get(watched.journal.key)
                if tip is not None and tip.last > watched.journal.end and await self._read(watched, tip.last):
                    grown.append(watched)
        finally:
            for watched in grown:  # together: the end of a turn comes behind the words of its subagents
                watched.wake_viewers()
        for link in [link for link in self._links.values() if link.end_reason is not None]:
            self._close(link, link.end_reason or "")
        for watched in list(self.watched.values()):
            tip = tips.get(watched.journal.key)
            if tip is None or tip.owner is None or tip.owner in self._gone:
                continue
            if tip.owner != watched.owner and not self._parts.is_open(watched.id):
                self._attach(watched, tip.owner)

    async def _read(self, watched: WatchedSession, last: int) -> bool:
        """Read records up to this one; tells whether there were any. Raises DragomanError."""
        try:
            return await watched.journal.follow(last)
        except SessionUnreadable as error:  # it stops no other session
            _log.warning("session %s is not shown any more: %s", watched.id, error)
            for viewer in list(watched.viewers):
                viewer.drop(f"session {watched.id} cannot be read: {error.problem}")
            return False

    def watch(self, session_id: str, journal: ReplicaJournal, viewers: dict[Viewer, int]) -> None:
        """Have viewers follow a session that this node has lost, each behind the record that it has."""
        watched = WatchedSession(session_id, journal, None)
        self.watched[session_id] = watched
        for viewer, position in viewers.items():
            watched.subscribe(viewer, position, has_history=True)

    def unwatch(self, session_id: str) -> dict[Viewer, int]:
        """Forget a session that this node owns now; return its viewers, each with the record that it has."""
        watched = self.watched.pop(session_id, None)
        return {} if watched is None else {viewer: each.position for viewer, each in watched.viewers.items()}

    def _attach(self, watched: WatchedSession, owner: uuid.UUID) -> None:
        """Make the viewers of a session known at its new owner."""
        watched.owner = owner
        if owner == self._node:
            return
        for viewer, subscription in watched.viewers.items():
            after = watched.journal.cursor(subscription.position)
            params: dict[str, Any] = {
                "sessionId": watched.id,
                "cwd": watched.journal.header.cwd,
                "mcpServers": [],
                "_meta": {"dragoman": {"after": after}},
            }
            self._ask(self._link(viewer, owner), _RESUME, params, watched.id)

    def _unwatch(self, watched: WatchedSession, viewer: Viewer) -> None:
        watched.viewers.pop(viewer, None)
        if not watched.viewers:
            self.watched.pop(watched.id, None)


def give_up_unseen(viewer: Viewer, subscription: Subscription, end: int, reason: str) -> None:
    """Refuse requests whose answers wait for records that are not committed, and never will be."""
    for direct in subscription.queue.clear():
        if direct.after <= end:
            viewer.send(direct.data, subscription, direct.after, request_id=direct.request_id)
            continue
        message = parse(direct.data)
        if not isinstance(message, Malformed) and message.method is None and message.id is not UNSET:
            viewer.refuse(bytes(message.id), ErrorCode.INTERNAL_ERROR, reason, subscription)
