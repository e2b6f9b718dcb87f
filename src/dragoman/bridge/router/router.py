"""Messages of viewers and of the agent: each is checked, answered here, or passed to the other side.

A viewer's request goes to the agent under an id of the bridge, and the answer back under the viewer's own. An update of
the agent goes into its session's journal, a request to the viewers that can answer it.
"""

import asyncio

from msgspec import UNSET, Raw

from dragoman.bridge.delivery import Delivery, Viewer, ViewerRequest
from dragoman.bridge.envelope import (
    fields_of,
    make_error,
    make_notification,
    session_of,
)
from dragoman.bridge.registry import (
    Announcements,
    ServedSession,
    SessionRegistry,
    SessionRestorer,
)
from dragoman.bridge.router.answer_links import LINK
from dragoman.bridge.router.handlers import RequestHandlers
from dragoman.bridge.router.handshake import ViewerHandshakes
from dragoman.bridge.router.inspection import WireInspector
from dragoman.bridge.router.logins import PendingLogins
from dragoman.bridge.router.questions import Questions
from dragoman.bridge.router.viewer_servers import MCP_MESSAGE
from dragoman.bridge.settings import AgentSpec, Settings
from dragoman.bridge.supervisor import AgentSupervisor, WireLog
from dragoman.bridge.translation import RequestTranslator, check_params, explain_refusal
from dragoman.errors import ErrorCode, InvalidParams
from dragoman.wire import Malformed, Message, Oversized, parse
from dragoman.wire.message import NULL_ID, replace_lone_surrogates

FOR_READERS = frozenset(
    {
        "session/list",
        "session/load",
        "session/resume",
        "session/status",
        "_dragoman/sessions",
        "_dragoman/projects",
        "_dragoman/search",
    }
)
"""Requests of viewers that may only read."""

_REOPENING = frozenset({"session/load", "session/resume"})
_OPENING = _REOPENING | {"session/new", "session/fork"}

_SETTING = frozenset({"session/set_mode", "session/set_config_option"})


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
        logins: PendingLogins,
    ) -> None:
        self.questions = questions
        self.logins = logins
        self.inspector = WireInspector(wire_log)
        self._supervisor = supervisor
        self._registry = registry
        self._restorer = restorer
        self._handshakes = ViewerHandshakes(
            spec, settings, supervisor=supervisor, registry=registry, questions=questions, announcements=announcements
        )
        self._handlers = RequestHandlers(
            settings,
            delivery=delivery,
            supervisor=supervisor,
            registry=registry,
            restorer=restorer,
            announcements=announcements,
            questions=questions,
            more={"_dragoman/inspect": self.inspector.answer, LINK: questions.links.make},
        )
        self.opening = self._handlers.opening

    def close(self) -> None:
        """End what reads files beside."""
        self._handlers.files.close()

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
            else:
                self.questions.answered_badly(viewer, message.id, message.problem)
        elif self._handshakes.is_pending(viewer) and message.method != "initialize":
            self._handshakes.hold(viewer, message, line)
        elif message.method is None:
            self.questions.answered(viewer, message, line)
        elif message.id is UNSET:
            self._notification(viewer, message.method, message, line)
        elif message.method == "initialize":
            self._handshakes.initialize(viewer, bytes(message.id), message, viewer.send)
        else:
            version = self._supervisor.version
            self._request(ViewerRequest(viewer, bytes(message.id), message.method, message.params, line, line, version))

    def viewer_left(self, viewer: Viewer) -> None:
        """Forget a viewer; others are asked the questions that it has not answered."""
        self._handshakes.viewer_left(viewer)
        self.questions.viewer_left(viewer)
        self.inspector.viewer_left(viewer)
        self._handlers.search.viewer_left(viewer)
        self.logins.viewer_left(viewer)

    def initialize_params(self, viewer: Viewer) -> Raw:
        """Return the params of a viewer's `initialize`, as it sent them."""
        return self._handshakes.given_params(viewer)

    def begin_next(self, session: ServedSession) -> None:
        """Begin with the next prompt that waited for the end of a turn."""
        self._handlers.sessions.begin_next(session)

    def join_capabilities(self, params: Raw) -> Raw:
        """Add the capabilities of all connected viewers to params of `initialize`."""
        return self._handshakes.join_capabilities(params)

    def _parse(self, line: bytes) -> Message | Malformed:
        limit = self._handshakes.limits.max_message_bytes
        return parse(line if len(line) <= limit else Oversized.of(line, limit))

    def _request(self, request: ViewerRequest) -> None:
        viewer, session_id = request.viewer, request.session_id
        problem = self._objection(request)
        if problem is not None:
            viewer.refuse(request.id, ErrorCode.INVALID_REQUEST, problem, viewer.subscription(session_id))
            return
        if viewer.translator is not None and not self._translate(request, viewer.translator):
            return
        if session_id is not None:
            viewer.outbox.note_use(session_id)
        request.begin(opens=session_id if request.method in _REOPENING else None)
        if request.method in _OPENING:
            known = self._registry.find(session_id) if request.method in _REOPENING else None
            self.questions.take_offers(request, known)
        handle = self._handlers.find(request.method)
        if handle is not None:
            handle(request)
        else:
            self._restorer.forward(request, session=self._registry.find(session_id))

    def agent_ready(self) -> None:
        """Note that the agent takes requests, maybe in another version than before."""
        self._handshakes.agent_ready()

    def _translate(self, request: ViewerRequest, translator: RequestTranslator) -> bool:
        """Put a request into the words of the agent's version; tells whether the agent can be asked it."""
        viewer, session = request.viewer, self._registry.find(request.session_id)
        try:
            check_params(viewer.version, request.method, request.params)
            is_set = request.method in _SETTING and session is not None
            made = translator.request(request.line, session.setup.fields if is_set and session is not None else None)
        except InvalidParams as error:
            viewer.send(explain_refusal(request.id, error), viewer.subscription(request.session_id))
            return False
        if isinstance(made, list):
            if session is not None and request.method == "session/close":
                self._cancel_turns(session)  # the agent has no such method
            for line in made:
                viewer.send(line, viewer.subscription(request.session_id))
            return False
        is_prompt = request.method == "session/prompt"  # which the session answers, in the viewer's own version
        request.translator = None if is_prompt else translator
        request.method, request.params, request.line = made.method, made.params, made.line
        return True

    def _cancel_turns(self, session: ServedSession) -> None:
        """Cancel all that a session does, on behalf of a viewer that closes it."""
        session.cancel_prompts()
        session.turns.withdraw()
        if session.info.turns and self._supervisor.is_ready:
            self._supervisor.write(make_notification("session/cancel", {"sessionId": session.id}))
        self.questions.cancel_session(session)

    def _objection(self, request: ViewerRequest) -> str | None:
        """Give the reason why a request is not served, if there is one."""
        viewer = request.viewer
        limit = self._handshakes.limits.max_requests
        if viewer.capabilities is None:
            return f"{request.method} came before initialize was answered; send that first"
        if viewer.read_only and request.method not in FOR_READERS:
            return f"this viewer may only read, and {request.method} would do more; ask the owner for a link that may"
        if request.session_id is not None and not viewer.sees(request.session_id):
            return f"this viewer may see one session, and {request.method} names another; ask the owner to share that"
        if request.id in viewer.requests:
            return f"a request with the id {request.id.decode()} is still under way; give each its own"
        if len(viewer.requests) >= limit:
            return f"{limit} requests of this viewer are under way; wait for answers before sending more"
        return None

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
                cancelled.cancel_prompts()
            passed = line if method != MCP_MESSAGE else self.questions.to_agent(line, message.params, viewer)
            if passed is not None and self._supervisor.is_ready and not self._supervisor.is_clogged:
                self._supervisor.write(passed)
                for id_ in [] if cancelled is None else cancelled.turns.uninserted():
                    self._supervisor.write(make_notification("$/cancel_request", {"requestId": Raw(id_)}))
            if cancelled is not None:
                self.questions.cancel_session(cancelled)

    def _cancel_request(self, viewer: Viewer, message: Message) -> None:
        requested = fields_of(message.params).get("requestId")
        agent_id = None if requested is None else viewer.requests.agent_id(bytes(requested))
        if requested is None or agent_id is None:
            return
        inserted = self._registry.session_of_prompt(agent_id)
        if inserted is not None:
            self._supervisor.write(make_notification("session/cancel", {"sessionId": inserted.id}))
        elif agent_id:
            params = {**fields_of(message.params), "requestId": Raw(agent_id)}
            self._supervisor.write(make_notification("$/cancel_request", params))
        else:
            self._restorer.withdraw(viewer, bytes(requested))
