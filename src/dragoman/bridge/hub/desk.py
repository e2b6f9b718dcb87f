"""What viewers say: each message is checked, answered here, or passed to the agent under an id of ours."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from dragoman.bridge.envelope import fields_of, make_error, make_notification, make_result, session_of, with_id
from dragoman.bridge.hub.abilities import read_abilities
from dragoman.bridge.hub.catalogue import Catalogue
from dragoman.bridge.hub.greeting import (
    answer_initialize,
    describe_bridge,
    offers_more,
    reader_params,
    refuse_initialize,
)
from dragoman.bridge.hub.inspecting import Inspecting
from dragoman.bridge.hub.opening import Opening
from dragoman.bridge.hub.request import Request
from dragoman.bridge.hub.session import Parked, Session
from dragoman.bridge.hub.turns import Turns
from dragoman.bridge.supervisor import AgentCall, AgentFailure, SilenceTimer
from dragoman.errors import ErrorCode
from dragoman.wire import Malformed, Message, Oversized, parse
from dragoman.wire.message import NULL_ID, replace_lone_surrogates

if TYPE_CHECKING:
    from dragoman.bridge.hub.hub import Hub
    from dragoman.bridge.hub.viewer import Viewer

_FOR_READERS = frozenset({"session/list", "session/load", "session/resume", "_dragoman/sessions"})

_REOPENING = frozenset({"session/load", "session/resume"})

_NO_VERSION = {"path": "params.protocolVersion", "problem": "this is no version", "expected": "an integer, such as 1"}


class Desk:
    """Serves the viewers of one agent."""

    def __init__(self, hub: "Hub") -> None:
        self._hub = hub
        self.inspecting = Inspecting(hub.wire_log)
        opening, turns, catalogue = Opening(hub, self), Turns(hub, self), Catalogue(hub, self)
        self._requests: dict[str, Callable[[Request], None]] = {
            "session/new": opening.new,
            "session/fork": opening.new,
            "session/load": opening.load,
            "session/resume": opening.load,
            "session/prompt": turns.prompt,
            "session/list": catalogue.list,
            "session/delete": catalogue.delete,
            "session/close": catalogue.close,
            "authenticate": self._authenticate,
            "_dragoman/sessions": catalogue.describe,
            "_dragoman/inspect": self.inspecting.answer,
        }
        self._turns = turns

    async def greet(self, viewer: "Viewer", line: bytes) -> bytes:
        """Answer `initialize`, or say that it has to come first."""
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

        self._initialize(viewer, bytes(message.id), message, answer)
        return await answered

    def receive(self, viewer: "Viewer", line: bytes) -> None:
        """Take a message of a viewer."""
        line = line.replace(b"\n", b" ")  # in JSON it can only be blank space, and elsewhere it ends the message
        message = self._parse(line)
        if isinstance(message, Malformed) and (mended := replace_lone_surrogates(line)) is not None:
            line, message = mended, self._parse(mended)
        if isinstance(message, Malformed):
            if message.answerable:
                viewer.refuse(message.id, message.code, message.problem)
        elif viewer.is_greeting and message.method != "initialize":
            self._hold(viewer, message, line)
        elif message.method is None:
            self._hub.asks.answered(viewer, message, line)
        elif message.id is UNSET:
            self._notification(viewer, message.method, message, line)
        elif message.method == "initialize":
            self._initialize(viewer, bytes(message.id), message, viewer.send)
        else:
            self._request(Request(viewer, bytes(message.id), message.method, message.params, line))

    def forward(
        self,
        request: Request,
        *,
        session: Session | None = None,
        then: Callable[[Message, bytes], None] | None = None,
        failed: Callable[[AgentFailure], None] | None = None,
        watch: Callable[[AgentCall], SilenceTimer] | None = None,
    ) -> None:
        """Pass a request to the agent, and its answer back, once the agent is there and has the session."""

        def answered(message: Message, line: bytes) -> None:
            if message.result is not UNSET and session is not None:
                session.follow_answer(request.method, request.params, message.result)
            request.pass_on(line)

        def send() -> None:
            fail = failed or request.fail
            if self._hub.supervisor.is_clogged:
                fail(AgentFailure("the agent does not read what it is sent; try again later"))
                return
            call = AgentCall(request.method, then or answered, fail, origin=request)
            call.timer = None if watch is None else watch(call)
            request.sent_as(self._hub.supervisor.call(call, lambda id_: with_id(request.line, id_)))

        if session is None:
            self._hub.supervisor.when_ready(send, request.fail)
        else:
            self.with_session(request, session, send)

    def with_session(self, request: Request, session: Session, go_on: Callable[[], None]) -> None:
        """Do something now if the agent has the session, else once it has it again."""
        if session.gone is not None:
            request.refuse(ErrorCode.RESOURCE_NOT_FOUND, session.gone)
        elif session.put_away and not request.viewer.marked:
            problem = f"session {session.id} was closed; open it again with session/load or session/resume"
            request.refuse(ErrorCode.RESOURCE_NOT_FOUND, problem)
        elif session.live and not session.waking and not session.parked and self._hub.supervisor.is_ready:
            go_on()
        else:
            session.parked.append(Parked(request, go_on))
            self._hub.changed(session)
            self._hub.waker.wake(session)

    def _parse(self, line: bytes) -> Message | Malformed:
        limit = self._hub.settings.max_message_bytes
        return parse(line if len(line) <= limit else Oversized.of(line, limit))

    def _initialize(self, viewer: "Viewer", id_: bytes, message: Message, answer: Callable[[bytes], None]) -> None:
        supervisor = self._hub.supervisor
        cache = supervisor.initialize
        if not bytes(fields_of(message.params).get("protocolVersion", b"")).isdigit():
            answer(make_error(id_, ErrorCode.INVALID_PARAMS, _NO_VERSION))
            return
        abilities = read_abilities(message.params)

        def succeed() -> None:
            viewer.is_greeting = False
            if cache.result is None:
                return
            viewer.read_only = viewer.read_only or abilities.read_only
            viewer.abilities = abilities
            own = None
            if abilities.marked:
                own = describe_bridge(self._hub.settings, self._hub.spec, read_only=viewer.read_only)
            extra = {"connectionId": viewer.id} if viewer.over_http else {}
            answer(make_result(id_, answer_initialize(cache.result, own, **extra)))
            self._hub.news.welcome(viewer)
            self._let_in(viewer)

        def fail(failure: AgentFailure) -> None:
            viewer.is_greeting = False
            viewer.greeting = None  # or the agent would be told of it again, and might end by it again
            answer(refuse_initialize(id_, failure))
            self._let_in(viewer)

        self._note_greeting(viewer, message.params, is_reader=viewer.read_only or abilities.read_only)
        if viewer.is_greeting:
            problem = "initialize is still under way; wait for its answer"
            answer(make_error(id_, ErrorCode.INVALID_REQUEST, problem))
        elif (
            viewer.greeting and offers_more(viewer.greeting, supervisor.initialize.sent) and self._hub.is_agent_blank()
        ):
            viewer.is_greeting = True
            supervisor.restart(succeed, fail)
        elif cache.result is not None:
            succeed()
        else:
            viewer.is_greeting = True
            supervisor.when_ready(succeed, fail)

    def _hold(self, viewer: "Viewer", message: Message, line: bytes) -> None:
        """Have a message wait for the answer to `initialize`, as it would at the agent; not endlessly many."""
        settings = self._hub.settings
        held_bytes = sum(map(len, viewer.held))
        if len(viewer.held) < settings.max_requests and held_bytes + len(line) <= settings.viewer_window_bytes:
            viewer.held.append(line)
        elif message.method is not None and message.id is not UNSET:
            problem = f"too much came before initialize was answered: {len(viewer.held)} messages wait; send it then"
            viewer.refuse(bytes(message.id), ErrorCode.INVALID_REQUEST, problem)

    def _let_in(self, viewer: "Viewer") -> None:
        """Take what waited for the answer to `initialize`."""
        held, viewer.held = viewer.held, []
        for line in held:
            viewer.receive(line)

    def _note_greeting(self, viewer: "Viewer", params: msgspec.Raw, *, is_reader: bool) -> None:
        supervisor = self._hub.supervisor
        if not is_reader:
            viewer.greeting = msgspec.Raw(bytes(params))
        supervisor.initialize.propose(viewer.greeting or reader_params(params), is_reader=is_reader)

    def _request(self, request: Request) -> None:
        viewer = request.viewer
        problem = self._objection(request)
        if problem is not None:
            place = viewer.attachments.get(request.session_id or "")
            viewer.refuse(request.id, ErrorCode.INVALID_REQUEST, problem, place)
            return
        if request.session_id is not None:
            viewer.note_use(request.session_id)
        request.begin()
        if request.session_id is not None and request.method in _REOPENING:
            viewer.note_wish(request.key, request.session_id)
        handle = self._requests.get(request.method)
        if handle is not None:
            handle(request)
            return
        session = self._hub.sessions.get(request.session_id or "")
        self.forward(request, session=session)

    def _authenticate(self, request: Request) -> None:
        """Have somebody log in, and then try what the agent would not do before."""

        def answered(message: Message, line: bytes) -> None:
            request.pass_on(line)
            if message.error is UNSET:
                self._hub.supervisor.initialize.has_login = True
                self._hub.waker.logged_in()

        self.forward(request, then=answered)

    def _objection(self, request: Request) -> str | None:
        viewer = request.viewer
        limit = self._hub.settings.max_requests
        if viewer.abilities is None:
            return f"{request.method} came before initialize was answered; send that first"
        if viewer.read_only and request.method not in _FOR_READERS:
            return f"this viewer may only read, and {request.method} would do more; ask the owner for a link that may"
        if request.id in viewer.calls:
            return f"a request with the id {request.id.decode()} is still under way; give each its own"
        if len(viewer.calls) >= limit:
            return f"{limit} requests of this viewer are under way; wait for answers before sending more"
        return None

    def _notification(self, viewer: "Viewer", method: str, message: Message, line: bytes) -> None:
        if viewer.abilities is None:
            return
        if method == "_dragoman/leave":
            self._leave(viewer, session_of(message.params) or "")
            return
        if viewer.read_only:
            return
        if method == "$/cancel_request":
            self._cancel_request(viewer, message)
            return
        session = self._hub.sessions.get(session_of(message.params) or "")
        if method == "session/cancel" and session is not None:
            self._turns.cancel(session)
        if self._hub.supervisor.is_ready and not self._hub.supervisor.is_clogged:
            self._hub.supervisor.write(line)
        if method == "session/cancel" and session is not None:
            self._hub.asks.cancel_session(session)

    def _leave(self, viewer: "Viewer", session_id: str) -> None:
        """Take a viewer off a session that it shows no more; what it asked for goes on."""
        session = self._hub.sessions.get(session_id)
        if session is not None and viewer in session.attachments:
            self._hub.detach(viewer, session)

    def _cancel_request(self, viewer: "Viewer", message: Message) -> None:
        requested = fields_of(message.params).get("requestId")
        agent_id = None if requested is None else viewer.calls.get(bytes(requested))
        if requested is None or agent_id is None:
            return
        if agent_id:
            params = {**fields_of(message.params), "requestId": msgspec.Raw(agent_id)}
            self._hub.supervisor.write(make_notification("$/cancel_request", params))
        else:
            self._hub.waker.withdraw(viewer, bytes(requested))
