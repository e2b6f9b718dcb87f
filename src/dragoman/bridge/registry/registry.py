"""Which sessions there are, and how they are announced to viewers.

Every lookup of a session by its id goes through `SessionRegistry.find`. With several nodes this is the place that asks
which node owns a session; a session of another node would be one whose journal is read from elsewhere
(`delivery.JournalSource`).
"""

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Raw

from dragoman.bridge.delivery import Delivery, Journal, StoredJournal, Viewer
from dragoman.bridge.envelope import make_notification
from dragoman.bridge.registry.session import ServedSession, to_iso
from dragoman.bridge.registry.state import LifeEvent, SessionPhase
from dragoman.bridge.supervisor import AgentSupervisor
from dragoman.errors import ErrorCode

MAX_EARLY_LINES = 1_000
MAX_EARLY_BYTES = 1024 * 1024
"""Updates before the answer to session/new are a list of commands or the like; more is a session that nobody opened."""

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

    def session_opened(self, session: ServedSession, viewer: Viewer, *, after: int, reset: bool = False) -> None:
        """Tell a viewer the state of a session that it opens, before all that it gets of it."""
        if viewer.knows_extensions:
            described = {**session.describe(), "reset": True} if reset else session.describe()
            viewer.send(make_notification("_dragoman/session", described), viewer.subscription(session.id), after)

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
            viewer.send(make_notification("_dragoman/agent", self._supervisor.status.describe()))

    def _flush(self) -> None:
        changed, self._changed = self._changed, {}
        if any(viewer.knows_extensions for viewer in self._viewers.values()):
            for session in changed:
                self._announce(session.id, session.describe())

    def _announce(self, session_id: str, described: dict[str, Any]) -> None:
        data = make_notification("_dragoman/session", described)
        for viewer in self._viewers.values():
            if viewer.knows_extensions:
                viewer.outbox.announce(session_id, data)

    def _tell_agent(self, described: dict[str, Any]) -> None:
        data = make_notification("_dragoman/agent", described)
        for viewer in [viewer for viewer in self._viewers.values() if viewer.knows_extensions]:
            viewer.send(data)


class SessionQuestions(Protocol):
    """The router's questions, as the registry needs them."""

    def forget_session(self, session: ServedSession) -> None:
        """Settle all questions of a session that is gone."""
        ...

    def viewer_left(self, viewer: Viewer, session: ServedSession | None = None) -> None:
        """Ask others the questions of a viewer that left a session, or all sessions."""
        ...


class SessionRegistry:
    """The sessions of one agent that are open in this bridge."""

    def __init__(self, delivery: Delivery, announcements: Announcements, questions: SessionQuestions) -> None:
        self.sessions: dict[str, ServedSession] = {}
        self.early = EarlyUpdates()
        self._delivery = delivery
        self._journals = delivery.journals
        self._announcements = announcements
        self._questions = questions

    def find(self, session_id: str | None) -> ServedSession | None:
        """Give an open session by its id."""
        return None if session_id is None else self.sessions.get(session_id)

    def knows(self, session_id: str) -> bool:
        """Tell whether a session is open here, or has a journal here."""
        return session_id in self.sessions or session_id in self._journals.stored

    def add(self, session_id: str, params: dict[str, Raw], journal: Journal, phase: SessionPhase) -> ServedSession:
        """Make a session known, with the updates that came before it was."""
        session = ServedSession(session_id, params, journal, phase, self._changed)
        journal.on_failure = session.changed
        self.sessions[session_id] = session
        for line in self.early.take(session_id):
            session.take(line)
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
        session.drop_replay()
        session.journal.delete()
        if session.id not in self._journals.stored:
            self._announcements.session_deleted(session)

    def delete(self, session_id: str) -> None:
        """Forget a session for good, with its journal."""
        self._journals.delete(session_id)
        session = self.sessions.get(session_id)
        if session is not None:
            self.drop(session)

    def unsubscribe(self, viewer: Viewer, session: ServedSession) -> None:
        """Take a viewer off a session; others are asked its questions there."""
        session.unsubscribe(viewer)
        viewer.outbox.unsubscribe(session.id)
        self._questions.viewer_left(viewer, session)

    def viewer_left(self, viewer: Viewer) -> None:
        """Take a viewer off all sessions."""
        for session_id in viewer.outbox.subscriptions:
            session = self.sessions.get(session_id)
            if session is not None:
                session.unsubscribe(viewer)

    def agent_ended(self) -> None:
        """Note that the agent has lost all sessions."""
        self.early.clear()
        for session in self.sessions.values():
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

    def describe(self) -> list[dict[str, Any]]:
        """Describe the sessions that were prompted or have viewers, the latest first."""
        shown = [session for session in self.sessions.values() if session.info.prompted or session.subscriptions]
        found = [session.describe() for session in shown]
        found += [_describe_stored(stored) for stored in self._journals.stored.values() if stored.prompted]
        return sorted(found, key=lambda session: session["updatedAt"], reverse=True)

    def _changed(self, session: ServedSession) -> None:
        """Have a session written, shown and announced; a session that is no more is not."""
        if self.sessions.get(session.id) is session:
            self._delivery.touch(session)  # first: announcements tell the time of the last write
            self._announcements.session_changed(session)


def _describe_stored(stored: StoredJournal) -> dict[str, Any]:
    return {
        "sessionId": stored.header.id,
        "cwd": stored.header.cwd,
        "title": stored.title,
        "state": "asleep",
        "pending": 0,
        "viewers": 0,
        "updatedAt": to_iso(stored.updated_ms),
    }
