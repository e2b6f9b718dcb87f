"""Sessions that the agent does not have in memory: it is asked to take them up again, and requests wait meanwhile."""

from collections.abc import Callable
from typing import Any

from msgspec import UNSET, Raw

from dragoman.bridge.delivery import Viewer, ViewerRequest
from dragoman.bridge.envelope import fields_of, is_unrouted, make_request, with_id
from dragoman.bridge.registry.registry import SessionRegistry
from dragoman.bridge.registry.session import ServedSession
from dragoman.bridge.registry.state import LifeEvent, SessionPhase
from dragoman.bridge.registry.turns import WaitingRequest
from dragoman.bridge.supervisor import AgentCall, AgentFailure, AgentSupervisor, SilenceTimer, silence_failure
from dragoman.bridge.translation import setup_for
from dragoman.errors import ErrorCode
from dragoman.wire import Message
from dragoman.wire.message import ErrorObject, parse_error


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
        sent: Callable[[bytes], None] | None = None,
    ) -> None:
        """Pass a request to the agent, and its answer back, once the agent is there and has the session.

        `sent` is told the id that the request has at the agent.
        """

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
            if self._is_outdated(request):
                return
            call = AgentCall(request.method, answered or pass_back, failed or fail, origin=request)
            call.timer = None if make_timer is None else make_timer(call)
            agent_id = self._supervisor.call(call, lambda id_: with_id(request.line, id_))
            request.note_sent(agent_id)
            if sent is not None:
                sent(agent_id)

        if session is None:
            self._supervisor.when_ready(send, fail)
        else:
            self.when_live(request, session, send)

    def _is_outdated(self, request: ViewerRequest) -> bool:
        """Refuse a request that was written for an agent of another version, which it was when the request came."""
        if request.agent_version == self._supervisor.version:
            return False
        problem = (
            f"the agent was started again and speaks version {self._supervisor.version} of ACP now; send this again"
        )
        request.fail(AgentFailure(problem).data())
        return True

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
        """Give sessions with viewers back to an agent that was started; a closed one stays closed."""
        for session in self._registry.sessions.values():
            is_away = session.life.phase is SessionPhase.ASLEEP
            if is_away and session.subscriptions and session.info.label.parent is None:
                self.wake(session)

    def wake_after_login(self) -> None:
        """Give sessions back for which somebody had to log in."""
        for session in self._registry.sessions.values():
            if session.life.login is not None and session.subscriptions:
                self.wake(session)

    def withdraw(self, viewer: Viewer, id_: bytes) -> None:
        """Answer a request that was cancelled before the agent saw it."""
        for session in self._registry.sessions.values():
            if session.turns.withdraw(viewer, id_):
                return
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
        session.journal.set_version(self._supervisor.version)
        session.keep_setup(result)
        for waiting in session.take_waiting():
            waiting.go_on()
        session.changed()

    def refused(self, session: ServedSession, error: ErrorObject) -> None:
        """Note that the agent did not take a session up again: for good, for now, or until somebody has logged in."""
        said = error.words
        if error.code == ErrorCode.REQUEST_CANCELLED:
            self.failed(session, AgentFailure(f"opening session {session.id} was cancelled; try again"))
        elif error.code == ErrorCode.INTERNAL_ERROR:  # such as a disk that is full, or a database that is away
            problem = f"the agent could not take session {session.id} up again: {said}; try again, or start a new one"
            self.failed(session, AgentFailure(problem))
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
        session.journal.set_version(self._supervisor.version)
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
        opened = setup_for(self._supervisor.version, session.params, session.info.params_version)
        params: dict[str, Any] = {"cwd": session.cwd, "mcpServers": [], **opened, "sessionId": session.id}
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
