"""Messages of viewers and of the agent: each is checked, answered here, or passed to the other side.

A viewer's request goes to the agent under an id of the bridge, and the answer back under the viewer's own. An update of
the agent goes into its session's journal, a request to the viewers that can answer it.
"""

import asyncio
from collections.abc import Callable, Sequence

from msgspec import UNSET, Raw

from dragoman.bridge.delivery import Delivery, Viewer, ViewerRequest
from dragoman.bridge.envelope import (
    ELICIT,
    UPDATE,
    OrdinaryRun,
    fields_of,
    make_error,
    make_notification,
    ordinary_runs,
    parse_list,
    rename_request,
    session_of,
    session_of_update,
    string_of,
)
from dragoman.bridge.registry import (
    Announcements,
    LifeEvent,
    OpeningRequests,
    ServedSession,
    SessionRegistry,
    SessionRestorer,
)
from dragoman.bridge.router.handshake import ViewerHandshakes
from dragoman.bridge.router.inspection import WireInspector
from dragoman.bridge.router.questions import AgentRequest, Ownership, Questions
from dragoman.bridge.settings import AgentSpec, Settings
from dragoman.bridge.supervisor import AgentFailure, AgentSupervisor, WireLog
from dragoman.errors import ErrorCode, RpcError
from dragoman.store import is_same_directory
from dragoman.wire import Malformed, Message, Oversized, error_object, parse
from dragoman.wire.message import NULL_ID, is_sound, replace_lone_surrogates

_FOR_READERS = frozenset({"session/list", "session/load", "session/resume", "_dragoman/sessions"})

_REOPENING = frozenset({"session/load", "session/resume"})


class Router:
    """Takes the messages of the viewers of one agent, and finds the part that serves each."""

    def __init__(
        self,
        spec: AgentSpec,
        settings: Settings,
        *,
        wire_log: WireLog,
        delivery: Delivery,
        supervisor: AgentSupervisor,
        registry: SessionRegistry,
        restorer: SessionRestorer,
        announcements: Announcements,
        questions: Questions,
    ) -> None:
        self.questions = questions
        self.inspector = WireInspector(wire_log)
        self._limits = settings.viewer_limits
        self._supervisor = supervisor
        self._registry = registry
        self._restorer = restorer
        self._handshakes = ViewerHandshakes(
            spec,
            settings,
            supervisor=supervisor,
            registry=registry,
            questions=questions,
            announcements=announcements,
        )
        self._session_requests = session_requests = SessionRequests(
            delivery=delivery, supervisor=supervisor, registry=registry, restorer=restorer, questions=questions
        )
        opening = OpeningRequests(
            settings.agent_limits,
            journals=delivery.journals,
            spawn=delivery.spawn,
            supervisor=supervisor,
            registry=registry,
            restorer=restorer,
            announcements=announcements,
            questions=questions,
        )
        self._handlers: dict[str, Callable[[ViewerRequest], None]] = {
            "session/new": opening.new,
            "session/fork": opening.new,
            "session/load": opening.load,
            "session/resume": opening.load,
            "session/prompt": session_requests.prompt,
            "session/list": session_requests.list,
            "session/delete": session_requests.delete,
            "session/close": session_requests.close,
            "authenticate": self._authenticate,
            "_dragoman/sessions": session_requests.describe,
            "_dragoman/inspect": self.inspector.answer,
        }

    async def greet(self, viewer: Viewer, line: bytes) -> bytes:
        """Answer `initialize`, or that it has to come first."""
        message = self._parse(line)
        if isinstance(message, Malformed):
            return make_error(message.id, message.code, message.problem)
        if message.method != "initialize" or message.id is UNSET:
            id_ = NULL_ID if message.id is UNSET else bytes(message.id)
            return make_error(id_, ErrorCode.INVALID_REQUEST, "a connection begins with the request initialize")
        answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        def answer(response: bytes) -> None:
            if not answered.done():
                answered.set_result(response)

        self._handshakes.initialize(viewer, bytes(message.id), message, answer)
        return await answered

    def receive(self, viewer: Viewer, line: bytes) -> None:
        """Take a message of a viewer."""
        line = line.replace(b"\n", b" ")  # in JSON it can only be blank space, and elsewhere it ends the message
        message = self._parse(line)
        if isinstance(message, Malformed) and (mended := replace_lone_surrogates(line)) is not None:
            line, message = mended, self._parse(mended)
        if isinstance(message, Malformed):
            if message.answerable:
                viewer.refuse(message.id, message.code, message.problem)
        elif self._handshakes.is_pending(viewer) and message.method != "initialize":
            self._handshakes.hold(viewer, message, line)
        elif message.method is None:
            self.questions.answered(viewer, message, line)
        elif message.id is UNSET:
            self._notification(viewer, message.method, message, line)
        elif message.method == "initialize":
            self._handshakes.initialize(viewer, bytes(message.id), message, viewer.send)
        else:
            self._request(ViewerRequest(viewer, bytes(message.id), message.method, message.params, line))

    def viewer_left(self, viewer: Viewer) -> None:
        """Forget a viewer; others are asked the questions that it has not answered."""
        self._handshakes.viewer_left(viewer)
        self.questions.viewer_left(viewer)
        self.inspector.viewer_left(viewer)

    def join_capabilities(self, params: Raw) -> Raw:
        """Add the capabilities of all connected viewers to params of `initialize`."""
        return self._handshakes.join_capabilities(params)

    def _parse(self, line: bytes) -> Message | Malformed:
        limit = self._limits.max_message_bytes
        return parse(line if len(line) <= limit else Oversized.of(line, limit))

    def _request(self, request: ViewerRequest) -> None:
        viewer, session_id = request.viewer, request.session_id
        problem = self._objection(request)
        if problem is not None:
            viewer.refuse(request.id, ErrorCode.INVALID_REQUEST, problem, viewer.subscription(session_id))
            return
        if session_id is not None:
            viewer.outbox.note_use(session_id)
        request.begin(opens=session_id if request.method in _REOPENING else None)
        handle = self._handlers.get(request.method)
        if handle is not None:
            handle(request)
        else:
            self._restorer.forward(request, session=self._registry.find(session_id))

    def _objection(self, request: ViewerRequest) -> str | None:
        """Give the reason why a request is not served, if there is one."""
        viewer = request.viewer
        limit = self._limits.max_requests
        if viewer.capabilities is None:
            return f"{request.method} came before initialize was answered; send that first"
        if viewer.read_only and request.method not in _FOR_READERS:
            return f"this viewer may only read, and {request.method} would do more; ask the owner for a link that may"
        if request.id in viewer.requests:
            return f"a request with the id {request.id.decode()} is still under way; give each its own"
        if len(viewer.requests) >= limit:
            return f"{limit} requests of this viewer are under way; wait for answers before sending more"
        return None

    def _authenticate(self, request: ViewerRequest) -> None:
        """Have the agent log somebody in, and then give it the sessions that it refused before."""

        def answered(message: Message, line: bytes) -> None:
            request.pass_on(line)
            if message.error is UNSET:
                self._supervisor.initialize.has_login = True
                self._restorer.wake_after_login()

        self._restorer.forward(request, answered=answered)

    def _notification(self, viewer: Viewer, method: str, message: Message, line: bytes) -> None:
        if viewer.capabilities is None:
            return
        session = self._registry.find(session_of(message.params))
        if method == "_dragoman/leave":
            if session is not None and viewer in session.subscriptions:
                self._registry.unsubscribe(viewer, session)
        elif viewer.read_only:
            return
        elif method == "$/cancel_request":
            self._cancel_request(viewer, message)
        else:
            cancelled = session if method == "session/cancel" else None
            if cancelled is not None:
                self._session_requests.cancel_prompts(cancelled)
            if self._supervisor.is_ready and not self._supervisor.is_clogged:
                self._supervisor.write(line)
            if cancelled is not None:
                self.questions.cancel_session(cancelled)

    def _cancel_request(self, viewer: Viewer, message: Message) -> None:
        requested = fields_of(message.params).get("requestId")
        agent_id = None if requested is None else viewer.requests.agent_id(bytes(requested))
        if requested is None or agent_id is None:
            return
        if agent_id:
            params = {**fields_of(message.params), "requestId": Raw(agent_id)}
            self._supervisor.write(make_notification("$/cancel_request", params))
        else:
            self._restorer.withdraw(viewer, bytes(requested))


class AgentMessages:
    """Takes the lines of the agent."""

    def __init__(
        self,
        *,
        delivery: Delivery,
        supervisor: AgentSupervisor,
        registry: SessionRegistry,
        announcements: Announcements,
        questions: Questions,
        ownership: Ownership,
    ) -> None:
        self._delivery = delivery
        self._supervisor = supervisor
        self._registry = registry
        self._announcements = announcements
        self._questions = questions
        self._ownership = ownership

    def lines_received(self, lines: Sequence[bytes | Oversized]) -> None:
        """Take the next lines, many in one piece: updates of a session go on as they came, all at once."""
        for block in lines:
            if isinstance(block, Oversized):
                self._take(block)
                continue
            runs = ordinary_runs(block)
            if runs is None:
                for line in block.split(b"\n"):
                    if line and not line.isspace():
                        self._take_line(line)
                continue
            for run in runs:
                self._take_run(run)

    def input_ended(self, *, was_file: bool) -> None:
        """Do nothing: the process itself tells its end."""

    def _take_run(self, run: OrdinaryRun) -> None:
        session = self._registry.sessions.get(run.session_id)
        if session is None:
            for line in run.lines[:-1].split(b"\n"):
                self._registry.early.put(run.session_id, line)
            return
        session.take(run)
        self._delivery.touch(session)

    def _take_line(self, line: bytes) -> None:
        session_id = session_of_update(line) if UPDATE in line and is_sound(line) else None
        if session_id is None:
            self._take(line)
            return
        session = self._registry.sessions.get(session_id)
        if session is None:
            self._registry.early.put(session_id, line)
            return
        session.take_notification(line)
        self._delivery.touch(session)

    def _take(self, line: bytes | Oversized) -> None:
        message = parse(line)
        if isinstance(message, Malformed):
            mended = replace_lone_surrogates(line) if isinstance(line, bytes) else None
            if mended is not None:
                self._take_line(mended)
            else:
                self._refuse(message, line)
        elif message.method is None:
            self._supervisor.calls.settle(message, bytes(line) if isinstance(line, bytes) else b"")
        elif isinstance(line, bytes):
            if message.id is UNSET:
                self._notification(message.method, message, line)
            else:
                self._request(message.method, bytes(message.id), message, line)

    def _refuse(self, malformed: Malformed, line: bytes | Oversized) -> None:
        """Fail the request, on either side, whose message is malformed; else tell that a message was dropped."""
        if isinstance(line, bytes):
            self._supervisor.note_printed(line.decode(errors="replace"))
        if malformed.id != NULL_ID and malformed.answerable:
            self._supervisor.write(make_error(malformed.id, malformed.code, malformed.problem))
            return
        remedy = "" if isinstance(line, bytes) else ": ask for less at a time"
        lost = f"the agent has answered, and its answer was dropped because {malformed.problem}{remedy}"
        has_failed = malformed.id != NULL_ID and self._supervisor.calls.fail(malformed.id, AgentFailure(lost))
        if not has_failed and not isinstance(line, bytes):
            self._announcements.agent_notice(f"a message of the agent was dropped because {malformed.problem}")

    def _request(self, method: str, id_: bytes, message: Message, line: bytes) -> None:
        session = self._registry.find(session_of(message.params))
        viewer: Viewer | None = None
        about = fields_of(message.params).get("requestId") if method == ELICIT and session is None else None
        if about is not None:
            request = self._supervisor.calls.origin_of(bytes(about))
            if isinstance(request, ViewerRequest):
                line, viewer = rename_request(line, request.id), request.viewer
        self._questions.take(AgentRequest(id_, method, message.params, line, session=session, only=viewer))

    def _notification(self, method: str, message: Message, line: bytes) -> None:
        if method == "$/cancel_request":
            cancelled = fields_of(message.params).get("requestId")
            if cancelled is not None:
                self._questions.cancel(bytes(cancelled))
            return
        session = self._registry.find(session_of(message.params))
        if session is not None:
            session.take_notification(line)
            self._delivery.touch(session)
            return
        owner = self._ownership.server_owner(method, message.params)
        for viewer in [owner] if owner is not None else list(self._delivery.viewers.values()):
            if viewer.capabilities is not None:
                viewer.send(line)


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
        has_begun = False

        def answered(message: Message, line: bytes) -> None:
            request.pass_on(line)  # behind all updates, and not behind the record of the turn's end
            self._end_turn(session, message)

        def failed(failure: AgentFailure) -> None:
            if has_begun:
                session.end_turn(None, error_object(RpcError(ErrorCode.INTERNAL_ERROR, failure.data())))
            request.fail(failure.data())

        # First of all, so that the agent is at work while the prompt is journalled.
        self._restorer.forward(request, session=session, answered=answered, failed=failed)
        if not request.is_over:
            has_begun = True
            session.begin_turn(request.viewer, parse_list(fields_of(request.params).get("prompt")))

    def _end_turn(self, session: ServedSession, message: Message) -> None:
        if message.error is not UNSET:
            session.end_turn(None, Raw(bytes(message.error)))
        else:
            session.end_turn(string_of(fields_of(message.result).get("stopReason")))
        self._delivery.sync_soon(session.journal)
