"""The router of one agent: checks each message of a viewer, then answers it or passes it to the agent.

    receive ──► initialize            `ViewerHandshakes.initialize`
            ──► session elsewhere     `OtherNodes.pass_on`, to the node that owns it
            ──► answer                `Questions.answered`
            ──► notification          `_notification`
            ──► request ──► _objection ──► _begin ──► _serve ──► a handler, or `_pass_on` to the agent
                                  └► _open_first, if its session left memory

A request is sent to the agent with an id of the bridge, and its answer is returned with the viewer's id.

If several nodes share a database, the owner of a session that is not open here is looked up first. During the look-up,
later messages of the viewer wait, so that they stay in order. Messages that a reader may not send are refused before
any of this.
"""

from collections.abc import Callable

from msgspec import UNSET, Raw

from dragoman.bridge.agent_host import AgentHost
from dragoman.bridge.agent_link import CallAnswer, NoAnswerError
from dragoman.bridge.envelope import make_notification
from dragoman.bridge.router.answer_links import LINK, AnswerLinks, LinkedQuestion
from dragoman.bridge.router.code_register import CodeRegister
from dragoman.bridge.router.file_requests import FileRequests
from dragoman.bridge.router.handshake import ViewerHandshakes
from dragoman.bridge.router.history_requests import FIND, HISTORY, SETTINGS_BEFORE, HistoryRequests
from dragoman.bridge.router.inspection import WireInspector
from dragoman.bridge.router.label_requests import LabelRequests
from dragoman.bridge.router.listing import SessionListing
from dragoman.bridge.router.logins import PendingLogins
from dragoman.bridge.router.opening_requests import OpeningRequests
from dragoman.bridge.router.other_nodes import OtherNodes
from dragoman.bridge.router.reply import Reply, ServeRequest
from dragoman.bridge.router.search import SessionSearch
from dragoman.bridge.router.session_pages import SessionPages
from dragoman.bridge.router.session_requests import STEER, SessionRequests
from dragoman.bridge.sessions import ServedSession, ServedSessions
from dragoman.bridge.sessions.ownership import MCP_MESSAGE
from dragoman.bridge.settings import AgentSpec, BridgeSettings
from dragoman.bridge.tasks import Work
from dragoman.bridge.translation import RequestTranslator, check_params, explain_refusal
from dragoman.bridge.viewers import Delivery, Viewer, ViewerRequest
from dragoman.bridge.wire_log import WireLog
from dragoman.errors import ErrorCode, InvalidParamsError, RpcError, SessionBusyError
from dragoman.protocol import methods
from dragoman.wire import Malformed, Message, Oversized, parse
from dragoman.wire.envelope import fields_of, make_error, session_of
from dragoman.wire.message import NULL_ID, replace_lone_surrogates

LEAVE = "_dragoman/leave"

_NAMING_A_SESSION = frozenset({methods.SESSION_LOAD.name, methods.SESSION_RESUME.name, methods.SESSION_STATUS.name})

_REQUESTS_OF_READERS = _NAMING_A_SESSION | {
    methods.INITIALIZE.name,
    methods.SESSION_LIST.name,
    "_dragoman/sessions",
    "_dragoman/projects",
    "_dragoman/search",
    HISTORY,
    SETTINGS_BEFORE,
    FIND,
}
_NOTIFICATIONS_OF_READERS = frozenset({LEAVE})

_NO_SESSION = {
    "path": "params.sessionId",
    "problem": "sessionId is missing or not a string; session/list returns all ids",
    "expected": "a string",
}

_READING = frozenset({HISTORY, SETTINGS_BEFORE, FIND})
"""Requests about the history that a viewer reads. It may be a copy of another node's."""

_REOPENING = frozenset({methods.SESSION_LOAD.name, methods.SESSION_RESUME.name})
_OPENING = _REOPENING | {methods.SESSION_NEW.name, methods.SESSION_FORK.name}

_FOR_THE_AGENT = frozenset({methods.SESSION_PROMPT.name, STEER})
"""Requests with a handler that passes them on to the agent."""

_SETTING = frozenset({methods.SESSION_SET_MODE.name, methods.SESSION_SET_CONFIG_OPTION.name})


def _is_for_readers(message: Message) -> bool:
    """Return whether a viewer that may only read can send this message.

    The bridge serves all of these without a message to the agent, except that the first `initialize` starts the agent.
    Answers are not included, because the bridge never asks a reader.
    """
    allowed = _NOTIFICATIONS_OF_READERS if message.id is UNSET else _REQUESTS_OF_READERS
    return message.method in allowed


class Router:
    """Receives the messages of one agent's viewers, and finds the handler of each."""

    def __init__(
        self,
        spec: AgentSpec,
        settings: BridgeSettings,
        *,
        wire_log: WireLog,
        start: Callable[[Work], None],
        delivery: Delivery,
        host: AgentHost,
        sessions: ServedSessions,
        logins: PendingLogins,
        register: CodeRegister | None,
        nodes: OtherNodes | None,
    ) -> None:
        self.logins = logins
        self._agent_title = spec.title or spec.name
        self.links = AnswerLinks(sessions.questions, register)
        self.inspector = WireInspector(wire_log)
        self.opening = OpeningRequests(settings.agent_limits, host=host, delivery=delivery, sessions=sessions)
        self._start = start
        self._nodes = nodes
        self._host = host
        self._sessions = sessions
        self._questions = sessions.questions
        self._handshakes = ViewerHandshakes(spec, settings, host=host, sessions=sessions)
        self._session_requests = SessionRequests(
            delivery=delivery, host=host, sessions=sessions, serve=self._begin_serving
        )
        self._files = FileRequests(settings.cwd, sessions)
        self.search = SessionSearch(delivery, sessions)
        self._history = HistoryRequests()
        timeout_s = settings.agent_limits.open_timeout_s
        self._listing = SessionListing(timeout_s, delivery=delivery, host=host, sessions=sessions)
        self._labels = LabelRequests(timeout_s, host=host, sessions=sessions, listing=self._listing)
        self._pages = SessionPages(sessions.lists)
        self._handlers = self._make_handlers()

    def _make_handlers(self) -> dict[str, ServeRequest]:
        """Return the handlers of requests by method. Requests of other methods are passed on to the agent."""
        return {
            methods.SESSION_NEW.name: self.opening.new,
            methods.SESSION_FORK.name: self.opening.new,
            methods.SESSION_LOAD.name: self.opening.load,
            methods.SESSION_RESUME.name: self.opening.load,
            methods.SESSION_PROMPT.name: self._session_requests.prompt,
            methods.SESSION_LIST.name: self._listing.list_sessions,
            methods.SESSION_SET_TITLE.name: self._labels.set_title,
            methods.SESSION_ARCHIVE.name: self._labels.archive,
            methods.SESSION_UNARCHIVE.name: self._labels.unarchive,
            methods.SESSION_STATUS.name: self._labels.status,
            methods.SESSION_DELETE.name: self._session_requests.delete,
            methods.SESSION_CLOSE.name: self._session_requests.close,
            STEER: self._session_requests.steer,
            methods.AUTHENTICATE.name: self._authenticate,
            "auth/login": self._authenticate,
            "_dragoman/sessions": self._pages.sessions,
            "_dragoman/projects": self._pages.projects,
            "_dragoman/queue/change": self._session_requests.change_queued,
            "_dragoman/queue/resume": self._session_requests.resume_queue,
            "_dragoman/files": self._files.find,
            "_dragoman/revert": self._files.revert,
            "_dragoman/search": self.search.search,
            HISTORY: self._history.history,
            SETTINGS_BEFORE: self._history.settings,
            FIND: self._history.find,
            "_dragoman/inspect": self.inspector.inspect,
            LINK: self.links.make,
        }

    def close(self) -> None:
        """Stop the threads that read files and the search index."""
        self._files.close()
        self.search.close()

    async def greet(self, viewer: Viewer, line: bytes) -> bytes:
        """Answer the first message of a connection over HTTP. Refuse all requests except `initialize`."""
        message = self._parse(line)
        if isinstance(message, Malformed):
            return make_error(message.id, message.code, message.problem)
        if message.method != methods.INITIALIZE.name or message.id is UNSET:
            id_ = NULL_ID if message.id is UNSET else bytes(message.id)
            return make_error(id_, ErrorCode.INVALID_REQUEST, "the first request on a connection must be initialize")
        answers: list[bytes] = []
        await self._handshakes.initialize(viewer, bytes(message.id), message, answers.append)
        return answers[0]

    def receive(self, viewer: Viewer, line: bytes) -> None:
        """Handle a message of a viewer."""
        line = line.replace(b"\n", b" ")  # in JSON a newline is only white space, but it would end the line for agents
        message = self._parse(line)
        if isinstance(message, Malformed) and (mended := replace_lone_surrogates(line)) is not None:
            line, message = mended, self._parse(mended)
        if isinstance(message, Malformed):
            if message.answerable:
                viewer.refuse(message.id, message.code, message.problem)
            elif self._nodes is None or viewer.read_only or not self._nodes.pass_back(viewer, message, line):
                self._questions.answered_badly(viewer, message.id, message.problem)
        # The order of these checks matters: hold messages behind an earlier request, then check a reader's rights.
        elif self._handshakes.is_holding(viewer) and message.method != methods.INITIALIZE.name:
            self._handshakes.hold(viewer, message, line)
        elif viewer.read_only and not self._admit_reader(viewer, message):
            return
        elif self._nodes is None or viewer.capabilities is None or message.method == methods.INITIALIZE.name:
            self._handle(viewer, message, line)
        else:
            self._route(self._nodes, viewer, message, line)

    def _route(self, nodes: OtherNodes, viewer: Viewer, message: Message, line: bytes) -> None:
        """Handle a message here, or pass it to another node, if that one owns its session or waits for it."""
        if nodes.pass_back(viewer, message, line):
            return
        session_id = None if message.method is None or message.method in _READING else session_of(message.params)
        if session_id is None or not viewer.sees(session_id) or self._sessions.find(session_id) is not None:
            self._handle(viewer, message, line)
        else:
            self._start(self._find_owner(nodes, viewer, message, line, session_id))

    async def _find_owner(
        self, nodes: OtherNodes, viewer: Viewer, message: Message, line: bytes, session_id: str
    ) -> None:
        """Pass a message to the owner of its session. The viewer's later messages wait for that."""
        with self._handshakes.holding(viewer):
            try:
                if not await nodes.pass_on(viewer, message, line, session_id):
                    self._handle(viewer, message, line)
            except RpcError as error:
                if message.id is not UNSET:
                    viewer.refuse(bytes(message.id), error.code, error.data, viewer.subscription(session_id))

    def _handle(self, viewer: Viewer, message: Message, line: bytes) -> None:
        """Handle a message of a viewer on this node."""
        if message.method is None:
            self._questions.answered(viewer, message, line)
        elif message.id is UNSET:
            self._notification(viewer, message.method, message, line)
        elif message.method == methods.INITIALIZE.name:
            self._start(self._handshakes.initialize(viewer, bytes(message.id), message, viewer.send))
        else:
            self._request(
                ViewerRequest(
                    viewer,
                    bytes(message.id),
                    message.method,
                    message.params,
                    session_of(message.params),
                    line,
                    line,
                    self._host.version,
                )
            )

    def viewer_left(self, viewer: Viewer) -> None:
        """Forget a viewer. Other viewers receive the questions that it has not answered."""
        self._handshakes.viewer_left(viewer)
        self._questions.viewer_left(viewer)
        self.inspector.viewer_left(viewer)
        self.search.viewer_left(viewer)
        self._history.viewer_left(viewer)
        self.logins.viewer_left(viewer)
        if self._nodes is not None:
            self._nodes.viewer_left(viewer)

    def open_question(self, hash_: bytes, option_id: str | None = None) -> LinkedQuestion | None:
        """Return the question of an approval link, given the hash of its code. Apply the option first, if given."""
        opened = self.links.open(hash_, option_id)
        if opened is None:
            return None
        return LinkedQuestion({"agent": self._agent_title, **opened.described}, opened.is_offered)

    def initialize_params(self, viewer: Viewer) -> Raw:
        """Return the params of a viewer's `initialize`, as the viewer sent them."""
        return self._handshakes.sent_params(viewer)

    def begin_next(self, session: ServedSession) -> None:
        """Begin with the next prompt that waited for the end of a turn."""
        self._session_requests.begin_next(session)

    def join_capabilities(self, params: Raw) -> Raw:
        """Add the capabilities of all connected viewers to params of `initialize`."""
        return self._handshakes.join_capabilities(params)

    def _parse(self, line: bytes) -> Message | Malformed:
        limit = self._handshakes.limits.max_message_bytes
        return parse(line if len(line) <= limit else Oversized.of(line, limit))

    def _admit_reader(self, viewer: Viewer, message: Message) -> bool:
        """Return whether a read-only viewer may send this message. Refuse it if it is a request that may not be sent.

        No other code checks the rights of readers. The check comes before any routing.
        """
        is_allowed = _is_for_readers(message)
        is_unnamed = message.method in _NAMING_A_SESSION and session_of(message.params) is None
        if is_allowed and not is_unnamed:
            return True
        if message.method is not None and message.id is not UNSET:
            code, problem = ErrorCode.INVALID_PARAMS, _NO_SESSION
            if not is_allowed:
                code = ErrorCode.INVALID_REQUEST
                problem = f"this viewer is read-only and cannot send {message.method}; ask the owner for another link"
            subscription = viewer.subscription(session_of(message.params))
            viewer.refuse(bytes(message.id), code, problem, subscription)
        return False

    def _request(self, request: ViewerRequest) -> None:
        problem = self._objection(request)
        if problem is not None:
            subscription = request.viewer.subscription(request.session_id)
            request.viewer.refuse(request.id, ErrorCode.INVALID_REQUEST, problem, subscription)
        elif self._is_unopened(request):
            self._start(self._open_first(request))
        else:
            self._begin(request)

    def _is_unopened(self, request: ViewerRequest) -> bool:
        """Return whether a request is for the agent, and only the history of its session is known."""
        method, session_id = request.method, request.session_id
        if session_id is None or self._sessions.find(session_id) is not None:
            return False
        is_for_agent = method in _FOR_THE_AGENT or method not in self._handlers
        return is_for_agent and self._sessions.knows(session_id)

    async def _open_first(self, request: ViewerRequest) -> None:
        """Open the history of a session that left memory, then begin the request.

        The viewer's later messages, such as a cancel, wait for that.
        """
        with self._handshakes.holding(request.viewer):
            await self._serve(request, self.opening.open_history)
            if not request.is_over and not request.viewer.closed.is_set():
                request.agent_version = self._host.version  # the agent may have started in the meantime
                self._begin(request)

    def _begin(self, request: ViewerRequest) -> None:
        """Translate a request, and run the first step of its handler."""
        viewer, session_id = request.viewer, request.session_id
        if viewer.translator is not None and not self._translate(request, viewer.translator):
            return
        request.begin(opens=session_id if request.method in _REOPENING else None)
        if request.method in _OPENING:
            known = self._sessions.find(session_id) if request.method in _REOPENING else None
            self._questions.register_servers(request, known)
        self._begin_serving(request, self._handlers.get(request.method, self._pass_on))

    def _begin_serving(self, request: ViewerRequest, serve: ServeRequest) -> None:
        """Run the handler's first step now, so that messages reach the agent in the order in which they came."""
        self._start(self._serve(request, serve))

    async def _serve(self, request: ViewerRequest, serve: ServeRequest) -> None:
        """Serve a request, and turn the handler's result or error into the answer. No other code does that."""
        try:
            reply = await serve(request)
        except NoAnswerError as error:
            request.fail(error.failure.data())
        except RpcError as error:
            request.refuse(error.code, error.data)
        except SessionBusyError:  # another node has just become the owner of the session
            if request.end():
                self.receive(request.viewer, request.given)
        except Exception:
            request.refuse(ErrorCode.INTERNAL_ERROR, "the bridge failed to serve this request; see its log")
            raise
        else:
            if isinstance(reply, CallAnswer):
                request.pass_on(reply.line)
            elif reply is not None:
                request.answer(reply)

    async def _pass_on(self, request: ViewerRequest) -> Reply:
        return await self._sessions.pass_on(request, self._sessions.find(request.session_id))

    async def _authenticate(self, request: ViewerRequest) -> Reply:
        """Pass a login to the agent, then reopen the sessions that it refused before the login."""
        answer = await self._sessions.pass_on(request)
        request.pass_on(answer.line)
        if not answer.is_error:
            self._host.initialize.has_login = True
            self._sessions.wake_after_login()
        return None

    def agent_ready(self) -> None:
        """Handle that the agent accepts requests, possibly in another version than before."""
        self._handshakes.agent_ready()

    def _translate(self, request: ViewerRequest, translator: RequestTranslator) -> bool:
        """Translate a request into the agent's version. Return False if it was answered without the agent."""
        viewer, session = request.viewer, self._sessions.find(request.session_id)
        try:
            check_params(viewer.version, request.method, request.params)
            is_set = request.method in _SETTING and session is not None
            made = translator.request(request.line, session.setup.fields if is_set and session is not None else None)
        except InvalidParamsError as error:
            viewer.send(explain_refusal(request.id, error), viewer.subscription(request.session_id))
            return False
        if isinstance(made, list):
            if session is not None and request.method == methods.SESSION_CLOSE.name:
                session.cancel()  # the agent has no such method
            for line in made:
                viewer.send(line, viewer.subscription(request.session_id))
            return False
        # A prompt is answered by its session, in the viewer's own version.
        is_prompt = request.method == methods.SESSION_PROMPT.name
        request.translator = None if is_prompt else translator
        request.method, request.params, request.line = made.method, made.params, made.line
        return True

    def _objection(self, request: ViewerRequest) -> str | None:
        """Return the reason to refuse a request, or None."""
        viewer = request.viewer
        limit = self._handshakes.limits.max_requests
        if viewer.capabilities is None:
            return f"{request.method} came before initialize was answered; send that first"
        if request.session_id is not None and not viewer.sees(request.session_id):
            return (
                f"this viewer may access one session, and {request.method} names "
                "another; ask the owner for a link to it"
            )
        if request.id in viewer.requests:
            return f"a request with the id {request.id.decode()} is still running; use a new id for each request"
        if len(viewer.requests) >= limit:
            return f"{limit} requests of this viewer are running, the limit; wait for responses before sending more"
        return None

    def _notification(self, viewer: Viewer, method: str, message: Message, line: bytes) -> None:
        if viewer.capabilities is None:
            return
        session = self._sessions.find(session_of(message.params))
        if method == LEAVE:
            if session is not None and viewer in session.subscriptions:
                self._sessions.unsubscribe(viewer, session)
        elif method == methods.CANCEL_REQUEST.name:
            self._cancel_request(viewer, message)
        else:
            # A cancel ends the prompts that wait here, the turn at the agent, and the open questions, in this order.
            cancelled = session if method == methods.SESSION_CANCEL.name else None
            if cancelled is not None:
                cancelled.cancel_prompts()
            passed = line if method != MCP_MESSAGE else self._questions.to_agent(line, message.params, viewer)
            if passed is not None and self._host.is_ready and not self._host.is_clogged:
                self._host.write(passed)
                for id_ in [] if cancelled is None else cancelled.turns.uninserted():
                    self._host.write(make_notification(methods.CANCEL_REQUEST.name, {"requestId": Raw(id_)}))
            if cancelled is not None:
                self._questions.cancel_session(cancelled)

    def _cancel_request(self, viewer: Viewer, message: Message) -> None:
        """Cancel a request of a viewer, at the agent if it was sent there."""
        requested = fields_of(message.params).get("requestId")
        agent_id = None if requested is None else viewer.requests.agent_id(bytes(requested))
        if requested is None or agent_id is None:
            return
        inserted = self._sessions.session_of_prompt(agent_id)
        if inserted is not None:
            self._host.write(make_notification(methods.SESSION_CANCEL.name, {"sessionId": inserted.id}))
        elif agent_id:
            params = {**fields_of(message.params), "requestId": Raw(agent_id)}
            self._host.write(make_notification(methods.CANCEL_REQUEST.name, params))
        else:
            self._sessions.withdraw(viewer, bytes(requested))
