"""A session of the agent: its journal, its viewers, its turns, and whether the agent has it now.

An open session is served from its journal, with any agent. To continue it, the agent must have the session. After a
crash, an idle stop or a close it does not. `await session.at_agent(request)` is the only way to wait until the agent
has the session. It returns the running agent:

    at_agent ──► wake ──► open_at_agent ──► _ask ──► the agent's answer
                                │
                                └──► opened: waiting requests continue │ refused or failed: they are refused

One task at a time asks the agent for the session (`is_asked`), and requests for the session wait in their order
(`waiting`). An agent may send nothing for very long. Then the waiting requests are refused. The task continues, because
the agent may answer late, and must not be asked twice.

A session is not a task with an inbox. Its methods run on the event loop, in the order in which the router and the agent
call them, so that order needs no queue. `at_agent` starts the only task, and only if the agent does not have the
session.
"""

import asyncio
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import UNSET, Raw

from dragoman.bridge.agent_link import AgentFailure, AgentLink, CallAnswer, NoAnswerError
from dragoman.bridge.delivery import AgentReplay, EarlierRun, History, SessionDescription, StoredHistory
from dragoman.bridge.envelope import OrdinaryRun, is_unrouted, make_notification, without_secrets
from dragoman.bridge.sessions.labels import NO_LABEL, SessionLabel, describe_label, title_of
from dragoman.bridge.sessions.phase import CLOSABLE, RELEASABLE, WAKEABLE, SessionPhase
from dragoman.bridge.sessions.prompt_queue import HOLDING_ENDS
from dragoman.bridge.sessions.turns import SessionTurns
from dragoman.bridge.sessions.updates import (
    DiscardedUpdates,
    SessionSetup,
    make_turn_end,
    notice_as_thought,
    to_iso,
    update_of,
    without_title,
)
from dragoman.bridge.translation import V1, V2, Version, setup_for
from dragoman.bridge.viewers import RepeatablePrompt, Subscription, Viewer, ViewerRequest
from dragoman.errors import ErrorCode, RpcError
from dragoman.protocol import methods
from dragoman.store.block import wire_line
from dragoman.store.history import ListedFacts
from dragoman.wire import error_object
from dragoman.wire.envelope import encode, fields_of, make_request, string_of, with_param
from dragoman.wire.message import ErrorObject

if TYPE_CHECKING:
    from dragoman.bridge.sessions.sessions import ServedSessions

LOAD = methods.SESSION_LOAD.name
RESUME = methods.SESSION_RESUME.name
PROMPT = methods.SESSION_PROMPT.name

PASSING = frozenset({ErrorCode.INTERNAL_ERROR, ErrorCode.INVALID_REQUEST})
"""Error codes of agents for a temporary problem: a full disk, a database that is away, a session in use."""

ShownState = Literal["idle", "running", "asleep", "gone"]

PROMPT_KEY = "dragoman/prompt"
"""The key of `_meta` of a user's message, for the key of its prompt."""

_NOTICE = b'"notice"'
_STATE = b'"state_update"'
_USER = b'"user_message'
_CHANGES = (
    b'"current_mode_update"',
    b'"config_option_update"',
    b'"session_info_update"',
    b'"available_commands_update"',
)


class SessionFacts(msgspec.Struct):
    """The facts of a session in its announcements."""

    prompted: bool
    """Whether it was ever prompted. Some agents do not keep other sessions, and lists do not show them."""
    title: str | None = None
    """The title set by the user, else the agent's, else one made from the first prompt."""
    is_title_made: bool = False
    """Whether the title is made from a prompt and viewers have not received it."""
    label: SessionLabel = NO_LABEL
    turns: int = 0
    """The number of running prompts."""
    stop_reason: str | None = None
    error: Any = None
    questions: int = 0
    """The number of the agent's questions that wait for an answer."""
    params_version: Version = V1
    """The version of ACP of the params that opened the session."""


def describe_closed(session_id: str) -> str:
    """Return the problem of a prompt to a closed session."""
    return f"session {session_id} was closed; open it again with session/load or session/resume"


class WaitingRequest:
    """A request that waits until the agent has the session again."""

    def __init__(self, request: ViewerRequest) -> None:
        self.request = request
        self._gate = asyncio.Event()
        self._error: Exception | None = None

    async def wait(self) -> None:
        """Wait to be released. Raises the error that the request is refused with."""
        await self._gate.wait()
        self._gate.clear()  # it may have to wait again
        if self._error is not None:
            raise self._error
        if self.request.is_over:
            raise RpcError(ErrorCode.REQUEST_CANCELLED)

    def release(self) -> None:
        """Let the request continue."""
        self._gate.set()

    def refuse(self, error: Exception) -> None:
        """Raise an error for the request. It may be released already, as long as it has not continued."""
        self._error = self._error or error
        self._gate.set()


class ServedSession:
    """One session of the agent, for all its viewers."""

    def __init__(
        self,
        sessions: "ServedSessions",
        session_id: str,
        params: dict[str, Raw],
        history: History,
        phase: SessionPhase,
        *,
        earlier: EarlierRun,
    ) -> None:
        self.id = session_id
        self.params = params
        """The params that opened the session, with its MCP servers. They are only in memory."""
        self.history = history
        self.phase = phase
        self.is_asked = False
        """Whether the agent is being asked to open it."""
        self.loss: str | None = None
        """The reason why the agent does not have it, in REFUSED and GONE."""
        self.login: str | None = None
        """The problem to report while the agent requires a login."""
        self.info = SessionFacts(prompted=earlier.last_message[0] is not None)
        self.setup = SessionSetup(earlier.config)
        self.subscriptions: dict[Viewer, Subscription] = {}
        self.turns = SessionTurns(earlier.answers)
        self.waiting: list[WaitingRequest] = []
        self.closed_by: Viewer | None = None
        """The viewer that last closed the session, unless it has opened it again."""
        self.received = 0
        """The number of the agent's notifications about the session, which grows while the agent is alive."""
        self._sessions = sessions
        self._host = sessions.host
        self._last_message = earlier.last_message
        self._recorder: History | AgentReplay | DiscardedUpdates = history

    @property
    def cwd(self) -> str:
        """The directory of the session."""
        return self.history.header.cwd

    @property
    def version(self) -> Version:
        """The version of ACP of the latest records."""
        return self.history.version

    @property
    def state(self) -> ShownState:
        """The state in announcements."""
        if self.phase in (SessionPhase.REFUSED, SessionPhase.GONE):
            return "gone"
        if self.info.turns or any(waiting.request.method == PROMPT for waiting in self.waiting):
            return "running"
        return "idle" if self.is_at_agent else "asleep"

    @property
    def is_at_agent(self) -> bool:
        """Whether the agent has the session, or is asked for it for the first time."""
        return self.phase in (SessionPhase.OPENING, SessionPhase.LIVE)

    @property
    def is_resting(self) -> bool:
        """Whether only its journal is open, and the agent may be asked to load it."""
        return self.phase in (SessionPhase.JOURNAL_ONLY, SessionPhase.REFUSED) and not self.is_asked

    @property
    def is_unused(self) -> bool:
        """Whether it can leave memory, because the agent does not need it, no viewer uses it and no prompt waits."""
        is_open = self.subscriptions or self.waiting or self.info.turns or self.turns.held or self.turns.queue
        return self.phase in RELEASABLE and not self.is_asked and not is_open

    def changed(self) -> None:
        """Announce a change of the session to viewers."""
        self._sessions.changed(self)

    # Updates of the agent.

    def receive_run(self, updates: OrdinaryRun) -> None:
        """Journal ordinary updates of the agent, which do not change the state of this object.

        This is the hot path. It is a plain call per run of updates, without a task or a wait.
        """
        if updates.has_user_messages and (self.turns.has_prompts or self.turns.expects_echo):
            for line in updates.lines[:-1].split(b"\n"):
                self.receive(line)
            return
        self.received += updates.count
        self._recorder.append(updates.lines, updates.count, is_ordinary=True)
        self.turns.see_work()

    def receive(self, line: bytes) -> bool:
        """Handle a notification of the agent. Return whether it ended a turn."""
        # Echoes and notices are not journalled. Changes of settings and titles are recorded, and may be replaced. For
        # an agent of version 1 every update is a sign of work. An agent of version 2 sends states instead.
        self.received += 1
        if self.turns.expects_echo and _USER in line and self.turns.is_echo(line):
            self.turns.see_work()
            return False
        if _NOTICE in line and self._pass_notice(line):
            return False
        if b'_update"' in line and any(change in line for change in _CHANGES):
            followed = self._follow(line)
            if followed is None:
                return False
            line = followed
        self._recorder.append(wire_line(line))
        if self.history.version == V1:
            self.turns.see_work()
            return False
        if _USER in line and self.turns.has_prompts:
            self._skip_echo(line)
        return _STATE in line and self._follow_state(line)

    def flush(self) -> None:
        """Write the records that were added to its journal."""
        history = self.history
        history.flush()
        if not self.info.turns and not history.is_sync_due:
            history.rest()  # closes its file, because thousands of sessions may be open while few are running

    def subscribe(self, viewer: Viewer, cursor: int, *, has_history: bool = False) -> Subscription:
        """Subscribe a viewer after a record. The viewer may have the earlier records."""
        subscription = viewer.subscribe(self.id)
        subscription.bind(self.history, cursor, has_history=has_history)
        self.subscriptions[viewer] = subscription
        if viewer is self.closed_by:
            self.closed_by = None
        self.changed()
        return subscription

    def unsubscribe(self, viewer: Viewer) -> None:
        """Unsubscribe a viewer."""
        if self.subscriptions.pop(viewer, None) is not None:
            self.changed()

    def wake_viewers(self) -> None:
        """Wake the streams of all viewers."""
        for viewer, subscription in self.subscriptions.items():
            viewer.outbox.wake(subscription)

    # The session at the agent.

    async def at_agent(self, request: ViewerRequest) -> AgentLink:
        """Wait until the agent has the session, and return the running agent. Raises NoAnswerError, RpcError.

        Waiting requests continue in their order, and no later request overtakes them.
        """
        self._check_reachable(request)
        if self.waiting or not self._is_ready:
            waiting = WaitingRequest(request)
            self.waiting.append(waiting)
            self.changed()
            try:
                if self._is_ready:
                    waiting.release()  # the requests before it continue in this tick
                else:
                    self.wake()
                await waiting.wait()
                while not self._is_ready:  # the agent ended again before this task ran
                    self._check_reachable(request)
                    self.wake()
                    await waiting.wait()
            finally:
                self.waiting.remove(waiting)
        return await self._host.link_for(request.agent_version)

    async def pass_on(self, request: ViewerRequest) -> CallAnswer:
        """Send a request to the agent once it has the session. Return the answer. Raises NoAnswerError, RpcError."""
        answer = await request.send_to(await self.at_agent(request))
        if answer.message.result is not UNSET:
            self._follow_answer(request.method, request.params, answer.message.result)
        return answer

    def wake(self) -> None:
        """Ask the agent to open the session again, unless a task does that already or the agent cannot."""
        if self.phase in WAKEABLE and not self.is_asked:
            self._sessions.start(self._reopen())

    async def _reopen(self) -> None:
        with suppress(NoAnswerError, RpcError):  # the waiting requests were refused
            await self.open_at_agent()

    async def open_at_agent(self, request: ViewerRequest | None = None) -> CallAnswer:
        """Ask the agent to open the session, and release or refuse waiting requests. Raises NoAnswerError, RpcError.

        If there is a request, it is sent to the agent, and messages of the replay that the journal lacks are added.
        Otherwise the bridge sends its own request, and drops a replay.
        """
        self.is_asked = True
        try:
            answer = await self._ask(request)
        except NoAnswerError as error:
            self._fail(error)
            raise
        finally:
            self.is_asked = False
        if self.phase is SessionPhase.DELETED:
            problem = f"session {self.id} was deleted while it was opened; start a new session"
            raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, problem)
        if answer.error is not None:
            self._refused(answer.error)
            return answer
        if self.phase is SessionPhase.OPENING:
            self._sessions.settle(self)
            self.info.prompted = True  # the agent has stored it
        self._end_replay()
        self.opened(answer.result)
        return answer

    async def _ask(self, request: ViewerRequest | None) -> CallAnswer:
        """Ask the agent to load or resume the session, once it runs. Raises NoAnswerError, RpcError."""
        host = self._host
        link = await (host.link() if request is None else host.link_for(request.agent_version))
        support, version = host.support, host.version
        # A viewer's request is sent as it came if the agent supports its method. Otherwise the bridge builds a request
        # from the params that last opened the session, and prefers resume, because it needs no replay.
        if request is not None:
            can_load = version == V1 and support.load
            method = LOAD if can_load and (request.wants_replay or not support.resume) else RESUME
            line = request.line if method == request.method else make_request(b"0", method, request.params)
        elif self.phase is SessionPhase.DELETED:
            raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, f"session {self.id} was deleted")
        elif not support.can_reopen:
            self._make_read_only("its agent process has exited, and the agent can neither load nor resume sessions")
            raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, self.loss)
        else:
            method = RESUME if support.resume else LOAD
            if method == LOAD:
                self._recorder = DiscardedUpdates()
            self.history.set_version(version)
            opened = setup_for(version, self.params, self.info.params_version)
            params: dict[str, Any] = {"cwd": self.cwd, "mcpServers": [], **opened, "sessionId": self.id}
            line = make_request(b"0", method, params)
        call = link.call(method, line, origin=request)
        if request is not None:
            request.record_sent(call.id)
        with self._sessions.watch_silence(call, request, self):
            answer = await call
        # The agent may advertise resume without supporting it. Then load is tried.
        if is_unrouted(answer.message) and method == RESUME and host.initialize.forget_resume():
            return await self._ask(request)
        return answer

    def begin_replay(self, request: ViewerRequest) -> None:
        """Search the replay that a request will start for messages that the journal does not have."""
        self._recorder = AgentReplay(self._last_message)
        self.keep_params(request)

    def keep_params(self, request: ViewerRequest) -> None:
        """Keep the params of a request that opens the session."""
        self.params = fields_of(request.params)
        self.info.params_version = request.agent_version

    def opened(self, result: dict[str, Raw]) -> None:
        """Handle the agent's answer that opened the session, and release the waiting requests."""
        self.phase = SessionPhase.LIVE
        self.loss = self.login = None
        self.history.set_version(self._host.version)
        for update in self.setup.replace(result):
            self._add_update(update)
        self._journal_setup()
        for waiting in self.waiting:
            waiting.release()
        self.changed()

    def cancel(self) -> None:
        """Cancel the work of the session: the agent's turn, waiting prompts and open questions."""
        self.cancel_prompts()
        self.turns.withdraw()
        if self.info.turns and self._host.is_ready:
            self._host.write(make_notification(methods.SESSION_CANCEL.name, {"sessionId": self.id}))
        self._sessions.questions.cancel_session(self)

    def closed(self, by: Viewer | None = None) -> None:
        """Handle that the agent has closed the session, which ends its prompts and questions.

        `by` is the viewer that closed it. If the agent is being asked to open the session, the answer to that decides.
        """
        if self.phase in CLOSABLE and not self.is_asked:
            self.phase = SessionPhase.CLOSED
        self.closed_by = by or self.closed_by
        self.turns.withdraw()
        self.turns.end(None)
        if self.turns.queue:
            self.turns.queue.clear()
            self.announce_queue()
        if self.version == V2:
            self.info.turns = 0
        self._sessions.questions.forget_session(self)
        self._sessions.release_soon()
        self.changed()

    def agent_ended(self, data: dict[str, Any]) -> bool:
        """Handle the end of the agent, with the data of its failure. Return whether the agent had the session."""
        self._fail_turns(data)
        if self.phase is not SessionPhase.LIVE:
            return False
        self.phase = SessionPhase.ASLEEP
        self.changed()
        return True

    @property
    def _is_ready(self) -> bool:
        """Whether the agent has the session and can receive requests."""
        return self.phase is SessionPhase.LIVE and self._host.is_ready

    def _check_reachable(self, request: ViewerRequest) -> None:
        """Refuse a request for a session that the agent cannot have. Raises RpcError."""
        problem = None if self.is_asked else self.loss
        if self.phase is SessionPhase.DELETED:
            problem = f"session {self.id} was deleted; start a new session"
        elif self.phase is SessionPhase.CLOSED and not request.viewer.knows_extensions:
            problem = describe_closed(self.id)
        if problem is not None:
            raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, problem)

    def _end_replay(self) -> None:
        """Add the agent's messages that the journal lacks, because the session was continued elsewhere."""
        replay, self._recorder = self._recorder, self.history
        if isinstance(replay, AgentReplay) and (lines := replay.continuation):
            self.history.set_version(self._host.version)
            self.history.append(lines)
            self.info.prompted = True
            self.changed()

    def _refused(self, error: ErrorObject) -> None:
        """Handle the agent's refusal to open the session: permanent, temporary, or until a login."""
        said = error.text
        if self.phase is SessionPhase.OPENING or error.code == ErrorCode.REQUEST_CANCELLED:
            problem = f"opening session {self.id} was cancelled; try again"
            self._fail(NoAnswerError(AgentFailure(problem)))
        elif error.code in PASSING:
            problem = f"the agent could not reopen session {self.id}: {said}; try again, or start a new session"
            self._fail(NoAnswerError(AgentFailure(problem)))
        elif error.code == ErrorCode.AUTH_REQUIRED:
            self.login = login = (
                f"the agent requires a login before it can reopen session {self.id} ({said}); "
                "send authenticate, then try again"
            )
            self._fail(RpcError(ErrorCode.AUTH_REQUIRED, login))
        else:
            self._make_read_only(f"the agent could not reopen it: {said}")

    def _make_read_only(self, reason: str) -> None:
        """Make the session read-only, because the agent does not have it."""
        loss = "is read-only" if self.info.prompted else "had no prompt yet and is lost"
        self.loss = f"session {self.id} {loss}: {reason}; start a new session"
        was_loaded = self.phase not in (SessionPhase.JOURNAL_ONLY, SessionPhase.REFUSED)
        self.phase = SessionPhase.GONE if was_loaded else SessionPhase.REFUSED
        self._fail(RpcError(ErrorCode.RESOURCE_NOT_FOUND, self.loss))

    def _fail(self, error: NoAnswerError | RpcError) -> None:
        """Refuse waiting requests. A session without an older journal is dropped, any other may be opened later."""
        self._recorder = self.history
        if self.phase is SessionPhase.OPENING:
            self._sessions.drop(self)
        else:
            self.refuse_waiting(error)
            self.changed()

    def withdraw_waiting(self, viewer: Viewer, id_: bytes) -> bool:
        """Refuse a viewer's waiting request that it has cancelled. Return whether there was one."""
        for waiting in self.waiting:
            if waiting.request.viewer is viewer and waiting.request.id == id_:
                problem = "it was cancelled before the agent had reopened the session"
                waiting.refuse(RpcError(ErrorCode.REQUEST_CANCELLED, problem))
                self.changed()
                return True
        return False

    def refuse_waiting(self, error: Exception) -> None:
        """Raise an error for the requests that wait for the agent."""
        for waiting in self.waiting:
            waiting.refuse(error)

    def cancel_prompts(self) -> None:
        """Answer prompts that the agent has not seen yet."""
        prompts = [waiting for waiting in self.waiting if waiting.request.method == PROMPT]
        for waiting in prompts:
            if waiting.request.viewer.version == V1:
                waiting.request.answer({"stopReason": "cancelled"})
            waiting.refuse(RpcError(ErrorCode.REQUEST_CANCELLED, "the prompt was not inserted"))
        if prompts:
            self.changed()

    # Turns and questions.

    def count_question(self, change: int) -> None:
        """Count a question of the agent that was sent (1) or settled (-1)."""
        self.turns.see_work()
        self.info.questions += change
        self._send_state()
        self.changed()

    def begin_turn(
        self,
        viewer: Viewer,
        prompt: list[Raw],
        message_id: str | None = None,
        repeatable: RepeatablePrompt | None = None,
    ) -> None:
        """Journal a viewer's prompt as a user message. Its own viewer recognises it by the key."""
        self.info.turns += 1
        self.turns.expect_echo(prompt)
        self._send_state()
        subscription = self.subscriptions.get(viewer)
        self.propose_title(prompt)
        named = {} if message_id is None else {"messageId": message_id}
        key = None if repeatable is None else repeatable.key
        for block in map(without_secrets, prompt):
            self._add_update({"sessionUpdate": "user_message_chunk", **named, "content": block}, key)
            if subscription is not None and not viewer.knows_extensions and viewer.version == V1:
                subscription.skip(self.history.next_end)
        self._journal_start(repeatable)

    def propose_title(self, prompt: list[Raw]) -> None:
        """Make a title from a prompt. It is shown at the end of the turn if the agent sets none."""
        if self.info.title is None:
            self.info.title = title_of(prompt)
            self.info.is_title_made = self.info.title is not None

    def add_message(self, prompt: list[Raw]) -> None:
        """Journal a message that a viewer sent into a running turn."""
        for block in map(without_secrets, prompt):
            self._add_update({"sessionUpdate": "user_message_chunk", "content": block})

    def show_end(self, stop_reason: str | None, error: Any = None, usage: Raw | None = None) -> None:
        """Journal the title made from the prompt, and the end of the turn if it has facts to show."""
        if self.info.is_title_made and self.info.title is not None:
            self.set_title(self.info.title)
        if (end := make_turn_end(stop_reason, error, usage)) is not None:
            self._add_update(end)

    def announce_queue(self) -> None:
        """Send the queued prompts to viewers."""
        self.turns.queue.announce(self.id, self.subscriptions)

    def end_turn(self, stop_reason: str | None, error: Any = None, *, was_inserted: bool = True) -> None:
        """Journal the end of a turn."""
        self.info.turns = max(0, self.info.turns - 1)
        if not self.info.turns:
            self.turns.forget_echoes()
        self._journal_end(stop_reason, error)
        if not was_inserted:
            self._send_state()
        elif error is not None:
            self._send_state({"stopReason": "error", "error": error})
        else:
            self._send_state({"stopReason": stop_reason or "end_turn"})

    def _fail_turns(self, data: dict[str, Any]) -> None:
        """End the turn at an agent of version 2 that has exited."""
        error = error_object(RpcError(ErrorCode.INTERNAL_ERROR, data))
        if self.turns.is_active:
            self._add_update({"sessionUpdate": "state_update", "state": "idle", "stopReason": "error", "error": error})
            self.info.turns = 0
            self.show_end(None, error)
            self._journal_end(None, error)
        self.turns.end(data)

    def describe_state(self) -> bytes:
        """Return the notification of the state, for a viewer of version 2 that opens the session."""
        if self.version == V2:
            return self._make_update(self.turns.last_state)
        return self._make_update({"sessionUpdate": "state_update", "state": self._turn_state()})

    def set_title(self, title: str) -> None:
        """Set a title that does not come from the agent, and send it to viewers."""
        self.info.title, self.info.is_title_made = title, False
        self._add_update({"sessionUpdate": "session_info_update", "title": title})
        self.history.record("title", encode(title))
        self.changed()

    def set_label(self, label: SessionLabel) -> None:
        """Set the label, and send a new title to viewers."""
        self.info.label = label
        if label.title is not None and label.title != self.info.title:
            self.set_title(label.title)
        self.changed()

    def _follow_answer(self, method: str, params: Raw, result: Raw) -> None:
        """Record a changed setting from the agent's answer to a viewer's request."""
        if method == methods.SESSION_SET_MODE.name and (mode := fields_of(params).get("modeId")) is not None:
            self.setup.set_mode(mode)
        elif (
            method == methods.SESSION_SET_CONFIG_OPTION.name
            and (options := fields_of(result).get("configOptions")) is not None
        ):
            self.setup.set_options(options)
        else:
            return
        self._journal_setup()

    def end_broken_turn(self, problem: str) -> None:
        """Journal the end of a turn that an earlier owner has left unfinished."""
        error = error_object(RpcError(ErrorCode.INTERNAL_ERROR, problem))
        self.show_end(None, error)
        self._journal_end(None, error)

    def listed_facts(self) -> ListedFacts:
        """Return the facts for the lists of other nodes."""
        described = self.describe_for_lists()
        return ListedFacts(
            described.fields["title"],
            is_prompted=described.is_prompted,
            is_archived=bool(described.fields.get("archived")),
            shown=encode({key: value for key, value in described.fields.items() if key != "updatedAt"}),
            updated_ms=self.history.updated_ms,
        )

    def as_stored(self) -> StoredHistory:
        """Return the facts that stay in memory once the session leaves it."""
        return StoredHistory(
            id=self.id,
            cwd=sys.intern(self.cwd),  # many sessions have the same directory
            title=self.info.title,
            updated_ms=self.history.updated_ms,
            prompted=self.info.prompted,
            closed=self.phase is SessionPhase.CLOSED,
        )

    def describe_for_lists(self) -> SessionDescription:
        """Describe the session for the lists of other nodes."""
        return SessionDescription(self.describe(), self.info.prompted)

    def describe(self) -> dict[str, Any]:
        """Return the params of `_dragoman/session`."""
        described: dict[str, Any] = {
            "sessionId": self.id,
            "cwd": self.cwd,
            "title": self.info.title,
            "state": self.state,
            "pending": self.info.questions,
            "viewers": len(self.subscriptions),
            "updatedAt": to_iso(self.history.updated_ms),
        }
        described |= describe_label(self.info.label)
        if self.info.stop_reason is not None:
            described["stopReason"] = self.info.stop_reason
        if self.login is not None:
            described["error"] = error_object(RpcError(ErrorCode.AUTH_REQUIRED, self.login))
        elif self.info.error is not None:
            described["error"] = self.info.error
        elif self.history.failure is not None:
            described["error"] = error_object(RpcError(ErrorCode.INTERNAL_ERROR, str(self.history.failure)))
        return described

    def _turn_state(self) -> str:
        """Return the state in version 2 of an agent of version 1."""
        if not self.info.turns:
            return "idle"
        return "requires_action" if self.info.questions else "running"

    def _send_state(self, ended: dict[str, Any] | None = None) -> None:
        """Send a changed state to viewers of version 2, if the agent speaks version 1."""
        state = self._turn_state()
        if self.version == V2 or state == self.turns.last_state["state"]:
            return
        update: dict[str, Any] = {"sessionUpdate": "state_update", "state": state}
        self.turns.last_state = update
        readers = [(viewer, each) for viewer, each in self.subscriptions.items() if viewer.version == V2]
        if readers:
            line = self._make_update({**update, **(ended or {})} if state == "idle" else update)
            for viewer, subscription in readers:
                viewer.send(line, subscription)

    def journal_prompt(self, repeatable: RepeatablePrompt) -> None:
        """Journal that a prompt with a key was sent to an agent of version 2. States report its turn."""
        self.history.record("turn", self._keyed("prompt", repeatable))

    def _keyed(self, event: str, repeatable: RepeatablePrompt | None) -> bytes:
        """Return the record of a prompt. The answer to a prompt with a key is journalled, for its repetition."""
        if repeatable is None:
            return encode({"event": event})
        repeatable.journal_answer = self._journal_answer
        return encode({"event": event, "key": repeatable.key})

    def _journal_answer(self, key: str, answer: bytes) -> None:
        self.history.record("turn", encode({"event": "answer", "key": key, "answer": Raw(answer)}))
        self.changed()

    def _journal_start(self, repeatable: RepeatablePrompt | None = None) -> None:
        self.info.prompted = True
        self.info.stop_reason = self.info.error = None
        if self.turns.queue.hold(is_held=False):  # the end of this turn decides again
            self.announce_queue()
        self.history.record("turn", self._keyed("start", repeatable))
        self.changed()

    def _journal_end(self, stop_reason: str | None, error: Any) -> None:
        self.info.stop_reason, self.info.error = stop_reason, error
        if self.turns.queue.hold(is_held=error is not None or stop_reason in HOLDING_ENDS):
            self.announce_queue()
        record = {"event": "end", "stopReason": stop_reason, "title": self.info.title}
        self.history.record("turn", encode(record if error is None else {**record, "error": error}))
        self.changed()

    def _follow_state(self, line: bytes) -> bool:
        """Record a state of an agent of version 2. Return whether it ended a turn."""
        update = msgspec.json.decode(line)["params"]["update"]
        if update.get("sessionUpdate") != "state_update":
            return False
        was_active = self.turns.is_active
        self.turns.follow_state(update)
        self.info.turns = int(self.turns.is_active)
        if self.turns.is_active and not was_active:
            self._journal_start()
        elif was_active and not self.turns.is_active:
            reason, error = update.get("stopReason"), update.get("error")
            self.show_end(reason, error)
            self._journal_end(None if reason == "error" else reason, error)
            return True
        return False

    def _skip_echo(self, line: bytes) -> None:
        """Skip a repeated prompt for the viewer that sent it."""
        update = msgspec.json.decode(line)["params"]["update"]
        if not str(update.get("sessionUpdate")).startswith("user_message"):
            return
        viewer = self.turns.find_echo(update)
        subscription = None if viewer is None else self.subscriptions.get(viewer)
        if viewer is not None and subscription is not None and not viewer.knows_extensions:
            subscription.skip(self.history.next_end)

    def _make_update(self, update: dict[str, Any]) -> bytes:
        return make_notification(methods.SESSION_UPDATE.name, {"sessionId": self.id, "update": update})

    def _add_update(self, update: dict[str, Any], key: str | None = None) -> None:
        line = self._make_update(update)
        if key is not None:
            line = with_param(line, "_meta", {PROMPT_KEY: key})
        self.history.append(line + b"\n")

    def _pass_notice(self, line: bytes) -> bool:
        """Send a notice to viewers. It is not journalled, because it is not part of the conversation."""
        update = update_of(line)
        if string_of(update.get("sessionUpdate")) != "notice":
            return False
        thought = notice_as_thought(self.id, update)
        for viewer, subscription in self.subscriptions.items():
            shown = line if viewer.capabilities is not None and viewer.capabilities.notices else thought
            if shown is not None and viewer.has_room():
                viewer.send(shown, subscription)
        return True

    def _follow(self, line: bytes) -> bytes | None:
        """Record a change from an update. Return the line for viewers, or None if nothing is left of it."""
        update = update_of(line)
        match string_of(update.get("sessionUpdate")):
            case "current_mode_update" if (mode := update.get("currentModeId")) is not None:
                self.setup.set_mode(mode)
                self._journal_setup()
            case "config_option_update" if (options := update.get("configOptions")) is not None:
                self.setup.set_options(options)
                self._journal_setup()
            case "available_commands_update" if (commands := update.get("availableCommands")) is not None:
                self.setup.set_commands(commands)
                self._journal_setup()
            case "session_info_update" if (title := update.get("title")) is not None:
                if self.info.label.title is not None:
                    return without_title(line, update)
                self._set_agent_title(string_of(title))
            case _:
                pass
        return line

    def _set_agent_title(self, title: str | None) -> None:
        """Journal a title from the agent. The agent repeats it whenever it loads the session."""
        is_journalled = title == self.info.title and not self.info.is_title_made
        self.info.title, self.info.is_title_made = title, False
        if not is_journalled:
            self.history.record("title", encode(title))
            self.changed()

    def _journal_setup(self) -> None:
        """Journal the settings, so that viewers receive them after a restart of the bridge."""
        config = self.setup.pop_change(self.history.version)
        if config is not None:
            self.history.record("config", config)
            self.changed()
