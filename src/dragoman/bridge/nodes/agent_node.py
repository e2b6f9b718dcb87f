"""One agent's sessions among the nodes that share a database.

It connects the parts of the bridge with the other nodes:

    to other nodes      announcements of sessions, deletions and labels, and wakes after commits
    from other nodes    the same, and requests of their viewers (`RemoteViewers`)
    viewers here        sessions of other nodes (`RemoteSessions`)

A node may lose its sessions, because the database was away for longer than its lease or another node became the owner.
Then the agent is killed if it has one of them, so that it does not continue a session in two places. Viewers here
follow the lost sessions from the database.
"""

import asyncio
import uuid
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import msgspec

from dragoman.bridge.agent_host import CLOSE_S, AgentHost
from dragoman.bridge.delivery import History, SessionDescription, StoredHistory, TailBudget
from dragoman.bridge.delivery.database_histories import DatabaseHistoryStore, SharedTables, rows_of
from dragoman.bridge.envelope import encode
from dragoman.bridge.nodes.labels import DatabaseLabels
from dragoman.bridge.nodes.messages import (
    Announced,
    BringLogin,
    CloseLink,
    ForAgent,
    Joined,
    Labelled,
    LoginBrought,
    Missed,
    NodeMessage,
    OpenLink,
    OpenQuestion,
    QuestionOpened,
    ViewerLine,
)
from dragoman.bridge.nodes.node import BridgeNode
from dragoman.bridge.nodes.remote_session import refuse_uncommitted
from dragoman.bridge.nodes.remote_sessions import RemoteSessions
from dragoman.bridge.nodes.remote_viewer import RemoteViewer, RemoteViewers, ViewerLink
from dragoman.bridge.router import CodeKind, Router
from dragoman.bridge.sessions import ServedSession, ServedSessions
from dragoman.bridge.sessions.updates import from_iso
from dragoman.bridge.settings import ViewerLimits
from dragoman.bridge.viewers import Delivery
from dragoman.bridge.viewers.viewer import ViewerHandler
from dragoman.errors import DragomanError, LogError
from dragoman.store.block import Header
from dragoman.store.opening import journal_scope
from dragoman.store.postgresql.errors import FencedError
from dragoman.store.postgresql.history import BridgePart
from dragoman.store.postgresql.label_table import LabelTable
from dragoman.store.postgresql.message_table import SessionTip
from dragoman.store.postgresql.session_table import SessionTable, find_lost

Spawn = Callable[[Coroutine[Any, Any, None]], object]

MAX_WAITING_BYTES = 8 * 1024 * 1024
"""Limit for the unwritten records of one agent. Beyond it the agent is not read until half of them are written."""

_decode_header = msgspec.json.Decoder(Header).decode


class AgentParts(msgspec.Struct, frozen=True):
    """The parts of a bridge that serve one agent."""

    delivery: Delivery
    host: AgentHost
    sessions: ServedSessions
    router: Router
    handler: ViewerHandler
    limits: ViewerLimits


class AgentNode:
    """Shares the sessions of one agent with other nodes."""

    def __init__(self, agent: str, node: BridgeNode, budget: TailBudget, spawn: Spawn) -> None:
        self._agent = agent
        self._node = node
        self._spawn = spawn
        scope = journal_scope(agent)
        replays = SessionTable(node.database, f"replay:{agent}")
        tables = SharedTables(SessionTable(node.database, scope), node.node, BridgePart(replays, self, spawn))
        self.histories = DatabaseHistoryStore(tables, budget)
        self.histories.on_deleted = self._deleted
        self.labels = DatabaseLabels(LabelTable(node.database, scope), self._labelled)
        self.remote = RemoteSessions(agent, tables, budget=budget, agent_node=self, send=node.mailbox.send)
        self.viewers = RemoteViewers(node.mailbox, self._admit)
        self._parts: AgentParts | None = None
        self._waiting_bytes = 0
        self._lost: dict[ServedSession, LogError] = {}

    @property
    def name(self) -> str:
        """The short name of this node. The ids of questions contain it."""
        return self._node.node.id.hex[:12]

    @property
    def parts(self) -> AgentParts:
        """The parts that serve the agent."""
        if self._parts is None:
            raise RuntimeError("the node is connected with its agent before anything else")
        return self._parts

    def connect(self, parts: AgentParts) -> None:
        """Set the parts that serve the agent, which are created later than this object."""
        self._parts = parts
        self._node.add(self._agent, self)

    async def has_session(self, session_id: str) -> bool:
        """Return whether any node has a session. Raises LogError."""
        return await self.remote.locate(session_id) is not None

    # router.code_register.CodeRegister

    async def publish(self, kind: CodeKind, hash_: bytes, *, life_s: float, limit: int) -> None:
        """Register a code of this node. Raises LogError."""
        await self._node.access.codes.publish(kind, hash_, self._agent, life_s=life_s, limit=limit)

    def now_s(self) -> float:
        """Return the time of the database, in seconds since 1970."""
        return self._node.node.now_ms() / 1000

    # store.postgresql.history.HistoryListener

    def history_committed(self, history: History) -> None:
        """Wake the nodes whose viewers follow a session."""
        session = self.parts.sessions.by_id.get(history.header.id)
        viewers = () if session is None else session.subscriptions
        nodes = {viewer.link.node for viewer in viewers if isinstance(viewer, RemoteViewer)}
        if nodes:
            self._node.wake(nodes)

    def history_listed(self, history: History) -> None:
        """Announce a changed session to other nodes."""
        session = self.parts.sessions.by_id.get(history.header.id)
        if session is not None and session.history is history:
            self._send_to_nodes(self._announcement(history, session.describe_for_lists()))

    def greet_node(self, node: uuid.UUID) -> None:
        """Announce this node and its open sessions to a node that was discovered."""
        self.remote.add_node(node)
        self._node.mailbox.send(node, Joined(self._agent))
        for session in self.parts.sessions.by_id.values():
            self._node.mailbox.send(node, self._announcement(session.history, session.describe_for_lists()))

    def _announcement(self, history: History, described: SessionDescription) -> Announced:
        header, fields = msgspec.json.encode(history.header), encode(described.fields)
        return Announced(self._agent, history.header.id, header, fields, described.is_prompted)

    def history_lost(self, history: History, failure: LogError) -> None:
        """Release a session that another node may own by now."""
        session = self.parts.sessions.by_id.get(history.header.id)
        if session is None or session.history is not history:
            return
        for viewer, subscription in session.subscriptions.items():
            refuse_uncommitted(viewer, subscription, history.end, str(failure))
        if not self._lost:
            self._spawn(self._release_lost())
        self._lost[session] = failure

    def waiting_changed(self, change: int) -> None:
        """Pause reading the agent while too many bytes wait for the database."""
        was, self._waiting_bytes = self._waiting_bytes, self._waiting_bytes + change
        if was <= MAX_WAITING_BYTES < self._waiting_bytes:
            self.parts.host.hold_output(is_held=True)
        elif self._waiting_bytes <= MAX_WAITING_BYTES // 2 < was:
            self.parts.host.hold_output(is_held=False)

    # Calls from the node.

    def receive_message(self, message: ForAgent, sender: uuid.UUID) -> None:
        """Handle a message of another node."""
        match message:
            case OpenLink():
                self.viewers.open(message, sender)
            case ViewerLine() | CloseLink():
                self.viewers.receive(message, sender)
            case Announced():
                self._apply_announced(message)
            case Labelled():
                if self.labels.record_unread(message.session):
                    self._spawn(self._read_labels())
            case OpenQuestion():
                self._open_question(message, sender)
            case BringLogin():
                self._spawn(self._bring_login(message, sender))
            case Joined():
                pass  # an unknown sender makes the node look for new nodes
            case Missed():
                self._node.fall_behind()
            case _:
                self.remote.receive(message, sender)

    def followed(self) -> list[int]:
        """Return the keys of the sessions of other nodes that viewers here follow."""
        return self.remote.followed()

    async def follow(self, tips: dict[int, SessionTip]) -> None:
        """Send viewers the records that other nodes have committed. Raises DragomanError."""
        await self.remote.follow(tips)
        self.viewers.forget_closed()

    def drop_nodes(self, nodes: set[uuid.UUID]) -> None:
        """Close the links to nodes that are gone, and drop their viewers. Raises DragomanError."""
        for node in nodes:
            self.remote.drop_node(node)
            self.viewers.drop_node(node)

    def lose_all(self, failure: LogError) -> None:
        """Stop everything that only the owner of a session may do, because the database was away for too long.

        The agent is killed before this returns, and so before the next heartbeat, after which it could write again.
        """
        self.histories.lose_all(failure)
        self._end_agent()
        self.remote.lose_all(str(failure))

    def lose_touch(self, node: uuid.UUID, reason: str) -> None:
        """Close the links to a node for which messages were dropped, and drop its viewers."""
        self.remote.close_links(node, reason)
        self.viewers.drop_node(node)

    async def catch_up(self) -> None:
        """Read the changes of other nodes that this one was not notified of. Raises DragomanError.

        They may own its sessions by now. They may have changed, created and deleted others.
        """
        await self._find_lost()
        for session_id in await self.labels.read_changed():
            self._show_label(session_id)
        await self._scan()

    # Sessions that moved, changes of other nodes, and requests from them.

    async def _find_lost(self) -> None:
        """Release the sessions that another node owns by now. Raises DragomanError."""
        open_rows = self.histories.open_rows()
        sessions = [rows.session for rows in open_rows if rows.session is not None]
        lost = await find_lost(self._node.database, sessions) if sessions else set[int]()
        for rows in open_rows:
            if rows.session is not None and rows.session.key in lost:
                rows.lose(FencedError(rows.session.header.id))

    async def _scan(self) -> None:
        """Read the list of stored sessions, and announce the changes to viewers. Raises DragomanError."""
        before = self.histories.stored
        await self.histories.scan()
        sessions, stored = self.parts.sessions, self.histories.stored
        for session_id in before.keys() - stored.keys() - sessions.by_id.keys():
            self._announce_deletion(session_id)
        for session_id, found in stored.items():
            if session_id not in before or _shown(found) != _shown(before[session_id]):
                sessions.announce_stored(found)

    def _admit(self, opened: OpenLink, link: ViewerLink) -> RemoteViewer:
        """Create a viewer of another node. Raises TooManyViewersError."""
        parts = self.parts
        viewer = RemoteViewer(parts.handler, parts.limits.window_bytes, self._spawn, link, opened)
        parts.delivery.admit(viewer)
        if opened.address is not None:
            parts.router.logins.record_address(viewer, opened.address)
        return viewer

    async def _release_lost(self) -> None:
        """End the agent, then let the viewers of lost sessions follow them from the database."""
        ending = self._end_agent()
        if ending is not None:
            await asyncio.wait({ending}, timeout=CLOSE_S)
        lost, self._lost = self._lost, {}
        for session, failure in lost.items():
            self._release(session, str(failure))

    def _end_agent(self) -> "asyncio.Task[None] | None":
        """Kill the agent if it has any of the lost sessions. Return the task that ends with it."""
        if not any(session.is_at_agent or session.is_asked for session in self._lost):
            return None
        return self.parts.host.abandon(str(next(iter(self._lost.values()))))

    def _release(self, session: ServedSession, reason: str) -> None:
        """Close a lost session here. Viewers of this node continue to follow it, other viewers are dropped."""
        history = session.history
        viewers = {viewer: each.position for viewer, each in session.subscriptions.items()}
        for viewer, subscription in session.subscriptions.items():
            refuse_uncommitted(viewer, subscription, history.end, reason)
        described = {**session.describe(), "state": "asleep", "viewers": 0, "pending": 0}
        self.parts.sessions.release(session, reason)
        self.histories.stored[session.id] = session.as_stored()
        self.parts.sessions.announcements.stored_changed(described)
        here = {viewer: min(at, history.end) for viewer, at in viewers.items() if not isinstance(viewer, RemoteViewer)}
        for viewer in viewers.keys() - here.keys():
            viewer.drop(reason)
        rows = rows_of(history)
        if here and rows is not None and (replica := rows.replica(self.histories.budget)) is not None:
            self.remote.keep_lost(replica, here)

    def _apply_announced(self, message: Announced) -> None:
        sessions = self.parts.sessions
        if message.is_deleted:
            self.histories.stored.pop(message.session, None)
            self._announce_deletion(message.session)
            return
        if message.session in sessions.by_id:
            return
        described: dict[str, Any] = msgspec.json.decode(message.described)
        stored = StoredHistory(
            id=message.session,
            cwd=_decode_header(message.header).cwd,
            title=described.get("title"),
            updated_ms=from_iso(described["updatedAt"]),
            prompted=message.is_prompted or bool(described.get("viewers")),
            described=described,
        )
        self.histories.stored[message.session] = stored
        sessions.announce_stored(stored)

    def _announce_deletion(self, session_id: str) -> None:
        ended = {"sessionId": session_id, "state": "gone", "deleted": True, "viewers": 0, "pending": 0}
        self.parts.sessions.announcements.stored_changed(ended)

    async def _read_labels(self) -> None:
        try:
            for session_id in await self.labels.read_unread():
                self._show_label(session_id)
        except DragomanError:
            self._node.fall_behind()

    def _show_label(self, session_id: str) -> None:
        sessions = self.parts.sessions
        session = sessions.by_id.get(session_id)
        stored = self.histories.stored.get(session_id)
        if session is not None:
            session.set_label(self.labels.of(session_id))
        elif stored is not None:
            sessions.announce_stored(stored)

    def _open_question(self, message: OpenQuestion, sender: uuid.UUID) -> None:
        opened = self.parts.router.open_question(message.hash, message.option)
        answer = QuestionOpened(message.agent, message.id, None)
        if opened is not None:
            described = msgspec.json.encode(opened.described)
            answer = QuestionOpened(message.agent, message.id, described, opened.is_offered)
        self._node.mailbox.send(sender, answer)

    async def _bring_login(self, message: BringLogin, sender: uuid.UUID) -> None:
        brought = await self.parts.router.logins.receive_redirect(message.back)
        answer = LoginBrought(message.agent, message.id, None)
        if brought is not None:
            answer = LoginBrought(message.agent, message.id, brought.server, brought.is_taken)
        self._node.mailbox.send(sender, answer)

    def _deleted(self, session_id: str) -> None:
        self._send_to_nodes(Announced(self._agent, session_id, is_deleted=True))

    def _labelled(self, session_id: str) -> None:
        self._send_to_nodes(Labelled(self._agent, session_id))

    def _send_to_nodes(self, message: NodeMessage) -> None:
        for node in self._node.others(self._agent):
            self._node.mailbox.send(node, message)

    async def close(self) -> None:
        """Commit the last records."""
        with suppress(asyncio.CancelledError, DragomanError):
            await self.histories.close()


def _shown(stored: StoredHistory) -> tuple[str | None, bool, dict[str, Any]]:
    """Return the facts of a session whose change is announced. The time of the last change is not one of them."""
    described = {key: value for key, value in (stored.described or {}).items() if key != "updatedAt"}
    return stored.title, stored.prompted, described
