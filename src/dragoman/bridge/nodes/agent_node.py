"""One agent's sessions among the nodes that share a database."""

import asyncio
import uuid
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, Protocol

import msgspec
from msgspec import Raw

from dragoman.bridge.delivery import (
    Delivery,
    Journal,
    SessionDescription,
    StoredJournal,
    TailBudget,
    Viewer,
    ViewerRequest,
)
from dragoman.bridge.delivery.database_journal import DatabaseJournal, SharedTables
from dragoman.bridge.delivery.database_journal_store import DatabaseJournalStore
from dragoman.bridge.delivery.viewer import ViewerHandler
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
from dragoman.bridge.nodes.relay import ViewerRelay, give_up_unseen
from dragoman.bridge.nodes.remote_viewer import RemoteViewer, RemoteViewers
from dragoman.bridge.nodes.replica import ReplicaJournal
from dragoman.bridge.registry import Announcements, ServedSession, SessionRegistry
from dragoman.bridge.registry.session_updates import from_iso
from dragoman.bridge.router import BroughtLogin, CodeKind, LinkedQuestion, Router
from dragoman.bridge.settings import ViewerLimits
from dragoman.bridge.supervisor import AgentSupervisor
from dragoman.errors import DragomanError, LogFailed
from dragoman.store.block import Header
from dragoman.store.opening import journal_scope
from dragoman.store.postgresql.errors import Fenced
from dragoman.store.postgresql.label_table import LabelTable
from dragoman.store.postgresql.message_table import SessionTip
from dragoman.store.postgresql.session_table import SessionTable, find_lost

Spawn = Callable[[Coroutine[Any, Any, None]], object]

MAX_WAITING_BYTES = 8 * 1024 * 1024
"""Of all journals of an agent: beyond it the agent is not read from until the database has taken half."""

_decode_header = msgspec.json.Decoder(Header).decode


class CodeTarget(Protocol):
    """The things of one agent here that the codes of people lead to."""

    def open_question(self, hash_: bytes, option_id: str | None = None) -> LinkedQuestion | None:
        """Give the question of a link, after the option was chosen; None if there is none."""
        ...

    async def bring_login(self, back: Mapping[str, str]) -> BroughtLogin | None:
        """Give the agent what a browser brought back from a login; None if no login waits."""
        ...


class AgentParts(msgspec.Struct, frozen=True):
    """The parts of a bridge that serve one agent."""

    delivery: Delivery
    supervisor: AgentSupervisor
    registry: SessionRegistry
    announcements: Announcements
    router: Router
    handler: ViewerHandler
    limits: ViewerLimits
    code_target: CodeTarget


class AgentNode:
    """Shares the sessions of one agent with other nodes."""

    def __init__(self, agent: str, node: BridgeNode, budget: TailBudget, spawn: Spawn) -> None:
        self._agent = agent
        self._node = node
        self._spawn = spawn
        scope = journal_scope(agent)
        self._table = SessionTable(node.database, scope)
        replays = SessionTable(node.database, f"replay:{agent}")
        tables = SharedTables(self._table, replays, node.node, self, spawn)
        self.journals = DatabaseJournalStore(tables, budget)
        self.journals.on_deleted = self._deleted
        self.labels = DatabaseLabels(LabelTable(node.database, scope), self._labelled)
        self.relay = ViewerRelay(agent, tables, budget=budget, parts=self, send=node.mailbox.send)
        self.viewers = RemoteViewers(agent, node.mailbox, self._admit)
        self._parts: AgentParts | None = None
        self._waiting_bytes = 0
        self._lost: dict[ServedSession, LogFailed] = {}

    @property
    def name(self) -> str:
        """The name of this node, in the ids of questions."""
        return self._node.node.id.hex[:12]

    @property
    def parts(self) -> AgentParts:
        """The parts that serve the agent."""
        if self._parts is None:
            raise RuntimeError("the node is connected with its agent before anything else")
        return self._parts

    def connect(self, parts: AgentParts) -> None:
        """Take the parts that serve the agent, which are made after this."""
        self._parts = parts
        parts.router.opening.pass_elsewhere = self._pass_elsewhere
        self._node.add(self._agent, self)

    def receive(self, viewer: Viewer, line: bytes) -> None:
        """Take a message of a viewer here."""
        self.relay.receive(viewer, line)

    def viewer_left(self, viewer: Viewer) -> None:
        """Note that a viewer has left."""
        self.relay.viewer_left(viewer)

    async def has_session(self, session_id: str) -> bool:
        """Tell whether any node has a session; raises LogFailed."""
        return await self.relay.locate(session_id) is not None

    # router.code_register.CodeRegister

    async def publish(self, kind: CodeKind, hash_: bytes, *, life_s: float, limit: int) -> None:
        """Have every node find what a code leads to here; raises LogFailed."""
        await self._node.access.codes.publish(kind, hash_, self._agent, life_s=life_s, limit=limit)

    def now_s(self) -> float:
        """Return the time of the database, in seconds since 1970."""
        return self._node.node.now_ms() / 1000

    # relay.RelayParts

    def is_open(self, session_id: str) -> bool:
        """Tell whether a session is open here."""
        return session_id in self.parts.registry.sessions

    def route(self, viewer: Viewer, line: bytes) -> None:
        """Have the router take a message."""
        self.parts.router.receive(viewer, line)

    async def adopt(self, session_id: str) -> bool:
        """Own a session that nobody owns, and open it here; raises DragomanError, OSError."""
        session = await self.parts.router.opening.open_journal(session_id)
        return session is not None

    def initialize_params(self, viewer: Viewer) -> Raw:
        """Return the params of a viewer's `initialize`."""
        return self.parts.router.initialize_params(viewer)

    def address_of(self, viewer: Viewer) -> str | None:
        """Return the address at which a viewer reaches this bridge, if it is known."""
        return self.parts.router.logins.address_of(viewer)

    def session_added(self, session: ServedSession) -> None:
        """Have viewers follow a session here that is open here now."""
        for viewer, position in self.relay.unwatch(session.id).items():
            session.subscribe(viewer, position, has_history=True)

    # delivery.database_journal.JournalListener

    def journal_committed(self, journal: DatabaseJournal) -> None:
        """Wake the nodes whose viewers follow a session."""
        session = self.parts.registry.sessions.get(journal.header.id)
        viewers = () if session is None else session.subscriptions
        nodes = {viewer.link.node for viewer in viewers if isinstance(viewer, RemoteViewer)}
        if nodes:
            self._node.wake(nodes)

    def journal_told(self, journal: DatabaseJournal, described: SessionDescription) -> None:
        """Tell other nodes of a session that changed."""
        self._tell_nodes(self._announcement(journal, described))

    def greet_node(self, node: uuid.UUID) -> None:
        """Tell a node that was found of this one, and of the sessions that are open here."""
        self.relay.add_node(node)
        self._node.mailbox.send(node, Joined(self._agent))
        for session in self.parts.registry.sessions.values():
            self._node.mailbox.send(node, self._announcement(session.journal, session.describe_for_lists()))

    def _announcement(self, journal: Journal, described: SessionDescription) -> Announced:
        header, fields = msgspec.json.encode(journal.header), encode(described.fields)
        return Announced(self._agent, journal.header.id, header, fields, described.is_prompted)

    def journal_lost(self, journal: DatabaseJournal, failure: LogFailed) -> None:
        """Give a session up that another node may own."""
        session = self.parts.registry.sessions.get(journal.header.id)
        if session is None or session.journal is not journal:
            return
        for viewer, subscription in session.subscriptions.items():
            give_up_unseen(viewer, subscription, journal.end, str(failure))
        if not self._lost:
            self._spawn(self._give_up())
        self._lost[session] = failure

    def waiting_changed(self, change: int) -> None:
        """Read nothing of the agent while too much waits for the database."""
        was, self._waiting_bytes = self._waiting_bytes, self._waiting_bytes + change
        if was <= MAX_WAITING_BYTES < self._waiting_bytes:
            self.parts.supervisor.hold_output(is_held=True)
        elif self._waiting_bytes <= MAX_WAITING_BYTES // 2 < was:
            self.parts.supervisor.hold_output(is_held=False)

    # node.NodeAgent

    def take(self, message: ForAgent, sender: uuid.UUID) -> None:
        """Take a message of another node."""
        parts = self.parts
        match message:
            case OpenLink():
                self.viewers.open(message, sender, parts.handler, parts.limits.window_bytes, self._spawn)
            case ViewerLine() | CloseLink():
                self.viewers.take(message, sender)
            case Announced():
                self._take_announced(message)
            case Labelled():
                if self.labels.note_unread(message.session):
                    self._spawn(self._read_labels())
            case OpenQuestion():
                self._open_question(message, sender)
            case BringLogin():
                self._spawn(self._bring_login(message, sender))
            case Joined():
                pass  # its sender is looked for if it is not known
            case Missed():
                self._node.fall_behind()
            case _:
                self.relay.take(message, sender)

    def followed(self) -> list[int]:
        """Return the keys of all sessions that viewers here follow and other nodes write."""
        return self.relay.followed()

    async def follow(self, tips: dict[int, SessionTip]) -> None:
        """Show viewers what other nodes have committed; raises DragomanError."""
        await self.relay.follow(tips)
        self.viewers.forget_closed()

    def drop_nodes(self, nodes: set[uuid.UUID]) -> None:
        """Note that nodes are gone: their sessions are asleep, their viewers have left. Raises DragomanError."""
        for node in nodes:
            self.relay.drop_node(node)
            self.viewers.drop_node(node)

    def lose_all(self, failure: LogFailed) -> None:
        """Stop everything that only an owner may do: the database was out of reach for too long."""
        self.journals.lose_all(failure)
        self.relay.lose_all(str(failure))

    def lose_touch(self, node: uuid.UUID, reason: str) -> None:
        """Note that messages for a node were dropped: those who wait for one are told."""
        self.relay.close_links(node, reason)
        self.viewers.drop_node(node)

    async def catch_up(self) -> None:
        """Note what other nodes did of which this one was not told; raises DragomanError.

        They may have taken its sessions. They may have changed, made and deleted others.
        """
        await self._find_lost()
        for session_id in await self.labels.read_changed():
            self._show_label(session_id)
        await self._scan()

    # The rest.

    async def _find_lost(self) -> None:
        """Give up the sessions that another node took; raises DragomanError."""
        journals = self.journals.open_journals()
        sessions = [journal.session for journal in journals if journal.session is not None]
        lost = await find_lost(self._node.database, sessions) if sessions else set[int]()
        for journal in journals:
            if journal.session is not None and journal.session.key in lost:
                journal.lose(Fenced(journal.header.id))

    async def _scan(self) -> None:
        """Look for the sessions that others have, or nobody, and tell viewers what changed; raises DragomanError."""
        before = self.journals.stored
        await self.journals.scan()
        registry, stored = self.parts.registry, self.journals.stored
        for session_id in before.keys() - stored.keys() - registry.sessions.keys():
            self._tell_deleted(session_id)
        for session_id, found in stored.items():
            if session_id not in before or _shown(found) != _shown(before[session_id]):
                registry.announce_stored(found)

    def _pass_elsewhere(self, request: ViewerRequest) -> None:
        """Look for the owner of a session again, which was nobody's a moment ago."""
        if request.end():
            self.relay.receive(request.viewer, request.given)

    def _admit(self, viewer: RemoteViewer) -> None:
        self.parts.delivery.admit(viewer)
        if viewer.link.address is not None:
            self.parts.router.logins.note_address(viewer, viewer.link.address)

    async def _give_up(self) -> None:
        """End the work of the agent, then let the viewers of lost sessions follow them from the database."""
        reason = str(next(iter(self._lost.values())))
        if any(session.life.is_asked_for for session in self._lost):
            await self.parts.supervisor.abandon(reason)
        lost, self._lost = self._lost, {}
        for session, failure in lost.items():
            self._release(session, str(failure))

    def _release(self, session: ServedSession, reason: str) -> None:
        journal = session.journal
        viewers = {viewer: each.position for viewer, each in session.subscriptions.items()}
        for viewer, subscription in session.subscriptions.items():
            give_up_unseen(viewer, subscription, journal.end, reason)
        described = {**session.describe(), "state": "asleep", "viewers": 0, "pending": 0}
        self.parts.registry.release(session, reason)
        self.journals.stored[session.id] = StoredJournal(
            header=journal.header,
            title=session.info.title,
            updated_ms=journal.updated_ms,
            prompted=session.info.prompted,
        )
        self.parts.announcements.stored_changed(described)
        here = {viewer: min(at, journal.end) for viewer, at in viewers.items() if not isinstance(viewer, RemoteViewer)}
        for viewer in viewers.keys() - here.keys():
            viewer.drop(reason)
        if isinstance(journal, DatabaseJournal) and journal.session is not None and here:
            replica = ReplicaJournal(
                self._table,
                journal.session.key,
                journal.header,
                end=journal.end,
                versions=[each for each in journal.versions if each[0] <= journal.end],
                budget=self.journals.budget,
            )
            self.relay.watch(session.id, replica, here)

    def _take_announced(self, message: Announced) -> None:
        registry = self.parts.registry
        if message.is_deleted:
            self.journals.stored.pop(message.session, None)
            self._tell_deleted(message.session)
            return
        if message.session in registry.sessions:
            return
        described: dict[str, Any] = msgspec.json.decode(message.described)
        stored = StoredJournal(
            header=_decode_header(message.header),
            title=described.get("title"),
            updated_ms=from_iso(described["updatedAt"]),
            prompted=message.is_prompted or bool(described.get("viewers")),
            described=described,
        )
        self.journals.stored[message.session] = stored
        registry.announce_stored(stored)

    def _tell_deleted(self, session_id: str) -> None:
        ended = {"sessionId": session_id, "state": "gone", "deleted": True, "viewers": 0, "pending": 0}
        self.parts.announcements.stored_changed(ended)

    async def _read_labels(self) -> None:
        try:
            for session_id in await self.labels.read_unread():
                self._show_label(session_id)
        except DragomanError:
            self._node.fall_behind()

    def _show_label(self, session_id: str) -> None:
        registry = self.parts.registry
        session = registry.sessions.get(session_id)
        stored = self.journals.stored.get(session_id)
        if session is not None:
            session.set_label(self.labels.of(session_id))
        elif stored is not None:
            registry.announce_stored(stored)

    def _open_question(self, message: OpenQuestion, sender: uuid.UUID) -> None:
        opened = self.parts.code_target.open_question(message.hash, message.option)
        answer = QuestionOpened(message.agent, message.id, None)
        if opened is not None:
            described = msgspec.json.encode(opened.described)
            answer = QuestionOpened(message.agent, message.id, described, opened.is_offered)
        self._node.mailbox.send(sender, answer)

    async def _bring_login(self, message: BringLogin, sender: uuid.UUID) -> None:
        brought = await self.parts.code_target.bring_login(message.back)
        answer = LoginBrought(message.agent, message.id, None)
        if brought is not None:
            answer = LoginBrought(message.agent, message.id, brought.server, brought.is_taken)
        self._node.mailbox.send(sender, answer)

    def _deleted(self, session_id: str) -> None:
        self._tell_nodes(Announced(self._agent, session_id, is_deleted=True))

    def _labelled(self, session_id: str) -> None:
        self._tell_nodes(Labelled(self._agent, session_id))

    def _tell_nodes(self, message: NodeMessage) -> None:
        for node in self._node.others(self._agent):
            self._node.mailbox.send(node, message)

    async def close(self) -> None:
        """Have the last records committed."""
        with suppress(asyncio.CancelledError, DragomanError):
            await self.journals.close()


def _shown(stored: StoredJournal) -> tuple[str | None, bool, dict[str, Any]]:
    """Return the facts of a session that are news when they change; its time alone is none."""
    described = {key: value for key, value in (stored.described or {}).items() if key != "updatedAt"}
    return stored.title, stored.prompted, described
