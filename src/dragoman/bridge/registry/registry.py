"""Which sessions there are, and how they are announced to viewers.

Every lookup of a session by its id goes through `SessionRegistry.find`. With several nodes this is the place that asks
which node owns a session; a session of another node would be one whose journal is read from elsewhere
(`delivery.JournalSource`).
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from msgspec import Raw

from dragoman.bridge.delivery import Delivery, Journal, StoredJournal, Viewer
from dragoman.bridge.envelope import make_notification
from dragoman.bridge.registry.labels import SessionLabels
from dragoman.bridge.registry.lists import SessionLists
from dragoman.bridge.registry.session import ServedSession
from dragoman.bridge.registry.state import LifeEvent, SessionPhase
from dragoman.bridge.registry.subagents import Subagents
from dragoman.bridge.supervisor import AgentFailure, AgentSupervisor
from dragoman.errors import ErrorCode

MAX_EARLY_LINES = 1_000
MAX_EARLY_BYTES = 1024 * 1024
"""Updates before the answer to session/new are a list of commands or the like; more is a session that nobody opened."""

_MAX_DEPTH = 32
"""Of subagents of subagents, in which a parent is looked for."""

_log = logging.getLogger("dragoman.bridge")


class EarlyUpdates:
    """Updates of sessions that are not known yet: some agents send them before they have answered session/new.

    They are held until their session is known; the oldest are dropped.
    """

    def __init__(self) -> None:
        self._lines: deque[tuple[str, bytes]] = deque()
        self._bytes = 0

    def put(self, session_id: str, line: bytes) -> None:
        """Hold an update."""
        self._lines.append((session_id, line))
        self._bytes += len(line)
        while len(self._lines) > MAX_EARLY_LINES or self._bytes > MAX_EARLY_BYTES:
            self._bytes -= len(self._lines.popleft()[1])

    def take(self, session_id: str) -> list[bytes]:
        """Give the updates of a session."""
        taken = [line for held_for, line in self._lines if held_for == session_id]
        if taken:
            self._lines = deque(held for held in self._lines if held[0] != session_id)
            self._bytes -= sum(map(len, taken))
        return taken

    def clear(self) -> None:
        """Drop all."""
        self._lines.clear()
        self._bytes = 0


class Announcements:
    """Tells viewers that know our extensions the state of the agent and, once a tick, of sessions that changed."""

    def __init__(self, agent: str, viewers: Mapping[str, Viewer], supervisor: AgentSupervisor) -> None:
        self._agent = agent
        self._viewers = viewers
        self._supervisor = supervisor
        self._changed: dict[ServedSession, None] = {}

    def session_changed(self, session: ServedSession) -> None:
        """Announce a session at the end of this tick."""
        if not self._changed:
            asyncio.get_running_loop().call_soon(self._flush)
        self._changed[session] = None

    def stored_changed(self, described: dict[str, Any]) -> None:
        """Tell of a session that nobody has open."""
        self._announce(described["sessionId"], described)

    def session_opened(self, session: ServedSession, viewer: Viewer, *, after: int, reset: bool = False) -> None:
        """Tell a viewer the state of a session that it opens, before all that it gets of it."""
        if viewer.knows_extensions:
            described = {**session.describe(), "reset": True} if reset else session.describe()
            viewer.send(make_notification("_dragoman/session", described), viewer.subscription(session.id), after)
            if session.turns.queue and (subscription := session.subscriptions.get(viewer)) is not None:
                session.turns.queue.tell(session.id, {viewer: subscription})

    def session_deleted(self, session: ServedSession) -> None:
        """Tell that a session is no more."""
        self._changed.pop(session, None)
        end = {"state": "gone", "deleted": True, "viewers": 0}  # without `deleted` there would still be a history
        self._announce(session.id, {**session.describe(), **end})

    def agent_changed(self) -> None:
        """Tell the state of the agent."""
        self._tell_agent(self._supervisor.status.describe())

    def agent_notice(self, words: str) -> None:
        """Tell of a fault of the agent that goes no further; the log has it for other viewers."""
        _log.warning("%s: %s", self._agent, words)
        self._tell_agent({**self._supervisor.status.describe(), "reason": words})

    def welcome(self, viewer: Viewer) -> None:
        """Tell a new viewer the state of the agent."""
        if viewer.knows_extensions:
            viewer.send(_agent_news(self._supervisor.status.describe(), viewer))

    def _flush(self) -> None:
        changed, self._changed = self._changed, {}
        if any(viewer.knows_extensions for viewer in self._viewers.values()):
            for session in changed:
                self._announce(session.id, session.describe())

    def _announce(self, session_id: str, described: dict[str, Any]) -> None:
        data = make_notification("_dragoman/session", described)
        for viewer in self._viewers.values():
            if viewer.knows_extensions and viewer.sees(session_id):
                viewer.outbox.announce(session_id, data)

    def _tell_agent(self, described: dict[str, Any]) -> None:
        for viewer in [viewer for viewer in self._viewers.values() if viewer.knows_extensions]:
            viewer.send(_agent_news(described, viewer))


def _agent_news(described: dict[str, Any], viewer: Viewer) -> bytes:
    """Tell the state of the agent; its words may be about any session, and are not for a viewer of one."""
    told = {"state": described["state"]} if viewer.is_scoped else described
    return make_notification("_dragoman/agent", told)


class SessionQuestions(Protocol):
    """The router's questions, as the registry needs them."""

    def forget_session(self, session: ServedSession) -> None:
        """Settle all questions of a session that is gone."""
        ...

    def viewer_left(self, viewer: Viewer, session: ServedSession | None = None) -> None:
        """Ask others the questions of a viewer that left a session, or all sessions."""
        ...

    def viewer_joined(self, session: ServedSession, viewer: Viewer) -> None:
        """Ask a viewer the open questions of a session."""
        ...


class SessionRegistry:
    """The sessions of one agent that are open in this bridge."""

    def __init__(
        self, delivery: Delivery, labels: SessionLabels, announcements: Announcements, questions: SessionQuestions
    ) -> None:
        self.sessions: dict[str, ServedSession] = {}
        self.labels = labels
        self.early = EarlyUpdates()
        self.on_added: Callable[[ServedSession], None] | None = None
        """Called with each session that is opened here."""
        self.lists = SessionLists(self.sessions, delivery.journals, labels)
        self.subagents = Subagents(self.sessions, delivery, questions, self.add, self.change_label)
        self._delivery = delivery
        self._journals = delivery.journals
        self._announcements = announcements
        self._questions = questions

    def find(self, session_id: str | None) -> ServedSession | None:
        """Give an open session by its id."""
        return None if session_id is None else self.sessions.get(session_id)

    def session_of_prompt(self, agent_id: bytes) -> ServedSession | None:
        """Give the session in which the agent, of version 2, has inserted a prompt of version 1."""
        if not agent_id:
            return None
        return next((each for each in self.sessions.values() if each.turns.is_inserted(agent_id)), None)

    def knows(self, session_id: str) -> bool:
        """Tell whether a session is open here, or has a journal here."""
        return session_id in self.sessions or session_id in self._journals.stored

    def is_part_of(self, session_id: str, of: str) -> bool:
        """Tell whether a session is a subagent of another one, at any depth."""
        parent = self.labels.of(session_id).parent
        for _ in range(_MAX_DEPTH):
            if parent is None or parent == of:
                return parent == of
            parent = self.labels.of(parent).parent
        return False

    def add(self, session_id: str, params: dict[str, Raw], journal: Journal, phase: SessionPhase) -> ServedSession:
        """Make a session known, with the updates that came before it was."""
        session = ServedSession(session_id, params, journal, phase, self._changed)
        journal.reader = session
        self.sessions[session_id] = session
        if self.on_added is not None:
            self.on_added(session)
        session.info.label = self.labels.of(session_id)
        for line in self.early.take(session_id):
            session.take_notification(line)
        session.changed()
        return session

    def settle(self, session: ServedSession) -> None:
        """Let the journal of a session that was opened take the place of an older one."""
        self._journals.settle(session.journal)

    def drop(self, session: ServedSession) -> None:
        """Forget a session that could not be opened, or was deleted."""
        self.sessions.pop(session.id, None)
        session.life.delete()
        self._questions.forget_session(session)
        self._delivery.forget(session)
        for viewer in list(session.subscriptions):
            self.unsubscribe(viewer, session)
        for waiting in session.take_waiting():
            problem = f"session {session.id} could not be opened, or was deleted; start a new session"
            waiting.request.refuse(ErrorCode.RESOURCE_NOT_FOUND, problem)
        session.turns.queue.clear()
        session.drop_replay()
        session.journal.delete()
        if session.id not in self._journals.stored:
            self._announcements.session_deleted(session)

    def release(self, session: ServedSession, problem: str) -> None:
        """Forget a session that another node may own now; its viewers stay subscribed, for the caller to move."""
        self.sessions.pop(session.id, None)
        session.life.delete()
        self._questions.forget_session(session)
        self._delivery.forget(session)
        for waiting in session.take_waiting():
            waiting.request.refuse(ErrorCode.INTERNAL_ERROR, problem)
        session.turns.withdraw()
        session.drop_replay()
        session.journal.drop()

    def delete(self, session_id: str) -> None:
        """Forget a session for good, with its journal and its label."""
        self.subagents.forget(session_id)
        for child in self.labels.children_of(session_id):
            self.delete(child)
        self._journals.delete(session_id)
        self._delivery.spawn(self._forget_label(session_id))
        session = self.sessions.get(session_id)
        if session is not None:
            self.drop(session)

    async def change_label(self, session_id: str, **changes: str | bool | None) -> bool:
        """Change the label of a session, and tell viewers; False if it cannot be written."""
        try:
            label = await self.labels.change(session_id, **changes)
        except OSError as error:
            _log.warning("the label of session %s is not written: %s", session_id, error.strerror)
            return False
        session = self.sessions.get(session_id)
        if session is not None:
            session.set_label(label)
        elif (stored := self._journals.stored.get(session_id)) is not None:
            self.announce_stored(stored)
        return True

    def unsubscribe(self, viewer: Viewer, session: ServedSession) -> None:
        """Take a viewer off a session; others are asked its questions there."""
        session.unsubscribe(viewer)
        viewer.outbox.unsubscribe(session.id)
        self._questions.viewer_left(viewer, session)
        for child in self.subagents.of(session):
            if viewer in child.subscriptions:
                self.unsubscribe(viewer, child)

    def viewer_left(self, viewer: Viewer) -> None:
        """Take a viewer off all sessions."""
        for session_id in viewer.outbox.subscriptions:
            session = self.sessions.get(session_id)
            if session is not None:
                session.unsubscribe(viewer)

    def agent_ended(self, failure: AgentFailure) -> None:
        """Note that the agent has lost all sessions."""
        self.early.clear()
        for session in self.sessions.values():
            session.fail_turns(failure.data())
            if session.life.phase is SessionPhase.LIVE:
                session.life.take(LifeEvent.AGENT_ENDED)
                session.changed()
                self._delivery.sync_soon(session.journal)
            elif session.life.phase is SessionPhase.WAKING:  # it was live until a request came for the next life
                self._delivery.sync_soon(session.journal)

    def recover_journals(self) -> None:
        """Write journals that wait for space on the disk."""
        for session in self.sessions.values():
            if session.journal.is_waiting:
                session.journal.recover()

    def is_idle(self) -> bool:
        """Tell whether no session has a viewer, a turn or a request that waits."""
        sessions = self.sessions.values()
        return not any(session.subscriptions or session.info.turns or session.waiting for session in sessions)

    def is_agent_needed(self) -> bool:
        """Tell whether the agent has any session in memory."""
        return any(session.life.is_at_agent for session in self.sessions.values())

    def is_agent_asked(self) -> bool:
        """Tell whether the agent has any session in memory, or is to have one."""
        return any(session.life.is_asked_for or session.waiting for session in self.sessions.values())

    def announce_stored(self, stored: StoredJournal) -> None:
        """Tell viewers of a session that is not open here."""
        self._announcements.stored_changed(self.lists.describe_stored(stored))

    def _changed(self, session: ServedSession) -> None:
        """Have a session written, shown and announced; a session that is no more is not."""
        if self.sessions.get(session.id) is session:
            for child in self.subagents.of(session):
                session.journal.follow_on(child.journal)  # the end of a turn is the end of its subagents' words too
            session.journal.note_change()
            self._delivery.touch(session)  # first: announcements tell the time of the last write
            self._announcements.session_changed(session)
            self.subagents.parent_changed(session)

    async def _forget_label(self, session_id: str) -> None:
        try:
            await self.labels.forget(session_id)
        except OSError as error:
            _log.warning("the label of session %s is not removed: %s", session_id, error.strerror)
