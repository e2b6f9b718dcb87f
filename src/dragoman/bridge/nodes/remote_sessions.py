"""The sessions of other nodes: finds their owners, follows their histories, and moves viewers here between owners.

The router asks for the owner of each session that is not open here:

    another node owns it    that node receives the message (`OwnerLink.pass_on`)
    no node owns it         this node becomes the owner, if the message needs that, and its router handles the message

If the owner of a session ends, its viewers here stay subscribed. The requests that the owner had are refused, and the
viewers are connected to the next owner as soon as there is one.
"""

import time
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from dragoman.bridge.delivery import TailBudget
from dragoman.bridge.delivery.database_histories import SharedTables
from dragoman.bridge.envelope import fields_of
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
)
from dragoman.bridge.nodes.owner_link import REOPENING, RESUME, OwnerLink
from dragoman.bridge.nodes.remote_session import RemoteSession
from dragoman.bridge.nodes.remote_viewer import RemoteViewer
from dragoman.bridge.sessions import ServedSession
from dragoman.bridge.viewers import Viewer
from dragoman.errors import DragomanError, ErrorCode, RpcError, SessionBusyError
from dragoman.protocol import methods
from dragoman.store.block import Header
from dragoman.store.postgresql.history import ReplicaHistory
from dragoman.store.postgresql.message_table import SessionTip
from dragoman.store.postgresql.session_table import LocatedSession
from dragoman.wire import Malformed, Message
from dragoman.wire.envelope import session_of

if TYPE_CHECKING:
    from dragoman.bridge.nodes.agent_node import AgentNode

_INSPECT = "_dragoman/inspect"

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

_GONE_KEPT_S = 60.0
"""Time to remember a node that has ended, longer than any query of the database takes."""

_MOVED = "another bridge has taken over this session; send the request again"
_ENDED = "the bridge that had this session stopped, and the turn ended with it; send the prompt again"

_decode_header = msgspec.json.Decoder(Header).decode


class RemoteSessions:
    """The sessions of other nodes that viewers here use. Implements `router.OtherNodes`."""

    def __init__(
        self,
        agent: str,
        tables: SharedTables,
        *,
        budget: TailBudget,
        agent_node: "AgentNode",
        send: Callable[[uuid.UUID, NodeMessage], None],
    ) -> None:
        self._agent = agent
        self._tables = tables
        self._budget = budget
        self._agent_node = agent_node
        self._send = send
        self._by_id: dict[str, RemoteSession] = {}
        self._links: dict[str, OwnerLink] = {}
        self._gone: dict[uuid.UUID, float] = {}
        """Nodes that have ended, with the time. A result of the database may be older than that."""
        self._losses: Counter[uuid.UUID] = Counter()
        """How often the links to a node were given up. Their requests were refused, so it must not serve them later."""

    # Messages of viewers. See `router.OtherNodes`.

    async def pass_on(self, viewer: Viewer, message: Message, line: bytes, session_id: str) -> bool:
        may_own = message.method not in REOPENING | _WITHOUT_AGENT and not viewer.read_only
        try:
            owner = await self._own_or_locate(session_id, may_own=may_own)
        except (DragomanError, OSError) as error:
            raise RpcError(ErrorCode.INTERNAL_ERROR, UNAVAILABLE if viewer.read_only else str(error)) from error
        if viewer.closed.is_set():
            return True
        if owner in self._gone:
            raise RpcError(ErrorCode.INTERNAL_ERROR, _ENDED)
        if owner is not None and isinstance(viewer, RemoteViewer):
            raise RpcError(ErrorCode.INTERNAL_ERROR, _MOVED)
        if owner is not None:
            self._link(viewer, owner).pass_on(message, line)
        return owner is not None

    def pass_back(self, viewer: Viewer, message: Message | Malformed, line: bytes) -> bool:
        links = self._links_of(viewer)
        if isinstance(message, Message) and message.method == _INSPECT and session_of(message.params) is None:
            self._end_inspection(links, message)
        return any(link.pass_back(message, line) for link in links)

    def viewer_left(self, viewer: Viewer) -> None:
        for link in self._links_of(viewer):
            del self._links[link.id]
            self._send(link.owner, CloseLink(self._agent, link.id))
        for remote in list(self._by_id.values()):
            self._unsubscribe(remote, viewer)

    async def locate(self, session_id: str) -> LocatedSession | None:
        """Look up a session, or the node that is opening a session which only its agent has. Raises DragomanError."""
        return await self._tables.histories.locate(session_id) or await self._tables.bridge.replays.locate(session_id)

    async def _own_or_locate(self, session_id: str, *, may_own: bool) -> uuid.UUID | None:
        """Return the other node that owns or is opening a session, or None if this node serves it.

        If no node owns the session and `may_own` is set, this node becomes the owner, unless another one is faster.
        """
        while True:
            located = await self.locate(session_id)
            if located is not None and located.owner not in (None, self._tables.node.id):
                return located.owner
            if located is None or not may_own:
                return None
            with suppress(SessionBusyError):
                await self._agent_node.parts.sessions.open_stored(session_id)
                return None

    def _end_inspection(self, links: list[OwnerLink], message: Message) -> None:
        """Stop other nodes from sending a viewer their wire messages, if it no longer wants any."""
        if bytes(fields_of(message.params).get("on", b"")) == b"false":
            for link in links:
                link.ask(_INSPECT, {"on": False})

    def _link(self, viewer: Viewer, owner: uuid.UUID) -> OwnerLink:
        """Return the link of a viewer to another node. Open it if there is none."""
        link = next((link for link in self._links_of(viewer) if link.owner == owner), None)
        if link is None:
            link = OwnerLink(self._agent, viewer, owner, self._send)
            self._links[link.id] = link
            router = self._agent_node.parts.router
            params, address = bytes(router.initialize_params(viewer)), router.logins.address_of(viewer)
            losses = self._losses[owner]
            opened = OpenLink(self._agent, link.id, params, viewer.access, viewer.over_http, address, losses)
            self._send(owner, opened)
        return link

    def _links_of(self, viewer: Viewer) -> list[OwnerLink]:
        return [link for link in self._links.values() if link.viewer is viewer]

    # Messages of owners.

    def receive(self, message: FromOwner, sender: uuid.UUID) -> None:
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
                link.deliver(message)
            case TerminalNames():
                link.viewer.terminal_names[message.session] = dict(message.names)
            case LinkClosed():
                link.end_reason = message.reason  # `follow` closes the link, after the records committed before
            case Unbound() | Skip():
                remote = self._by_id.get(message.session)
                if remote is None or link.viewer not in remote.subscriptions:
                    return
                if isinstance(message, Skip):
                    remote.subscriptions[link.viewer].skip(message.seq)
                else:
                    self._unsubscribe(remote, link.viewer)
                    link.viewer.outbox.unsubscribe(message.session)

    def _bind(self, link: OwnerLink, message: Bound) -> None:
        """Subscribe a viewer to a session, with a new copy of its history if the journal is another one."""
        remote = self._by_id.get(message.session)
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
            self._by_id[message.session] = remote = RemoteSession(history, link.owner)
            remote.subscriptions.update(others)
        remote.owner = link.owner
        here = remote.subscriptions.get(link.viewer)
        if here is None or here.history is not remote.history or link.moves_viewer(message.session):
            remote.subscribe(link.viewer, message.cursor, has_history=message.has_history)

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
        return [remote.history.key for remote in self._by_id.values()]

    async def follow(self, tips: dict[int, SessionTip]) -> None:
        """Read the committed records, and connect viewers to the new owners of sessions. Raises DragomanError."""
        grown: list[RemoteSession] = []
        try:
            for remote in list(self._by_id.values()):
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
        for remote in list(self._by_id.values()):
            tip = tips.get(remote.history.key)
            if tip is None or tip.owner is None or tip.owner in self._gone or tip.owner == remote.owner:
                continue
            if self._agent_node.parts.sessions.find(remote.id) is None:
                self._attach(remote, tip.owner)

    def keep_lost(self, history: ReplicaHistory, positions: dict[Viewer, int]) -> None:
        """Subscribe viewers to a session that this node has lost, each at its position."""
        self._by_id[history.header.id] = remote = RemoteSession(history, None)
        for viewer, position in positions.items():
            remote.subscribe(viewer, position, has_history=True)

    def session_added(self, session: ServedSession) -> None:
        """Move the viewers of a session that this node now owns to the session itself."""
        if (remote := self._by_id.pop(session.id, None)) is not None:
            for viewer, subscription in remote.subscriptions.items():
                session.subscribe(viewer, subscription.position, has_history=True)

    def _attach(self, remote: RemoteSession, owner: uuid.UUID) -> None:
        """Connect the viewers of a session to its new owner."""
        remote.owner = owner
        if owner == self._tables.node.id:
            return
        for viewer, subscription in remote.subscriptions.items():
            self._link(viewer, owner).ask(RESUME, remote.resume_params(subscription), remote.id)

    def _close(self, link: OwnerLink, reason: str) -> None:
        """Refuse the requests that an owner had. The viewer stays subscribed to its sessions."""
        self._links.pop(link.id, None)
        link.refuse_pending(reason)
        for remote in list(self._by_id.values()):
            if remote.owner == link.owner and link.viewer in remote.subscriptions:
                remote.lose_owner(link.viewer, reason)

    def _unsubscribe(self, remote: RemoteSession, viewer: Viewer) -> None:
        remote.subscriptions.pop(viewer, None)
        if not remote.subscriptions:
            self._by_id.pop(remote.id, None)
