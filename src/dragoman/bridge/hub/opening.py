"""Requests that open a session: a new one, or one that there was before.

A session that is here is served from its journal, whatever the agent can do. One that is not is asked of the agent,
once, however many viewers want it: the others wait and are then served from the journal.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw

from dragoman.bridge.envelope import fields_of, is_unrouted, make_request, parse_list, string_of, with_id
from dragoman.bridge.hub.journal import Journal
from dragoman.bridge.hub.place import read_place
from dragoman.bridge.hub.replay import Replay
from dragoman.bridge.hub.request import Request
from dragoman.bridge.hub.session import Session
from dragoman.bridge.supervisor import AgentCall, AgentFailure, SilenceTimer, silence_failure
from dragoman.errors import ErrorCode
from dragoman.store import is_same_directory
from dragoman.wire import Message
from dragoman.wire.message import ErrorObject, parse_error

if TYPE_CHECKING:
    from dragoman.bridge.hub.desk import Desk
    from dragoman.bridge.hub.hub import Hub

LOAD = "session/load"
RESUME = "session/resume"


class Opening:
    """Opens sessions for viewers."""

    def __init__(self, hub: "Hub", desk: "Desk") -> None:
        self._hub = hub
        self._desk = desk
        self._under_way: dict[str, list[Request]] = {}
        """Sessions that are being opened, with the requests that came meanwhile."""

    def new(self, request: Request) -> None:
        """Have the agent open a session, and put the viewer on it."""
        if self._is_full(request):
            return
        self._hub.holdings.note_servers(request.viewer, request.params)

        def answered(message: Message, line: bytes) -> None:
            result = fields_of(message.result)
            session_id = string_of(result.get("sessionId"))
            if message.result is UNSET or session_id is None:
                request.pass_on(line)
                return
            parent = self._hub.sessions.get(request.session_id or "")
            if parent is not None and session_id not in self._hub.sessions:
                self._hub.spawn(self._add_fork(request, session_id, parent, result, line))
            else:
                self._add_new(request, session_id, result, line)

        self._desk.forward(request, then=answered, watch=lambda call: self._watch(call, request))

    def load(self, request: Request) -> None:
        """Open a session that there was before: `session/load` and `session/resume`."""
        session_id = request.session_id
        if session_id is None:
            self._desk.forward(request)
            return
        if session_id in self._under_way:
            self._under_way[session_id].append(request)
            return
        session = self._hub.sessions.get(session_id)
        if session is not None and self._may_replay(request, session):
            self._under_way[session_id] = []
            self._replay(request, session)
        elif session is not None:
            self._revive(session, request)
            self._serve(request, session)
        elif not self._is_full(request):
            self._under_way[session_id] = []
            self._open_when_ready(session_id, request)

    def _open_when_ready(self, session_id: str, request: Request) -> None:
        def go_on() -> None:
            self._hub.spawn(self._open(session_id, request))

        def failed(failure: AgentFailure) -> None:
            request.fail(failure)
            self._finish(session_id)

        self._hub.supervisor.when_ready(go_on, failed)

    def _add_new(
        self, request: Request, session_id: str, result: dict[str, Raw], line: bytes, history: Sequence[bytes] = ()
    ) -> None:
        """Make a session known that the agent has opened, and put the viewer on it."""
        session = self._hub.sessions.get(session_id) or self._create(session_id, request.params, history)
        self._hub.settle(session)
        session.live = True
        session.keep_setup(result)
        if request.end() and not request.viewer.closed.is_set():
            cursor = len(history)
            attachment = session.attach(request.viewer, cursor)
            self._hub.news.attached(session, request.viewer, after=cursor)
            request.viewer.open_session(with_id(line, request.id), attachment, cursor, is_new=True)

    async def _add_fork(
        self, request: Request, session_id: str, parent: Session, result: dict[str, Raw], line: bytes
    ) -> None:
        """Begin the journal of a fork with what its parent has said; what the fork says meanwhile is held back."""
        parent.journal.flush()
        history = await self._hub.shelf.copy_for(parent.journal, session_id)
        self._add_new(request, session_id, result, line, history)
        fork = self._hub.sessions[session_id]
        fork.title = fork.title or parent.title
        fork.prompted = parent.prompted
        self._hub.changed(fork)

    def _is_full(self, request: Request) -> bool:
        limit = self._hub.settings.max_sessions
        if len(self._hub.sessions) < limit:
            return False
        problem = f"{limit} sessions are open, which is the limit; delete some, or start the bridge again"
        request.refuse(ErrorCode.INTERNAL_ERROR, problem)
        return True

    def _create(self, session_id: str, params: Raw, history: Sequence[bytes] = ()) -> Session:
        """Begin the journal of a session, with what the agent has said of it already."""
        journal = self._begin_journal(session_id, params)
        for line in history:
            journal.add(line)
        return self._hub.add_session(session_id, fields_of(params), journal)

    def _begin_journal(self, session_id: str, params: Raw) -> Journal:
        fields = fields_of(params)
        directories = [text for raw in parse_list(fields.get("additionalDirectories")) if (text := string_of(raw))]
        return self._hub.shelf.create(session_id, string_of(fields.get("cwd")) or "", directories)

    async def _open(self, session_id: str, request: Request) -> None:
        """Open a session that is not here: its journal has it, or the agent, or both."""
        try:
            session = await self._take_from_shelf(session_id)
        except OSError as error:
            problem = f"the journal of session {session_id} cannot be read: {error.strerror}; try again"
            request.refuse(ErrorCode.INTERNAL_ERROR, problem)
            self._finish(session_id)
            return
        if session is not None:
            if self._may_replay(request, session):
                self._replay(request, session)
                return
            self._revive(session, request)
            self._serve(request, session)
        elif request.viewer.read_only:
            problem = f"session {session_id} is not open here, and this viewer may not have it opened"
            request.refuse(ErrorCode.RESOURCE_NOT_FOUND, problem)
        elif not self._hub.supervisor.support.can_reopen:
            problem = f"there is no session {session_id} here, and the agent can open no earlier ones; start a new one"
            request.refuse(ErrorCode.RESOURCE_NOT_FOUND, problem)
        else:
            session = self._create(session_id, request.params)
            if request.method == LOAD and not request.viewer.closed.is_set():
                session.attach(request.viewer, 0)
                is_reset = self._wanted(request, session) is not None
                self._hub.news.attached(session, request.viewer, after=0, reset=is_reset)
            self._ask_agent(request, session)
            return
        self._finish(session_id)

    async def _take_from_shelf(self, session_id: str) -> Session | None:
        journal = await self._hub.shelf.reopen(session_id)
        if journal is None:
            return None
        session = self._hub.add_session(session_id, {}, journal)
        session.live, session.shelved = False, True
        session.title = session.title or await self._hub.shelf.title_of(journal)
        return session

    def _ask_agent(self, request: Request, session: Session) -> None:
        offers = self._hub.supervisor.support
        method = LOAD if offers.load and (request.method == LOAD or not offers.resume) else RESUME
        self._hub.holdings.note_servers(request.viewer, request.params)

        def answered(message: Message, line: bytes) -> None:
            if is_unrouted(message) and method == RESUME and self._hub.supervisor.initialize.forget_resume():
                self._ask_agent(request, session)
                return
            if message.error is not UNSET:
                self._refused_by_agent(request, session, parse_error(message.error), line)
            else:
                self._opened(request, session, fields_of(message.result))
            self._finish(session.id)

        def failed(failure: AgentFailure) -> None:
            if self._keep_journal(session):
                self._hub.waker.fail(session, failure)
            request.fail(failure)
            self._finish(session.id)

        def make_line(id_: bytes) -> bytes:
            return with_id(request.line, id_) if method == request.method else make_request(id_, method, request.params)

        def send() -> None:
            call = AgentCall(method, answered, failed, origin=request)
            call.timer = self._watch(call, request, session)
            request.sent_as(self._hub.supervisor.call(call, make_line))

        self._hub.supervisor.when_ready(send, failed)  # it may have ended while the journal was read

    def _opened(self, request: Request, session: Session, result: dict[str, Raw]) -> None:
        has_journal = session.shelved
        if session.end_replay():
            self._hub.settle(session)
            self._begin_anew(session)
        elif not has_journal:
            self._hub.settle(session)
            session.prompted = True  # the agent has kept it
        self._hub.waker.came_back(session, result)
        if has_journal:
            self._serve(request, session)
        else:
            self._complete(request, session)

    def _begin_anew(self, session: Session) -> None:
        """Show those who were there the history that the agent has; who does not know how goes on at its end."""
        for viewer in list(session.attachments):
            session.attach(viewer, 0 if viewer.marked else session.journal.next_end)
            if viewer.marked:
                self._hub.news.attached(session, viewer, after=0, reset=True)

    def _refused_by_agent(self, request: Request, session: Session, error: ErrorObject, line: bytes) -> None:
        """Serve what the journal has of a session that the agent has not."""
        if self._keep_journal(session):
            self._hub.waker.refused(session, error)
        if session.gone is None:
            request.pass_on(line)
        else:
            self._serve(request, session)

    def _keep_journal(self, session: Session) -> bool:
        """Forget a session that could not be opened, unless there is a journal of it; tells whether there is."""
        if session.shelved:
            session.drop_replay()
        else:
            self._hub.drop_session(session)
        return session.shelved

    def _watch(self, call: AgentCall, request: Request, session: Session | None = None) -> SilenceTimer:
        """See that the agent gives signs; of a session that is not known yet, whatever it says is one."""

        def signs() -> object:
            if self._hub.asks.concern(request.viewer, session):
                return object()  # it waits for a person, and people take their time
            return self._hub.supervisor.heard if session is None else session.heard

        return SilenceTimer(self._hub.settings.open_timeout_s, signs, lambda: self._fall_silent(call, request, session))

    def _fall_silent(self, call: AgentCall, request: Request, session: Session | None) -> None:
        """Refuse those who wait. An answer that comes late opens the session, and nobody asks for it twice."""
        call.is_awaited = False
        failure = silence_failure(call.method, session.id if session else None, self._hub.settings.open_timeout_s)
        waiting = [request]
        if session is not None:
            waiting += self._under_way[session.id]
            self._under_way[session.id] = []
            if request.viewer in session.attachments and not request.is_over:
                self._hub.detach(request.viewer, session)
        for refused in waiting:
            refused.fail(failure)

    def _complete(self, request: Request, session: Session) -> None:
        """Answer the viewer for which the agent was asked, and which has followed what it said meanwhile."""
        attachment = session.attachments.get(request.viewer)
        if request.is_over or attachment is None:
            self._serve(request, session)
            return
        end = session.journal.next_end
        request.open_session(self._result(request, session, end), attachment, end)
        self._hub.asks.attached(session, request.viewer)
        self._hub.touch(session)

    def _finish(self, session_id: str) -> None:
        for request in self._under_way.pop(session_id, []):
            if not request.viewer.closed.is_set():
                self.load(request)

    def _revive(self, session: Session, request: Request) -> None:
        """Let the agent have a session again of which only the journal was open."""
        if not self._may_wake(request, session):
            return
        session.put_away = False
        if session.shelved:
            session.params = fields_of(request.params)
            self._hub.waker.wake(session)

    def _may_replay(self, request: Request, session: Session) -> bool:
        """Tell whether the agent may know more of a session than its journal, and may be asked."""
        is_resting = session.shelved and not session.waking
        can_load = request.method == LOAD and self._hub.supervisor.support.load
        return is_resting and can_load and self._may_wake(request, session)

    def _replay(self, request: Request, session: Session) -> None:
        session.replay = Replay(self._begin_journal(session.id, request.params))
        session.waking, session.gone = True, None
        session.params = fields_of(request.params)
        self._ask_agent(request, session)

    def _may_wake(self, request: Request, session: Session) -> bool:
        return not request.viewer.read_only and self._refused(request, session) is None

    def _serve(self, request: Request, session: Session) -> None:
        """Serve a session from its journal."""
        viewer = request.viewer
        if viewer.closed.is_set() or request.is_over:
            return
        refusal = self._refused(request, session)
        if refusal is not None:
            request.refuse(ErrorCode.INVALID_PARAMS, refusal)
            return
        wanted = self._wanted(request, session)
        end = session.journal.next_end
        fits = wanted is not None and session.has_place(*wanted)
        here = session.attachments.get(viewer)
        cursor = 0
        if request.method == RESUME and wanted is None:
            cursor = end if here is None else here.cursor
        if wanted is not None and fits:
            cursor = wanted[1]
        attachment = session.attach(viewer, cursor)
        self._hub.news.attached(session, viewer, after=cursor, reset=wanted is not None and not fits)
        request.open_session(self._result(request, session, end), attachment, end)
        self._hub.asks.attached(session, viewer)
        self._hub.touch(session)

    def _wanted(self, request: Request, session: Session) -> tuple[str, int] | None:
        """Give the place after which the viewer wants to go on, if it named one."""
        own = fields_of(fields_of(fields_of(request.params).get("_meta", UNSET)).get("dragoman", UNSET))
        after = string_of(own.get("after"))
        if after is not None:
            place = read_place(after)
            return (after, -1) if place is None else (place.epoch, place.seq)
        attachment = request.viewer.attachments.get(session.id)
        return None if attachment is None else attachment.take_resume_from()

    def _refused(self, request: Request, session: Session) -> dict[str, Any] | None:
        cwd = string_of(fields_of(request.params).get("cwd"))
        if cwd is None or not session.cwd or is_same_directory(cwd, session.cwd):
            return None
        problem = f"session {session.id} belongs to {session.cwd}; send that as its cwd"
        return {"path": "params.cwd", "problem": problem, "expected": session.cwd, "got": cwd}

    def _result(self, request: Request, session: Session, end: int) -> dict[str, Any]:
        # Over HTTP the answer names the session, as in the proposal's examples: clients open its stream by that.
        named = {"sessionId": session.id} if request.viewer.over_http else {}
        if not request.viewer.marked:
            return {**named, **session.setup}
        own = {"cursor": session.cursor(end), "state": session.state, "title": session.title}
        return {**named, **session.setup, "_meta": {"dragoman": own}}
