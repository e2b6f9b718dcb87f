"""Requests that open a session: a new one, or one that there was before.

A session that is open here is served from its journal, whatever the agent can do. Another is asked of the agent, once,
however many viewers want it: the others wait and are then served from the journal.
"""

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from msgspec import UNSET, Raw

from dragoman.bridge.delivery import Cursor, Journal, JournalStore, ReplayedJournal, Viewer, ViewerRequest, read_cursor
from dragoman.bridge.envelope import fields_of, is_unrouted, make_request, parse_list, string_of, with_id
from dragoman.bridge.registry.registry import Announcements, SessionRegistry, SessionRestorer
from dragoman.bridge.registry.session import ServedSession
from dragoman.bridge.registry.state import LifeEvent, SessionPhase
from dragoman.bridge.settings import AgentLimits
from dragoman.bridge.supervisor import AgentCall, AgentFailure, AgentSupervisor, SilenceTimer, silence_failure
from dragoman.errors import ErrorCode
from dragoman.store import is_same_directory
from dragoman.wire import Message
from dragoman.wire.message import ErrorObject, parse_error

LOAD = "session/load"
RESUME = "session/resume"


class OpeningQuestions(Protocol):
    """The router's questions, as they matter while a session is opened."""

    def note_servers(self, viewer: Viewer, params: Raw) -> None:
        """Remember the MCP servers inside a viewer, which it gives to a session."""
        ...

    def viewer_joined(self, session: ServedSession, viewer: Viewer) -> None:
        """Ask a viewer the open questions of a session."""
        ...

    def wait_for(self, viewer: Viewer, session: ServedSession | None) -> bool:
        """Tell whether the agent waits for a person: one on this session, or this viewer about its own request."""
        ...


class OpeningRequests:
    """Serves the requests of viewers that open sessions."""

    def __init__(
        self,
        limits: AgentLimits,
        *,
        journals: JournalStore,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        supervisor: AgentSupervisor,
        registry: SessionRegistry,
        restorer: SessionRestorer,
        announcements: Announcements,
        questions: OpeningQuestions,
    ) -> None:
        self._limits = limits
        self._journals = journals
        self._spawn = spawn
        self._supervisor = supervisor
        self._registry = registry
        self._restorer = restorer
        self._announcements = announcements
        self._questions = questions
        self._under_way: dict[str, list[ViewerRequest]] = {}
        """Sessions that are being opened, with the requests that came meanwhile."""

    def new(self, request: ViewerRequest) -> None:
        """Have the agent open a session, and put the viewer on it: `session/new` and `session/fork`."""
        if self._is_full(request):
            return
        self._questions.note_servers(request.viewer, request.params)

        def answered(message: Message, line: bytes) -> None:
            result = fields_of(message.result)
            session_id = string_of(result.get("sessionId"))
            if message.result is UNSET or session_id is None:
                request.pass_on(line)
                return
            parent = self._registry.find(request.session_id)
            if parent is not None and self._registry.find(session_id) is None:
                self._spawn(self._add_fork(request, session_id, parent, result, line))
            else:
                self._add_new(request, session_id, result, line)

        self._restorer.forward(request, answered=answered, make_timer=lambda call: self._make_timer(call, request))

    def load(self, request: ViewerRequest) -> None:
        """Open a session that there was before: `session/load` and `session/resume`."""
        session_id = request.session_id
        if session_id is None:
            self._restorer.forward(request)
            return
        if session_id in self._under_way:
            self._under_way[session_id].append(request)
            return
        session = self._registry.find(session_id)
        if session is not None and self._may_replay(request, session):
            self._under_way[session_id] = []
            self._replay(request, session)
        elif session is not None:
            self._reopen(request, session)
            self._serve(request, session)
        elif not self._is_full(request):
            self._under_way[session_id] = []
            self._open_when_ready(session_id, request)

    def _open_when_ready(self, session_id: str, request: ViewerRequest) -> None:
        def go_on() -> None:
            self._spawn(self._open(session_id, request))

        def failed(failure: AgentFailure) -> None:
            request.fail(failure.data())
            self._finish(session_id)

        self._supervisor.when_ready(go_on, failed)

    async def _open(self, session_id: str, request: ViewerRequest) -> None:
        """Open a session that is not here: its journal has it, or the agent, or both."""
        try:
            session = await self._open_journal(session_id)
        except OSError as error:
            problem = f"the journal of session {session_id} cannot be read: {error.strerror}; try again"
            request.refuse(ErrorCode.INTERNAL_ERROR, problem)
            self._finish(session_id)
            return
        if session is not None:
            if self._may_replay(request, session):
                self._replay(request, session)
                return
            self._reopen(request, session)
            self._serve(request, session)
        elif request.viewer.read_only:
            problem = f"session {session_id} is not open here, and this viewer may not have it opened"
            request.refuse(ErrorCode.RESOURCE_NOT_FOUND, problem)
        elif not self._supervisor.support.can_reopen:
            problem = f"there is no session {session_id} here, and the agent can open no earlier ones; start a new one"
            request.refuse(ErrorCode.RESOURCE_NOT_FOUND, problem)
        else:
            self._open_unknown(request, session_id)
            return
        self._finish(session_id)

    async def _open_journal(self, session_id: str) -> ServedSession | None:
        """Open a session of which there is a journal; raises OSError."""
        journal = await self._journals.reopen(session_id)
        if journal is None:
            return None
        session = self._registry.add(session_id, {}, journal, SessionPhase.JOURNAL_ONLY)
        session.info.title = session.info.title or await self._journals.title_of(journal)
        return session

    def _open_unknown(self, request: ViewerRequest, session_id: str) -> None:
        """Ask the agent for a session that has no journal; the viewer follows its replay."""
        session = self._create(session_id, request.params, SessionPhase.OPENING)
        if request.method == LOAD and not request.viewer.closed.is_set():
            session.subscribe(request.viewer, 0)
            is_reset = self._wanted(request, session) is not None
            self._announcements.session_opened(session, request.viewer, after=0, reset=is_reset)
        self._ask_agent(request, session)

    def _add_new(
        self,
        request: ViewerRequest,
        session_id: str,
        result: dict[str, Raw],
        line: bytes,
        history: bytes = b"",
    ) -> None:
        """Make a session known that the agent has opened, and put the viewer on it."""
        session = self._registry.find(session_id)
        if session is None:
            session = self._create(session_id, request.params, SessionPhase.LIVE, history)
        self._registry.settle(session)
        self._restorer.restored(session, result)
        if request.end() and not request.viewer.closed.is_set():
            cursor = history.count(b"\n")
            subscription = session.subscribe(request.viewer, cursor)
            self._announcements.session_opened(session, request.viewer, after=cursor)
            request.viewer.send_opened(with_id(line, request.id), subscription, cursor, is_new=True)

    async def _add_fork(
        self, request: ViewerRequest, session_id: str, parent: ServedSession, result: dict[str, Raw], line: bytes
    ) -> None:
        """Begin the journal of a fork with that of its parent; updates of the fork are held meanwhile."""
        parent.journal.flush()
        history = await self._journals.copy_for(parent.journal, session_id)
        self._add_new(request, session_id, result, line, history)
        fork = self._registry.sessions[session_id]
        fork.info.title = fork.info.title or parent.info.title
        fork.info.prompted = parent.info.prompted
        fork.changed()

    def _is_full(self, request: ViewerRequest) -> bool:
        limit = self._limits.max_sessions
        if len(self._registry.sessions) < limit:
            return False
        problem = f"{limit} sessions are open, which is the limit; delete some, or start the bridge again"
        request.refuse(ErrorCode.INTERNAL_ERROR, problem)
        return True

    def _create(self, session_id: str, params: Raw, phase: SessionPhase, history: bytes = b"") -> ServedSession:
        """Begin the journal of a session, with the messages that it begins with."""
        journal = self._begin_journal(session_id, params)
        journal.add(history)
        return self._registry.add(session_id, fields_of(params), journal, phase)

    def _begin_journal(self, session_id: str, params: Raw) -> Journal:
        fields = fields_of(params)
        directories = [text for raw in parse_list(fields.get("additionalDirectories")) if (text := string_of(raw))]
        return self._journals.create(session_id, string_of(fields.get("cwd")) or "", directories)

    def _ask_agent(self, request: ViewerRequest, session: ServedSession) -> None:
        """Have the agent load or resume a session, in OPENING or REPLAYING."""
        support = self._supervisor.support
        method = LOAD if support.load and (request.method == LOAD or not support.resume) else RESUME
        self._questions.note_servers(request.viewer, request.params)

        def answered(message: Message, line: bytes) -> None:
            if is_unrouted(message) and method == RESUME and self._supervisor.initialize.forget_resume():
                self._ask_agent(request, session)
                return
            if session.life.is_deleted:
                problem = f"session {session.id} was deleted while it was opened; start a new session"
                request.refuse(ErrorCode.RESOURCE_NOT_FOUND, problem)
            elif message.error is not UNSET:
                self._refused_by_agent(request, session, parse_error(message.error), line)
            else:
                self._opened(request, session, fields_of(message.result))
            self._finish(session.id)

        def failed(failure: AgentFailure) -> None:
            if self._keep_journal(session):
                self._restorer.failed(session, failure)
            request.fail(failure.data())
            self._finish(session.id)

        def make_line(id_: bytes) -> bytes:
            return with_id(request.line, id_) if method == request.method else make_request(id_, method, request.params)

        def send() -> None:
            call = AgentCall(method, answered, failed, origin=request)
            call.timer = self._make_timer(call, request, session)
            request.note_sent(self._supervisor.call(call, make_line))

        self._supervisor.when_ready(send, failed)  # it may have ended while the journal was read

    def _opened(self, request: ViewerRequest, session: ServedSession, result: dict[str, Raw]) -> None:
        # The agent's replay replaces the journal if it has more turns: then all viewers begin anew. Else the viewer is
        # served from the journal. Without an older journal the viewer has followed the replay, and needs its answer.
        had_journal = session.life.phase is SessionPhase.REPLAYING
        if session.end_replay():
            self._registry.settle(session)
            self._begin_anew(session)
        elif not had_journal:
            self._registry.settle(session)
            session.info.prompted = True  # the agent has kept it
        self._restorer.restored(session, result)
        if had_journal:
            self._serve(request, session)
        else:
            self._complete(request, session)

    def _begin_anew(self, session: ServedSession) -> None:
        """Show viewers the history that the agent has; a viewer without our extensions goes on at its end."""
        for viewer in list(session.subscriptions):
            session.subscribe(viewer, 0 if viewer.knows_extensions else session.journal.next_end)
            if viewer.knows_extensions:
                self._announcements.session_opened(session, viewer, after=0, reset=True)

    def _refused_by_agent(
        self, request: ViewerRequest, session: ServedSession, error: ErrorObject, line: bytes
    ) -> None:
        """Serve the journal of a session that the agent does not have."""
        if self._keep_journal(session):
            self._restorer.refused(session, error)
        if session.life.is_unreachable:
            self._serve(request, session)
        else:
            request.pass_on(line)

    def _keep_journal(self, session: ServedSession) -> bool:
        """Forget a session that could not be opened, unless it had a journal before; tells whether it had."""
        had_journal = session.life.phase is SessionPhase.REPLAYING
        if had_journal:
            session.drop_replay()
        elif session.life.phase is SessionPhase.OPENING:
            self._registry.drop(session)
        return had_journal

    def _make_timer(
        self, call: AgentCall, request: ViewerRequest, session: ServedSession | None = None
    ) -> SilenceTimer:
        """Watch for signs of life; about a session that is not known yet, any message of the agent is one."""

        def signs() -> object:
            if self._questions.wait_for(request.viewer, session):
                return object()  # it waits for a person, and people take their time
            return self._supervisor.heard if session is None else session.heard

        return SilenceTimer(self._limits.open_timeout_s, signs, lambda: self._fall_silent(call, request, session))

    def _fall_silent(self, call: AgentCall, request: ViewerRequest, session: ServedSession | None) -> None:
        """Refuse the requests that wait. A late answer opens the session, and the agent is not asked twice."""
        call.is_awaited = False
        failure = silence_failure(call.method, session.id if session else None, self._limits.open_timeout_s)
        waiting = [request]
        if session is not None:
            waiting += self._under_way[session.id]
            self._under_way[session.id] = []
            if request.viewer in session.subscriptions and not request.is_over:
                self._registry.unsubscribe(request.viewer, session)
        for refused in waiting:
            refused.fail(failure.data())

    def _complete(self, request: ViewerRequest, session: ServedSession) -> None:
        """Answer the viewer for which the agent was asked, and which has followed the replay."""
        subscription = session.subscriptions.get(request.viewer)
        if request.is_over or subscription is None:
            self._serve(request, session)
            return
        end = session.journal.next_end
        request.answer_opened(self._result(request, session, end), subscription, end)
        self._questions.viewer_joined(session, request.viewer)

    def _finish(self, session_id: str) -> None:
        """Take the requests that came while a session was opened."""
        for request in self._under_way.pop(session_id, []):
            if not request.viewer.closed.is_set():
                self.load(request)

    def _reopen(self, request: ViewerRequest, session: ServedSession) -> None:
        """Let the agent have a session again of which only the journal was open, or that was closed."""
        if not self._may_wake(request, session):
            return
        if session.life.is_resting or not session.params:
            session.params = fields_of(request.params)
        if session.life.phase is SessionPhase.CLOSED:
            session.life.take(LifeEvent.OPEN)
        elif session.life.phase is SessionPhase.JOURNAL_ONLY:
            self._restorer.wake(session)

    def _may_replay(self, request: ViewerRequest, session: ServedSession) -> bool:
        """Tell whether the agent may know more of a session than its journal, and may be asked."""
        can_load = request.method == LOAD and self._supervisor.support.load
        return session.life.is_resting and can_load and self._may_wake(request, session)

    def _replay(self, request: ViewerRequest, session: ServedSession) -> None:
        session.begin_replay(ReplayedJournal(self._begin_journal(session.id, request.params)))
        session.life.take(LifeEvent.REPLAY)
        session.params = fields_of(request.params)
        self._ask_agent(request, session)

    def _may_wake(self, request: ViewerRequest, session: ServedSession) -> bool:
        return not request.viewer.read_only and self._wrong_cwd(request, session) is None

    def _serve(self, request: ViewerRequest, session: ServedSession) -> None:
        """Serve a session from its journal."""
        viewer = request.viewer
        if viewer.closed.is_set() or request.is_over:
            return
        refusal = self._wrong_cwd(request, session)
        if refusal is not None:
            request.refuse(ErrorCode.INVALID_PARAMS, refusal)
            return
        wanted = self._wanted(request, session)
        end = session.journal.next_end
        fits = wanted is not None and session.journal.has(wanted)
        here = session.subscriptions.get(viewer)
        # A load begins at the start. A resume goes on where the viewer is, or at the end.
        cursor = 0
        if request.method == RESUME and wanted is None:
            cursor = end if here is None else here.cursor
        if wanted is not None and fits:
            cursor = wanted.seq
        subscription = session.subscribe(viewer, cursor)
        self._announcements.session_opened(session, viewer, after=cursor, reset=wanted is not None and not fits)
        request.answer_opened(self._result(request, session, end), subscription, end)
        self._questions.viewer_joined(session, viewer)

    def _wanted(self, request: ViewerRequest, session: ServedSession) -> Cursor | None:
        """Give the cursor after which the viewer wants to go on, if it named one; an unreadable one fits nowhere."""
        own = fields_of(fields_of(fields_of(request.params).get("_meta", UNSET)).get("dragoman", UNSET))
        after = string_of(own.get("after"))
        if after is not None:
            return read_cursor(after) or Cursor(after, -1)
        subscription = request.viewer.subscription(session.id)
        return None if subscription is None else subscription.take_resume_from()

    def _wrong_cwd(self, request: ViewerRequest, session: ServedSession) -> dict[str, Any] | None:
        """Give the refusal of a request that names another directory than the session's."""
        cwd = string_of(fields_of(request.params).get("cwd"))
        if cwd is None or not session.cwd or is_same_directory(cwd, session.cwd):
            return None
        problem = f"session {session.id} belongs to {session.cwd}; send that as its cwd"
        return {"path": "params.cwd", "problem": problem, "expected": session.cwd, "got": cwd}

    def _result(self, request: ViewerRequest, session: ServedSession, end: int) -> dict[str, Any]:
        # Over HTTP the answer names the session, as in the proposal's examples: clients open its stream by that.
        named = {"sessionId": session.id} if request.viewer.over_http else {}
        if not request.viewer.knows_extensions:
            return {**named, **session.setup.fields}
        own = {"cursor": session.journal.cursor(end), "state": session.state, "title": session.info.title}
        return {**named, **session.setup.fields, "_meta": {"dragoman": own}}
