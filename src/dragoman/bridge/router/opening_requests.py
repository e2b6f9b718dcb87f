"""Requests that open a session: `session/new`, `session/fork`, `session/load` and `session/resume`.

A session that is open here is served from its journal. Otherwise the journal is opened, or the agent is asked, or both:

    load ──► _open ──► the journal          (`ServedSessions.open_stored`)
               │
               └─────► open_at_agent        (`ServedSession.open_at_agent`)
                            │
    _serve ◄────────────────┘               the viewer is subscribed, and receives the answer after the records

One load at a time opens a session, and the others wait for its end (`ServedSessions.loads`).

A viewer may send the cursor of the last record that it has. If the journal still has that place, the viewer continues
after it.
"""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from msgspec import UNSET, Raw

from dragoman.bridge.agent_host import AgentHost
from dragoman.bridge.agent_link import CallAnswer
from dragoman.bridge.delivery import Cursor, History, read_cursor
from dragoman.bridge.envelope import is_given, parse_list, with_result_meta
from dragoman.bridge.sessions import PASSING, ServedSession, ServedSessions, SessionPhase, describe_closed
from dragoman.bridge.settings import AgentLimits
from dragoman.bridge.tasks import Waiters
from dragoman.bridge.translation import V2
from dragoman.bridge.viewers import Delivery, Subscription, Viewer, ViewerRequest
from dragoman.cancellation import finish_in_thread
from dragoman.errors import DragomanError, ErrorCode, RpcError, SessionBusyError
from dragoman.protocol.session_origin import ORIGIN_KEY, read_origin
from dragoman.store import is_same_directory
from dragoman.wire.envelope import fields_of, string_of

FORK_KEY = "dragoman/fork"
"""Key in `_meta` of the answer to a fork that has only a part of its parent's history."""


_MAX_MISSED = 2_000
"""Records that a viewer with a history in parts may have missed. If it has missed more, it reads the end again."""


class OpeningRequests:
    """Opens sessions for the viewers of one agent."""

    def __init__(self, limits: AgentLimits, *, host: AgentHost, delivery: Delivery, sessions: ServedSessions) -> None:
        self._limits = limits
        self._host = host
        self._histories = delivery.histories
        self._spawn = delivery.spawn
        self._sessions = sessions

    async def new(self, request: ViewerRequest) -> CallAnswer | None:
        """Answer `session/new` and `session/fork`: ask the agent for a session, and subscribe the viewer to it."""
        check_paths(request)
        self._check_limit(request.viewer)
        call = request.send_to(await self._host.link_for(request.agent_version))
        with self._sessions.watch_silence(call, request, None):
            answer = await call
        result = answer.result
        session_id = string_of(result.get("sessionId"))
        if answer.is_error or session_id is None:
            return answer
        if not self._histories.can_keep(session_id):
            problem = (
                f"the agent gave the session the id {session_id!r}, and the database of this bridge cannot store NUL "
                "characters; use an agent with other ids, or a bridge without --store"
            )
            raise RpcError(ErrorCode.INTERNAL_ERROR, problem)
        if FORK_KEY in fields_of(result.get("_meta", UNSET)):
            # The fork ends before some message that only the agent knows. Its history arrives with the first load.
            return answer
        is_known = request.session_id is not None and self._sessions.knows(request.session_id)
        if is_known and self._sessions.find(session_id) is None:
            await self._add_fork(request, session_id, answer)
        elif session_id in self._histories.stored and not self._histories.is_shared:
            await self._add_synced(request, session_id, answer)
        else:
            self._add_new(request, session_id, answer)
        return None

    async def load(self, request: ViewerRequest) -> CallAnswer | None:
        """Answer `session/load` and `session/resume`: open a session that existed before."""
        check_paths(request)
        session_id = request.session_id
        if session_id is None:
            return await self._sessions.pass_on(request)
        _check_replay(request)
        loads = self._sessions.loads
        while session_id in loads:
            await loads[session_id].add()
        if request.viewer.closed.is_set():
            return None
        # An open session is served from its journal, unless the agent may know more of it.
        session = self._sessions.find(session_id)
        if session is not None and not self._may_replay(request, session):
            self._bring_back(request, session)
            self._serve(request, session)
            return None
        if session is None:
            self._check_limit(request.viewer)
        loads[session_id] = waiters = Waiters()
        try:
            return await self._open(request, session_id, session)
        finally:
            del loads[session_id]
            waiters.release()

    async def _open(self, request: ViewerRequest, session_id: str, session: ServedSession | None) -> CallAnswer | None:
        """Open a session from its journal, from the agent, or from both.

        Raises SessionBusyError if another node is faster.
        """
        if session is None and not request.viewer.read_only:  # a reader receives the journal without the agent
            await self._host.link()
        if session is None:
            with self._explain_unreadable(session_id):
                session = await self._sessions.open_stored(session_id) or await self._begin(request, session_id)
        had_history = session.phase is not SessionPhase.OPENING
        if had_history and not self._may_replay(request, session):
            self._bring_back(request, session)
        else:
            if had_history:
                session.begin_replay(request)
                if _is_paged(request):  # it reads the journal meanwhile, and what the agent adds follows
                    self._serve(request, session)
            answer = await session.open_at_agent(request)
            is_passing = had_history and answer.error is not None and answer.error.code in PASSING
            if answer.is_error and not (session.state == "gone" or is_passing):
                return answer
        # The agent's replay may have added to the journal. Without an older journal the viewer has followed the replay.
        self._serve(request, session, is_followed=not had_history)
        return None

    async def open_history(self, request: ViewerRequest) -> None:
        """Open the history of a session that left memory, for a request that the agent serves.

        Raises RpcError, and SessionBusyError if another node is faster.
        """
        session_id = request.session_id or ""
        if self._histories.stored[session_id].closed and not request.viewer.knows_extensions:
            raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, describe_closed(session_id))
        self._check_limit(request.viewer)
        with self._explain_unreadable(session_id):
            await self._sessions.open_stored(session_id)

    @contextmanager
    def _explain_unreadable(self, session_id: str) -> Generator[None]:
        """Raise RpcError for a journal that cannot be read, and SessionBusyError if another node has the session."""
        try:
            yield
        except RpcError:
            raise
        except (OSError, DragomanError) as error:
            if isinstance(error, SessionBusyError) and self._histories.is_shared:
                raise
            reason = error.strerror if isinstance(error, OSError) else error
            problem = f"the journal of session {session_id} cannot be read: {reason}; try again"
            raise RpcError(ErrorCode.INTERNAL_ERROR, problem) from None

    async def _begin(self, request: ViewerRequest, session_id: str) -> ServedSession:
        """Begin the journal of a session that only the agent may have. The viewer follows the agent's replay.

        Raises RpcError, SessionBusyError, LogError.
        """
        if request.viewer.read_only:
            problem = f"session {session_id} is not open here, and this viewer is not allowed to open it"
            raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, problem)
        if not self._host.support.can_reopen:
            problem = f"there is no session {session_id} here, and the agent cannot open earlier ones; start a new one"
            raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, problem)
        history = self._begin_history(session_id, request.params)
        await self._histories.claim(history)
        session = self._create(session_id, request, SessionPhase.OPENING, history)
        if request.wants_replay and not request.viewer.closed.is_set():
            session.subscribe(request.viewer, 0)
            is_reset = _wanted_cursor(request, session) is not None
            self._sessions.announcements.session_opened(session, request.viewer, after=0, reset=is_reset)
        return session

    def _bring_back(self, request: ViewerRequest, session: ServedSession) -> None:
        """Reopen a session at the agent if it was closed or only its journal was open."""
        if not self._may_wake(request, session):
            return
        if session.is_resting or not session.params:
            session.keep_params(request)
        if session.phase is SessionPhase.CLOSED:
            session.phase = SessionPhase.ASLEEP
        elif session.phase is SessionPhase.JOURNAL_ONLY:
            session.wake()

    def _may_replay(self, request: ViewerRequest, session: ServedSession) -> bool:
        """Return whether the agent may know more of a session than its journal, and may be asked."""
        can_load = request.wants_replay and self._host.support.load
        return session.is_resting and can_load and self._may_wake(request, session)

    def _may_wake(self, request: ViewerRequest, session: ServedSession) -> bool:
        is_subagent = session.info.label.parent is not None  # its parent has it opened
        return not request.viewer.read_only and not is_subagent and _find_wrong_cwd(request, session) is None

    def _check_limit(self, viewer: Viewer) -> None:
        limit, step = self._limits.max_sessions, "close or delete some"
        if viewer.read_only:
            limit, step = limit // 2, "the others are reserved for the owner; try again later"
        if len(self._sessions.by_id) >= limit and self._sessions.count_open() >= limit:
            raise RpcError(ErrorCode.INTERNAL_ERROR, f"{limit} sessions are open, which is the limit; {step}")

    def _add_new(
        self, request: ViewerRequest, session_id: str, answer: CallAnswer, history: History | None = None
    ) -> None:
        """Register a session that the agent has opened, and subscribe the viewer to it.

        `history` is the journal that was begun for a fork. The viewer starts after its records.
        """
        cursor = 0 if history is None else history.next_end
        session = self._sessions.find(session_id)
        if session is None:
            history = history or self._begin_history(session_id, request.params)
            session = self._create(session_id, request, SessionPhase.LIVE, history)
        self._sessions.settle(session)
        session.opened(answer.result)
        origin = read_origin(_meta_of(request.params))
        if origin is not None:
            self._spawn(self._sessions.record_origin(session_id, origin))
        if request.viewer.closed.is_set() or request.is_over:
            request.end()
            return
        subscription = session.subscribe(request.viewer, cursor)
        self._sessions.announcements.session_opened(session, request.viewer, after=cursor)
        line = answer.line
        if request.viewer.has_cursors:
            line = with_result_meta(line, {"cursor": session.history.cursor(cursor)})
        request.pass_opened(line, subscription, cursor)

    async def _add_fork(self, request: ViewerRequest, session_id: str, answer: CallAnswer) -> None:
        """Begin the journal of a fork with a copy of its parent's. Updates of the fork are held until that is done."""
        parent: ServedSession | None = None
        with suppress(OSError, DragomanError):
            parent = await self._sessions.open_stored(request.session_id or "")
        if parent is None:
            await self._add_synced(request, session_id, answer)
            return
        parent.history.flush()
        pieces = await self._histories.copy_for(parent.history, session_id)
        history = self._begin_history(session_id, request.params)
        for version, lines in pieces:
            history.set_version(version)
            history.append(lines)
            if not self._histories.is_shared:  # another task writes a journal in a database
                history.flush()
                await asyncio.sleep(0)  # let other tasks run between the parts of a long history
        await self._add_synced(request, session_id, answer, history)
        fork = self._sessions.by_id[session_id]
        fork.info.title = fork.info.title or parent.info.title
        fork.info.prompted = parent.info.prompted
        fork.changed()

    async def _add_synced(
        self, request: ViewerRequest, session_id: str, answer: CallAnswer, history: History | None = None
    ) -> None:
        """Sync the journal of a new session before it replaces a stored one. Updates are held until that is done.

        Without the sync a power cut could lose both journals.
        """
        async with self._sessions.opening_lock(session_id):
            if session_id in self._histories.stored:
                history = history or self._begin_history(session_id, request.params)
                sync = history.begin_sync()
                if sync is not None:
                    await finish_in_thread(sync)
            self._add_new(request, session_id, answer, history)

    def _create(self, session_id: str, request: ViewerRequest, phase: SessionPhase, history: History) -> ServedSession:
        """Register a session."""
        history.set_version(self._host.version)
        session = self._sessions.add(session_id, fields_of(request.params), history, phase)
        session.info.params_version = request.agent_version
        return session

    def _begin_history(self, session_id: str, params: Raw) -> History:
        fields = fields_of(params)
        directories = [text for raw in parse_list(fields.get("additionalDirectories")) if (text := string_of(raw))]
        return self._histories.create(session_id, string_of(fields.get("cwd")) or "", directories)

    def _serve(self, request: ViewerRequest, session: ServedSession, *, is_followed: bool = False) -> None:
        """Subscribe a viewer to an open session, and answer its request. Raises RpcError.

        `is_followed`: the viewer has received the agent's replay already.
        """
        viewer = request.viewer
        if viewer.closed.is_set() or request.is_over:
            return
        here = session.subscriptions.get(viewer)
        if is_followed and here is not None:
            self._answer(request, session, here, session.history.next_end)
            self._sessions.questions.viewer_joined(session, viewer)
            return
        refusal = _find_wrong_cwd(request, session)
        if refusal is not None:
            raise RpcError(ErrorCode.INVALID_PARAMS, refusal)
        wanted = _wanted_cursor(request, session)
        end = session.history.next_end
        fits = wanted is not None and session.history.has(wanted)
        # A load begins at the start. A resume continues at the viewer's position, or at the end. A relay cannot
        # withdraw messages that it has passed on, so without a valid cursor it continues at the end.
        cursor = 0
        is_paged = _is_paged(request) and (not fits or (wanted is not None and end - wanted.seq > _MAX_MISSED))
        is_relay = viewer.has_cursors and not viewer.knows_extensions
        if not request.wants_replay and (wanted is None or (is_relay and not fits)):
            cursor = end if here is None else here.position
        if wanted is not None and fits:
            cursor = wanted.seq
        has_history = here is not None or (wanted is not None and fits)
        if is_paged:
            cursor, has_history, fits = end, True, False
        subscription = session.subscribe(viewer, cursor, has_history=has_history)
        is_reset = wanted is not None and not fits
        self._sessions.announcements.session_opened(session, viewer, after=cursor, reset=is_reset)
        self._answer(request, session, subscription, end, is_reset=is_reset, is_paged=is_paged)
        self._sessions.questions.viewer_joined(session, viewer)

    def _answer(
        self,
        request: ViewerRequest,
        session: ServedSession,
        subscription: Subscription,
        end: int,
        *,
        is_reset: bool = False,
        is_paged: bool = False,
    ) -> None:
        """Answer a request that opened a session, after its records. In version 2 the state precedes the answer."""
        if request.viewer.version == V2:
            request.viewer.send(session.describe_state(), subscription, end)
        result = self._result(request, session, end, is_reset=is_reset, is_paged=is_paged)
        request.answer_opened(result, subscription, end)

    def _result(
        self, request: ViewerRequest, session: ServedSession, end: int, *, is_reset: bool, is_paged: bool
    ) -> dict[str, Any]:
        # Over HTTP the answer names the session, as in the proposal's examples. Clients open its stream by that id.
        named = {"sessionId": session.id} if request.viewer.over_http else {}
        setup = session.setup.fields
        if session.version != self._host.version:
            setup = {}  # it has the form of the version that the agent spoke before
        if not request.viewer.has_cursors:
            return {**named, **setup}
        own: dict[str, Any] = {"cursor": session.history.cursor(end), "state": session.state}
        own |= {"title": session.info.title, "asked": self._sessions.questions.count_for(session, request.viewer)}
        if is_reset:
            own["reset"] = True
        if is_paged and end > 0:
            own["before"] = session.history.cursor(end)
        return {**named, **setup, "_meta": {"dragoman": own}}


def _is_paged(request: ViewerRequest) -> bool:
    """Return whether a viewer loads a session without its history, which it then requests in parts."""
    own = fields_of(fields_of(fields_of(request.params).get("_meta", UNSET)).get("dragoman", UNSET))
    return request.wants_replay and request.viewer.knows_extensions and is_given(own.get("paged"))


def _wanted_cursor(request: ViewerRequest, session: ServedSession) -> Cursor | None:
    """Return the cursor that the viewer wants to continue after, if it named one. An unreadable one fits nowhere."""
    own = fields_of(fields_of(fields_of(request.params).get("_meta", UNSET)).get("dragoman", UNSET))
    after = string_of(own.get("after"))
    if after is not None:
        return read_cursor(after) or Cursor(after, -1)
    subscription = request.viewer.subscription(session.id)
    return None if subscription is None else subscription.pop_resume_from()


def _find_wrong_cwd(request: ViewerRequest, session: ServedSession) -> dict[str, Any] | None:
    """Return the refusal of a request that names another directory than the session's."""
    cwd = string_of(fields_of(request.params).get("cwd"))
    if cwd is None or not session.cwd or is_same_directory(cwd, session.cwd):
        return None
    problem = f"session {session.id} belongs to {session.cwd}; send that as its cwd"
    return {"path": "params.cwd", "problem": problem, "expected": session.cwd, "got": cwd}


def check_paths(request: ViewerRequest) -> None:
    """Refuse a relative directory, which each agent would resolve in its own way. Raises RpcError."""
    fields = fields_of(request.params)
    named = [("cwd", fields.get("cwd"))]
    named += [
        (f"additionalDirectories[{position}]", raw)
        for position, raw in enumerate(parse_list(fields.get("additionalDirectories")))
    ]
    for name, raw in named:
        given = string_of(raw)
        # The agent may run on a machine of another kind than this one.
        if given is None or PurePosixPath(given).is_absolute() or PureWindowsPath(given).is_absolute():
            continue
        hint = "; `~` is for shells, send the home directory itself" if given.startswith("~") else ""
        problem = f"{name} must be an absolute path, got {given!r}{hint}"
        data = {"path": f"params.{name}", "problem": problem, "expected": "an absolute path", "got": given}
        raise RpcError(ErrorCode.INVALID_PARAMS, data)


def _check_replay(request: ViewerRequest) -> None:
    """Refuse a replay from an unknown place. Raises RpcError."""
    start = fields_of(request.params).get("replayFrom")
    if start is None or not is_given(start) or string_of(fields_of(start).get("type")) == "start":
        return
    problem, expected = "sessions can only be replayed from the start", '{"type": "start"}'
    data = {"path": "params.replayFrom", "problem": problem, "expected": expected, "got": bytes(start).decode()}
    raise RpcError(ErrorCode.INVALID_PARAMS, data)


def _meta_of(params: Raw) -> dict[str, str | None]:
    """Return the origin in the `_meta` of params, if there is one."""
    return {ORIGIN_KEY: string_of(fields_of(fields_of(params).get("_meta", UNSET)).get(ORIGIN_KEY))}
