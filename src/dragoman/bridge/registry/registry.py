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

from msgspec import UNSET, Raw

from dragoman.bridge.delivery import Delivery, Journal, StoredJournal, Viewer, ViewerRequest
from dragoman.bridge.envelope import fields_of, is_unrouted, make_notification, make_request, with_id
from dragoman.bridge.registry.session import ServedSession, WaitingRequest, to_iso
from dragoman.bridge.registry.state import LifeEvent, SessionPhase
from dragoman.bridge.supervisor import AgentCall, AgentFailure, AgentSupervisor, SilenceTimer, silence_failure
from dragoman.errors import ErrorCode
from dragoman.wire import Message
from dragoman.wire.message import ErrorObject, parse_error

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


class SessionRestorer:
    """Gives sessions back to the agent, and passes requests to it once it has them.

    After a crash, a pause or a close the agent does not have a session in memory. It is asked to take it up again, by
    session/resume where it can, else by session/load, whose replay is dropped because the journal has it. Requests for
    the session wait meanwhile.
    """

    def __init__(self, registry: SessionRegistry, supervisor: AgentSupervisor, silence_s: float) -> None:
        self._registry = registry
        self._supervisor = supervisor
        self._silence_s = silence_s

    def forward(
        self,
        request: ViewerRequest,
        *,
        session: ServedSession | None = None,
        answered: Callable[[Message, bytes], None] | None = None,
        failed: Callable[[AgentFailure], None] | None = None,
        make_timer: Callable[[AgentCall], SilenceTimer] | None = None,
    ) -> None:
        """Pass a request to the agent, and its answer back, once the agent is there and has the session."""

        def pass_back(message: Message, line: bytes) -> None:
            if message.result is not UNSET and session is not None:
                session.follow_answer(request.method, request.params, message.result)
            request.pass_on(line)

        def fail(failure: AgentFailure) -> None:
            request.fail(failure.data())

        def send() -> None:
            if self._supervisor.is_clogged:
                (failed or fail)(AgentFailure("the agent does not read what it is sent; try again later"))
                return
            call = AgentCall(request.method, answered or pass_back, failed or fail, origin=request)
            call.timer = None if make_timer is None else make_timer(call)
            request.note_sent(self._supervisor.call(call, lambda id_: with_id(request.line, id_)))

        if session is None:
            self._supervisor.when_ready(send, fail)
        else:
            self.when_live(request, session, send)

    def when_live(self, request: ViewerRequest, session: ServedSession, go_on: Callable[[], None]) -> None:
        """Call `go_on` now if the agent has the session, else once it has it again."""
        life = session.life
        if life.loss is not None:
            request.refuse(ErrorCode.RESOURCE_NOT_FOUND, life.loss)
        elif life.phase is SessionPhase.CLOSED and not request.viewer.knows_extensions:
            problem = f"session {session.id} was closed; open it again with session/load or session/resume"
            request.refuse(ErrorCode.RESOURCE_NOT_FOUND, problem)
        elif life.is_usable and not session.waiting and self._supervisor.is_ready:
            go_on()
        else:
            session.waiting.append(WaitingRequest(request, go_on))
            session.changed()
            self.wake(session)

    def wake(self, session: ServedSession) -> None:
        """Give a session back to the agent, unless that is under way or useless."""
        if session.life.can(LifeEvent.WAKE):
            session.life.take(LifeEvent.WAKE)
            self._supervisor.when_ready(lambda: self._ask(session), lambda failure: self._fail(session, failure))

    def wake_watched(self) -> None:
        """Give sessions with viewers back to an agent that was started."""
        for session in self._registry.sessions.values():
            if session.life.phase in (SessionPhase.ASLEEP, SessionPhase.CLOSED) and session.subscriptions:
                self.wake(session)

    def wake_after_login(self) -> None:
        """Give sessions back for which somebody had to log in."""
        for session in self._registry.sessions.values():
            if session.life.login is not None and session.subscriptions:
                self.wake(session)

    def withdraw(self, viewer: Viewer, id_: bytes) -> None:
        """Answer a request that was cancelled before the agent saw it."""
        for session in self._registry.sessions.values():
            for waiting in session.waiting:
                if waiting.request.viewer is viewer and waiting.request.id == id_:
                    session.waiting.remove(waiting)
                    problem = "it was cancelled before the agent had the session again"
                    waiting.request.refuse(ErrorCode.REQUEST_CANCELLED, problem)
                    session.changed()
                    return

    def restored(self, session: ServedSession, result: dict[str, Raw]) -> None:
        """Note that the agent has a session again, and pass it the requests that waited."""
        session.life.take(LifeEvent.RESTORED)
        session.keep_setup(result)
        for waiting in session.take_waiting():
            waiting.go_on()
        session.changed()

    def refused(self, session: ServedSession, error: ErrorObject) -> None:
        """Note that the agent did not take a session up again: for good, or until somebody has logged in."""
        said = error.words
        if error.code == ErrorCode.REQUEST_CANCELLED:
            self.failed(session, AgentFailure(f"opening session {session.id} was cancelled; try again"))
        elif error.code == ErrorCode.AUTH_REQUIRED:
            session.life.take(LifeEvent.FAILED)
            session.life.login = login = (
                f"the agent wants somebody to log in before it takes session {session.id} up again ({said}); "
                "send authenticate, then try again"
            )
            for waiting in session.take_waiting():
                waiting.request.refuse(ErrorCode.AUTH_REQUIRED, login)
            session.changed()
        else:
            self._give_up(session, f"the agent could not take it up again: {said}")

    def failed(self, session: ServedSession, failure: AgentFailure) -> None:
        """Refuse the requests that waited; the session may still come back."""
        session.life.take(LifeEvent.FAILED)
        session.record_updates()
        for waiting in session.take_waiting():
            waiting.request.fail(failure.data())
        session.changed()

    def _ask(self, session: ServedSession) -> None:
        if not _is_awaited(session):
            return
        support = self._supervisor.support
        if not support.can_reopen:
            self._give_up(session, "the agent that had it has ended, and it can neither load nor resume sessions")
            return
        method = "session/resume" if support.resume else "session/load"
        session.life.take(LifeEvent.ASK)
        if support.resume:
            session.record_updates()
        else:
            session.discard_updates()

        def answered(message: Message, line: bytes) -> None:
            del line
            if not _is_awaited(session):
                return
            if is_unrouted(message) and support.resume and self._supervisor.initialize.forget_resume():
                self._ask(session)
            else:
                self._answered(session, message)

        call = AgentCall(method, answered, lambda failure: self._fail(session, failure))
        call.timer = SilenceTimer(self._silence_s, lambda: session.heard, lambda: self._fall_silent(session, call))
        params: dict[str, Any] = {"cwd": session.cwd, "mcpServers": [], **session.params, "sessionId": session.id}
        self._supervisor.call(call, lambda id_: make_request(id_, method, params))

    def _answered(self, session: ServedSession, message: Message) -> None:
        session.record_updates()
        if message.error is not UNSET:
            self.refused(session, parse_error(message.error))
        else:
            self.restored(session, fields_of(message.result))

    def _fail(self, session: ServedSession, failure: AgentFailure) -> None:
        if _is_awaited(session):
            self.failed(session, failure)

    def _give_up(self, session: ServedSession, reason: str) -> None:
        loss = "can only be read" if session.info.prompted else "was never prompted, and is lost"
        words = f"session {session.id} {loss}: {reason}; start a new session"
        session.life.take(LifeEvent.REFUSE, words)
        session.record_updates()
        for waiting in session.take_waiting():
            waiting.request.refuse(ErrorCode.RESOURCE_NOT_FOUND, words)
        session.changed()

    def _fall_silent(self, session: ServedSession, call: AgentCall) -> None:
        """Refuse the requests that waited; the agent may still answer, and is not asked to replay twice."""
        call.is_awaited = False
        if not _is_awaited(session):
            return
        session.life.take(LifeEvent.SILENCE)
        failure = silence_failure(call.method, session.id, self._silence_s)
        for waiting in session.take_waiting():
            waiting.request.fail(failure.data())
        session.changed()


def _is_awaited(session: ServedSession) -> bool:
    """Tell whether the agent is still to give an answer about a session: it may be deleted or live meanwhile."""
    return session.life.phase in (SessionPhase.WAKING, SessionPhase.REOPENING)
