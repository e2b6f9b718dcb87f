"""Requests that open a session: a new one, or one that there was before.

A session that is open here is served from its journal, whatever the agent can do. Another is asked of the agent, once,
however many viewers want it: the others wait and are then served from the journal.
"""

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Sequence
from typing import Any
from weakref import WeakValueDictionary

from msgspec import UNSET, Raw

from dragoman.bridge.delivery import (
    Journal,
    JournalStore,
    ReplayedJournal,
    ViewerRequest,
)
from dragoman.bridge.envelope import (
    fields_of,
    is_given,
    is_unrouted,
    make_request,
    parse_list,
    string_of,
    with_id,
    with_result_meta,
)
from dragoman.bridge.registry.opening_answers import OpeningAnswers, OpeningQuestions, find_wrong_cwd, take_wanted
from dragoman.bridge.registry.registry import Announcements, SessionRegistry
from dragoman.bridge.registry.restorer import SessionRestorer
from dragoman.bridge.registry.session import ServedSession
from dragoman.bridge.registry.state import LifeEvent, SessionPhase
from dragoman.bridge.settings import AgentLimits
from dragoman.bridge.supervisor import AgentCall, AgentFailure, AgentSupervisor, SilenceTimer, silence_failure
from dragoman.bridge.translation import V1, Version
from dragoman.errors import DragomanError, ErrorCode, SessionBusy
from dragoman.protocol.origin import ORIGIN_KEY, read_origin
from dragoman.wire import Message
from dragoman.wire.message import ErrorObject, parse_error

LOAD = "session/load"
RESUME = "session/resume"


FORK_KEY = "dragoman/fork"
"""In `_meta` of the answer to a fork that has not all of the session that it was made of."""


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
        self._answers = OpeningAnswers(supervisor=supervisor, announcements=announcements, questions=questions)
        self._under_way: dict[str, list[ViewerRequest]] = {}
        """Sessions that are being opened, with the requests that came meanwhile."""
        self.pass_elsewhere: Callable[[ViewerRequest], None] | None = None
        """Takes requests for a session that another node opens or has opened, while it was looked for here."""
        self._reading: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """Held while the journal of a session is opened."""

    def new(self, request: ViewerRequest) -> None:
        """Have the agent open a session, and put the viewer on it: `session/new` and `session/fork`."""
        if self._is_full(request):
            return

        def answered(message: Message, line: bytes) -> None:
            result = fields_of(message.result)
            session_id = string_of(result.get("sessionId"))
            if message.result is UNSET or session_id is None:
                request.pass_on(line)
                return
            parent = self._registry.find(request.session_id)
            if FORK_KEY in fields_of(result.get("_meta", UNSET)):
                # It ends before a message, and the agent knows where: its history comes when it is loaded.
                request.pass_on(line)
                return
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
        if (refusal := _wrong_replay(request)) is not None:
            request.refuse(ErrorCode.INVALID_PARAMS, refusal)
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
            self._answers.serve(request, session)
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
            session = await self.open_journal(session_id)
            if session is None and self._may_ask_agent(request, session_id):
                journal = self._begin_journal(session_id, request.params)
                await journal.claim()
                self._open_unknown(request, session_id, journal)
                return
        except (OSError, DragomanError) as error:
            self._not_opened(request, session_id, error)
            return
        if session is not None:
            if self._may_replay(request, session):
                self._replay(request, session)
                return
            self._reopen(request, session)
            self._answers.serve(request, session)
        self._finish(session_id)

    def _may_ask_agent(self, request: ViewerRequest, session_id: str) -> bool:
        """Tell whether the agent may have a session that has no journal; refuses the request if not."""
        if request.viewer.read_only:
            problem = f"session {session_id} is not open here, and this viewer may not have it opened"
        elif not self._supervisor.support.can_reopen:
            problem = f"there is no session {session_id} here, and the agent can open no earlier ones; start a new one"
        else:
            return True
        request.refuse(ErrorCode.RESOURCE_NOT_FOUND, problem)
        return False

    def _not_opened(self, request: ViewerRequest, session_id: str, error: OSError | DragomanError) -> None:
        if isinstance(error, SessionBusy) and self.pass_elsewhere is not None:
            for each in (request, *self._under_way.pop(session_id, [])):
                self.pass_elsewhere(each)
            return
        reason = error.strerror if isinstance(error, OSError) else error
        problem = f"the journal of session {session_id} cannot be read: {reason}; try again"
        request.refuse(ErrorCode.INTERNAL_ERROR, problem)
        self._finish(session_id)

    async def open_journal(self, session_id: str) -> ServedSession | None:
        """Open a session of which there is a journal, or give it if it is open; raises OSError, DragomanError.

        Among nodes a prompt opens a session too, beside a load: two journals of one session would part the history.
        """
        lock = self._reading.setdefault(session_id, asyncio.Lock())
        async with lock:
            return self._registry.find(session_id) or await self._read_journal(session_id)

    async def _read_journal(self, session_id: str) -> ServedSession | None:
        journal = await self._journals.reopen(session_id)
        if journal is None:
            return None
        session = self._registry.add(session_id, {}, journal, SessionPhase.JOURNAL_ONLY)
        session.info.title = session.info.title or await self._journals.title_of(journal)
        if journal.earlier.has_open_turn:
            session.end_broken_turn("the bridge that ran this turn has ended, and the turn with it; ask again")
        session.set_label(session.info.label)  # a title may have been given while nobody had it open
        return session

    def _open_unknown(self, request: ViewerRequest, session_id: str, journal: Journal) -> None:
        """Ask the agent for a session that has no journal; the viewer follows its replay."""
        session = self._create(session_id, request, SessionPhase.OPENING, journal)
        if request.wants_replay and not request.viewer.closed.is_set():
            session.subscribe(request.viewer, 0)
            is_reset = take_wanted(request, session) is not None
            self._announcements.session_opened(session, request.viewer, after=0, reset=is_reset)
        self._ask_agent(request, session)

    def _add_new(
        self,
        request: ViewerRequest,
        session_id: str,
        result: dict[str, Raw],
        line: bytes,
        history: Sequence[tuple[Version, bytes]] = (),
    ) -> None:
        """Make a session known that the agent has opened, and put the viewer on it."""
        session = self._registry.find(session_id)
        if session is None:
            journal = self._begin_journal(session_id, request.params)
            session = self._create(session_id, request, SessionPhase.LIVE, journal, history)
        self._registry.settle(session)
        self._restorer.restored(session, result)
        origin = read_origin(_meta_of(request.params))
        if origin is not None:
            self._spawn(self._mark(session_id, origin))
        if request.viewer.closed.is_set() or request.is_over:
            request.end()
            return
        cursor = _count_records(history)
        subscription = session.subscribe(request.viewer, cursor)
        self._announcements.session_opened(session, request.viewer, after=cursor)
        if request.viewer.has_cursors:
            line = with_result_meta(line, {"cursor": session.journal.cursor(cursor)})
        request.pass_opened(line, subscription, cursor, is_new=True)

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

    async def _mark(self, session_id: str, origin: str) -> None:
        await self._registry.change_label(session_id, origin=origin)

    def _is_full(self, request: ViewerRequest) -> bool:
        limit = self._limits.max_sessions
        if len(self._registry.sessions) < limit:
            return False
        problem = f"{limit} sessions are open, which is the limit; delete some, or start the bridge again"
        request.refuse(ErrorCode.INTERNAL_ERROR, problem)
        return True

    def _create(
        self,
        session_id: str,
        request: ViewerRequest,
        phase: SessionPhase,
        journal: Journal,
        history: Sequence[tuple[Version, bytes]] = (),
    ) -> ServedSession:
        """Make a session known, and begin its journal with the messages that it begins with."""
        for version, lines in history:
            journal.set_version(version)
            journal.add(lines)
        journal.set_version(self._supervisor.version)
        session = self._registry.add(session_id, fields_of(request.params), journal, phase)
        session.info.params_version = request.agent_version
        return session

    def _begin_journal(self, session_id: str, params: Raw) -> Journal:
        fields = fields_of(params)
        directories = [text for raw in parse_list(fields.get("additionalDirectories")) if (text := string_of(raw))]
        return self._journals.create(session_id, string_of(fields.get("cwd")) or "", directories)

    def _ask_agent(self, request: ViewerRequest, session: ServedSession) -> None:
        """Have the agent load or resume a session, in OPENING or REPLAYING."""
        support = self._supervisor.support
        is_v1 = self._supervisor.version == V1
        method = LOAD if is_v1 and support.load and (request.wants_replay or not support.resume) else RESUME

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
            if request.agent_version != self._supervisor.version:
                failed(AgentFailure("the agent was started again and speaks another version of ACP now; try again"))
                return
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
            self._answers.begin_anew(session)
        elif not had_journal:
            self._registry.settle(session)
            session.info.prompted = True  # the agent has kept it
        self._restorer.restored(session, result)
        if had_journal:
            self._answers.serve(request, session)
        else:
            self._answers.complete(request, session)

    def _refused_by_agent(
        self, request: ViewerRequest, session: ServedSession, error: ErrorObject, line: bytes
    ) -> None:
        """Serve the journal of a session that the agent does not have, or that it could not open just now."""
        had_journal = self._keep_journal(session)
        if had_journal:
            self._restorer.refused(session, error)
        if session.life.is_unreachable or (had_journal and error.code == ErrorCode.INTERNAL_ERROR):
            self._answers.serve(request, session)
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
            _keep_params(session, request)
        if session.life.phase is SessionPhase.CLOSED:
            session.life.take(LifeEvent.OPEN)
        elif session.life.phase is SessionPhase.JOURNAL_ONLY:
            self._restorer.wake(session)

    def _may_replay(self, request: ViewerRequest, session: ServedSession) -> bool:
        """Tell whether the agent may know more of a session than its journal, and may be asked."""
        can_load = request.wants_replay and self._supervisor.support.load
        return session.life.is_resting and can_load and self._may_wake(request, session)

    def _replay(self, request: ViewerRequest, session: ServedSession) -> None:
        journal = self._begin_journal(session.id, request.params)
        journal.set_version(self._supervisor.version)
        session.begin_replay(ReplayedJournal(journal))
        session.life.take(LifeEvent.REPLAY)
        _keep_params(session, request)
        self._ask_agent(request, session)

    def _may_wake(self, request: ViewerRequest, session: ServedSession) -> bool:
        is_subagent = session.info.label.parent is not None  # its parent has it opened
        return not request.viewer.read_only and not is_subagent and find_wrong_cwd(request, session) is None


def _count_records(history: Sequence[tuple[Version, bytes]]) -> int:
    """Count the records of a history in its journal, where each change of the version is one too."""
    versions = [V1, *(version for version, _ in history)]
    changes = sum(before != after for before, after in itertools.pairwise(versions))
    return changes + sum(lines.count(b"\n") for _, lines in history)


def _keep_params(session: ServedSession, request: ViewerRequest) -> None:
    session.params = fields_of(request.params)
    session.info.params_version = request.agent_version


def _wrong_replay(request: ViewerRequest) -> dict[str, Any] | None:
    """Give the refusal of a request whose replay is to begin at an unknown place."""
    start = fields_of(request.params).get("replayFrom")
    if start is None or not is_given(start) or string_of(fields_of(start).get("type")) == "start":
        return None
    problem = "sessions are replayed from their start alone"
    return {
        "path": "params.replayFrom",
        "problem": problem,
        "expected": '{"type": "start"}',
        "got": bytes(start).decode(),
    }


def _meta_of(params: Raw) -> dict[str, str | None]:
    """Give the origin in the `_meta` of params, if there is one."""
    return {ORIGIN_KEY: string_of(fields_of(fields_of(params).get("_meta", UNSET)).get(ORIGIN_KEY))}
