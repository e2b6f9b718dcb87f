"""Requests of viewers about sessions that are open: prompts, and sessions listed, closed and deleted."""

from msgspec import UNSET, Raw

from dragoman.bridge.delivery import Delivery, ViewerRequest
from dragoman.bridge.envelope import fields_of, parse_list, string_of
from dragoman.bridge.registry import LifeEvent, ServedSession, SessionRegistry, SessionRestorer
from dragoman.bridge.router.questions import Questions
from dragoman.bridge.supervisor import AgentFailure, AgentSupervisor
from dragoman.errors import ErrorCode, RpcError
from dragoman.store import is_same_directory
from dragoman.wire import Message, error_object

_LISTED = ("sessionId", "cwd", "title", "updatedAt")
"""The fields of `session/list`."""


class SessionRequests:
    """Serves such requests."""

    def __init__(
        self,
        *,
        delivery: Delivery,
        supervisor: AgentSupervisor,
        registry: SessionRegistry,
        restorer: SessionRestorer,
        questions: Questions,
    ) -> None:
        self._delivery = delivery
        self._supervisor = supervisor
        self._registry = registry
        self._restorer = restorer
        self._questions = questions

    def prompt(self, request: ViewerRequest) -> None:
        """Show a prompt to all viewers of its session, pass it to the agent, and journal its end."""
        session = self._registry.find(request.session_id)
        if session is None:
            self._restorer.forward(request)
            return
        viewer = request.viewer
        if viewer not in session.subscriptions:
            session.subscribe(viewer, session.journal.next_end)
            self._questions.viewer_joined(session, viewer)
        if not session.journal.recover():
            problem = f"the conversation cannot be written down: there is no space for {session.journal.path}"
            request.refuse(ErrorCode.INTERNAL_ERROR, f"{problem}; free some space on that disk, then send this again")
            return
        if not session.info.turns:
            viewer.outbox.note_step(session.id)
        self._questions.note_activity(viewer, session.id)
        self._restorer.when_live(request, session, lambda: self._begin_turn(request, session))

    def cancel_prompts(self, session: ServedSession) -> None:
        """Answer prompts that the agent has not seen yet."""
        prompts = [waiting for waiting in session.waiting if waiting.request.method == "session/prompt"]
        session.waiting = [waiting for waiting in session.waiting if waiting not in prompts]
        for waiting in prompts:
            waiting.request.answer({"stopReason": "cancelled"})
        if prompts:
            session.changed()

    def list(self, request: ViewerRequest) -> None:
        """List sessions: the agent's own list, or the sessions that have journals."""
        if self._supervisor.support.list:
            self._restorer.forward(request)
            return
        cwd = string_of(fields_of(request.params).get("cwd"))
        listed = [
            {key: session[key] for key in _LISTED}
            for session in self._registry.describe()
            if cwd is None or is_same_directory(session["cwd"], cwd)
        ]
        request.answer({"sessions": listed})

    def describe(self, request: ViewerRequest) -> None:
        """Answer `_dragoman/sessions`."""
        request.answer({"sessions": self._registry.describe()})

    def delete(self, request: ViewerRequest) -> None:
        """Have the agent delete a session, and then delete its journal."""
        session_id = request.session_id or ""

        def answered(message: Message, line: bytes) -> None:
            request.pass_on(line)
            if message.error is UNSET:
                self._registry.delete(session_id)

        self._restorer.forward(request, answered=answered)

    def close(self, request: ViewerRequest) -> None:
        """Have the agent close a session, until a viewer opens it again."""
        session = self._registry.find(request.session_id)
        request.viewer.outbox.note_step(request.session_id or "")

        def answered(message: Message, line: bytes) -> None:
            request.pass_on(line)
            if message.error is UNSET and session is not None:
                session.life.take(LifeEvent.CLOSE)
                self._questions.forget_session(session)
                session.changed()

        self._restorer.forward(request, answered=answered)

    def _begin_turn(self, request: ViewerRequest, session: ServedSession) -> None:
        session.begin_turn(request.viewer, parse_list(fields_of(request.params).get("prompt")))

        def answered(message: Message, line: bytes) -> None:
            self._end_turn(session, message)
            request.pass_on(line)

        def failed(failure: AgentFailure) -> None:
            session.end_turn(None, error_object(RpcError(ErrorCode.INTERNAL_ERROR, failure.data())))
            request.fail(failure.data())

        self._restorer.forward(request, session=session, answered=answered, failed=failed)

    def _end_turn(self, session: ServedSession, message: Message) -> None:
        if message.error is not UNSET:
            session.end_turn(None, Raw(bytes(message.error)))
        else:
            session.end_turn(string_of(fields_of(message.result).get("stopReason")))
        self._delivery.sync_soon(session.journal)
