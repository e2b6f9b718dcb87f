"""Sessions that the agent does not have in memory, after a crash, a pause or a close: it is asked to have them again.

By `session/resume` where it can, else by `session/load`, whose replay is dropped because the journal has it.
"""

from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw

from dragoman.bridge.envelope import fields_of, is_unrouted, make_request
from dragoman.bridge.hub.session import Session
from dragoman.bridge.supervisor import AgentCall, AgentFailure, SilenceTimer, silence_failure
from dragoman.errors import ErrorCode
from dragoman.wire import Message
from dragoman.wire.message import ErrorObject, parse_error

if TYPE_CHECKING:
    from dragoman.bridge.hub.hub import Hub
    from dragoman.bridge.hub.viewer import Viewer


class Waker:
    """Brings sessions back, and then does what waited for them."""

    def __init__(self, hub: "Hub") -> None:
        self._hub = hub

    def wake(self, session: Session) -> None:
        """Bring a session back unless that is under way."""
        if session.waking or session.gone is not None:
            return
        session.waking = True
        session.shelved = False
        self._hub.supervisor.when_ready(lambda: self._ask(session), lambda failure: self.fail(session, failure))

    def logged_in(self) -> None:
        """Bring those sessions back for which somebody had to log in."""
        for session in self._hub.sessions.values():
            if session.wants_login is not None and session.attachments:
                self.wake(session)

    def withdraw(self, viewer: "Viewer", id_: bytes) -> None:
        """Answer a request that was cancelled before the agent saw it."""
        for session in self._hub.sessions.values():
            for parked in session.parked:
                if parked.request.viewer is viewer and parked.request.id == id_:
                    session.parked.remove(parked)
                    problem = "it was cancelled before the agent had the session again"
                    parked.request.refuse(ErrorCode.REQUEST_CANCELLED, problem)
                    self._hub.changed(session)
                    return

    def _ask(self, session: Session) -> None:
        offers = self._hub.supervisor.support
        if not offers.can_reopen:
            self._give_up(session, "the agent that had it has ended, and it can neither load nor resume sessions")
            return
        method = "session/resume" if offers.resume else "session/load"
        session.muted = not offers.resume
        session.live = True  # what it says from now on counts

        def answered(message: Message, line: bytes) -> None:
            del line
            if is_unrouted(message) and method == "session/resume" and self._hub.supervisor.initialize.forget_resume():
                self._ask(session)
            else:
                self._answered(session, message)

        call = AgentCall(method, answered, lambda failure: self.fail(session, failure))
        silence_s = self._hub.settings.open_timeout_s
        call.timer = SilenceTimer(silence_s, lambda: session.heard, lambda: self._fall_silent(session, call))
        params: dict[str, Any] = {"cwd": session.cwd, "mcpServers": [], **session.params, "sessionId": session.id}
        self._hub.supervisor.call(call, lambda id_: make_request(id_, method, params))

    def _answered(self, session: Session, message: Message) -> None:
        session.muted = False
        if message.error is not UNSET:
            self.refused(session, parse_error(message.error))
        else:
            self.came_back(session, fields_of(message.result))

    def came_back(self, session: Session, setup: dict[str, Raw]) -> None:
        """Do what waited for a session that the agent has again."""
        session.live = True
        session.waking = session.shelved = session.put_away = False
        session.wants_login = None
        session.keep_setup(setup)
        parked, session.parked = session.parked, []
        for waiting in parked:
            waiting.go_on()
        self._hub.changed(session)

    def refused(self, session: Session, error: ErrorObject) -> None:
        """Take note that the agent did not take a session up again: for good, or until somebody has logged in."""
        said = error.words
        if error.code == ErrorCode.REQUEST_CANCELLED:
            self.fail(session, AgentFailure(f"opening session {session.id} was cancelled; try again"))
            return
        if error.code != ErrorCode.AUTH_REQUIRED:
            self._give_up(session, f"the agent could not take it up again: {said}")
            return
        session.live = session.waking = False
        session.wants_login = (
            f"the agent wants somebody to log in before it takes session {session.id} up again ({said}); "
            "send authenticate, then try again"
        )
        parked, session.parked = session.parked, []
        for waiting in parked:
            waiting.request.refuse(ErrorCode.AUTH_REQUIRED, session.wants_login)
        self._hub.changed(session)

    def _give_up(self, session: Session, reason: str) -> None:
        session.live = session.waking = session.muted = False
        loss = "can only be read" if session.prompted else "was never prompted, and is lost"
        session.gone = f"session {session.id} {loss}: {reason}; start a new session"
        parked, session.parked = session.parked, []
        for waiting in parked:
            waiting.request.refuse(ErrorCode.RESOURCE_NOT_FOUND, session.gone)
        self._hub.changed(session)

    def fail(self, session: Session, failure: AgentFailure) -> None:
        """Refuse what waited; the session may still come back."""
        session.live = session.waking = session.muted = False
        self._refuse(session, failure)

    def _refuse(self, session: Session, failure: AgentFailure) -> None:
        parked, session.parked = session.parked, []
        for waiting in parked:
            waiting.request.fail(failure)
        self._hub.changed(session)

    def _fall_silent(self, session: Session, call: AgentCall) -> None:
        """Refuse what waited; the agent may still answer, and is not asked twice: its replay would be, too."""
        call.is_awaited = session.live = False
        self._refuse(session, silence_failure(call.method, session.id, self._hub.settings.open_timeout_s))
