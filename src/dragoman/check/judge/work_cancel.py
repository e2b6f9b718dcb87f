"""Rules about cancelling version 2 work, by session/cancel or by closing its session."""

from typing import ClassVar

from dragoman.check.conversation import ConversationEntry
from dragoman.check.judge.foreground import ENDED
from dragoman.check.judge.message import SeenMessage, find_request, text
from dragoman.check.judge.observer import FindingSink, Observer, watch
from dragoman.check.judge.open_values import STOP_REASONS
from dragoman.check.judge.rpc import PERMISSION
from dragoman.check.judge.session import INVENTED, SeenSession, SeenTurn
from dragoman.check.judge.session_list import judge_prompt_of_closed
from dragoman.check.judge.state import PROOF_S
from dragoman.check.rule import V2, Version
from dragoman.errors import ErrorCode


class WorkCancelObserver(Observer):
    """Judges how cancelled work ends, after session/cancel or session/close."""

    area: ClassVar[str] = "CANCEL"
    versions: ClassVar[tuple[Version, ...]] = V2

    def __init__(self, sink: FindingSink) -> None:
        super().__init__(sink)
        self._asked: dict[str, list[SeenMessage]] = {}
        """Permission requests that were open when their work was cancelled, by session."""
        self._late: dict[str, tuple[ConversationEntry, list[str]]] = {}
        """The end of cancelled work and its tool calls that had not ended, by session."""
        self._cut: dict[str, ConversationEntry] = {}
        """Cancels and closes, by session."""
        self._held: list[tuple[SeenMessage, SeenMessage]] = []
        """Unanswered prompts of an interrupted session, with the cancel or the response to the close."""

    @watch("notification session/cancel", "request session/close")
    def on_cancel(self, message: SeenMessage) -> None:
        session_id = text(message.params, "sessionId")
        if session_id is not None:
            self._cut[session_id] = message.entry
        if message.kind == "notification":
            self._hold(message, message.entry, session_id)
        session = self.state.session(message)
        if session is not None and session.turn is not None and message.kind == "notification":
            open_questions = self.requests.find_open("agent", session.id)
            self._asked[session.id] = [each for each in open_questions if each.method == PERMISSION]

    @watch("notification $/cancel_request")
    def on_request_cancel(self, message: SeenMessage) -> None:
        request_id = message.params.get("requestId")
        for asked in self._asked.values():
            for request in [each for each in asked if each.id == request_id]:
                asked.remove(request)
                self.count_occasion("ACP-CANCEL-005")

    @watch(f"answer {PERMISSION}")
    def on_answer(self, message: SeenMessage) -> None:
        for asked in self._asked.values():
            if message.request in asked:
                asked.remove(message.request)

    @watch("update state_update")
    def on_state(self, message: SeenMessage) -> None:
        session = self.state.session(message)
        turn = session.turn if session is not None else None
        if session is None or turn is None or text(message.update, "state") != "idle":
            return
        for request in self._asked.pop(session.id, ()):
            self.fail(
                "ACP-CANCEL-005",
                "the work was cancelled and ended, and its permission request was neither answered nor withdrawn",
                request.entry,
                *([turn.cancel] if turn.cancel else []),
                message.entry,
            )
        if turn.cancel is not None:
            self._judge_end(session, turn, turn.cancel, message)

    def _judge_end(self, session: SeenSession, turn: SeenTurn, cancel: ConversationEntry, message: SeenMessage) -> None:
        reason = text(message.update, "stopReason")
        self.count_occasion("ACP-CANCEL-004")
        left = [call.id for call in turn.calls.values() if call.status not in ENDED]
        if reason == "cancelled":
            self.count_occasion("ACP-CANCEL-001")
            self.count_occasion("ACP-CANCEL-002")
            self.count_occasion("ACP-CANCEL-003")
            self._late[session.id] = (message.entry, left)
            return
        proof = self.state.proof_of_reading(turn, message.entry.at_s)
        if proof is None or reason not in STOP_REASONS:  # ACP-PROMPT-015 and ACP-EXT-006 cover other reasons
            return
        rule = "ACP-CANCEL-002" if reason == "error" else "ACP-CANCEL-001"
        self.fail(
            rule,
            f"cancelled work ended with {reason!r}; expected cancelled",
            turn.prompt.entry,
            cancel,
            proof,
            message.entry,
        )

    @watch("update tool_call_update", "update tool_call_content_chunk")
    def on_call(self, message: SeenMessage) -> None:
        session_id = text(message.params, "sessionId") or ""
        late, call_id = self._late.get(session_id), text(message.update, "toolCallId")
        if late is not None and call_id in late[1] and session_id not in self.state.opening:
            end, calls = late
            calls.remove(call_id)
            self.fail(
                "ACP-CANCEL-003",
                f"an update of the tool call {call_id!r} came after the idle that ended its cancelled work",
                end,
                message.entry,
            )

    @watch("error session/prompt")
    def on_refused(self, message: SeenMessage) -> None:
        asked = find_request(message)
        if asked is None:
            return
        request, session_id = asked
        cut = self._cut.get(session_id)
        if cut is None or cut.n < request.entry.n or not request.fits:
            return
        surely_read = message.entry.at_s - cut.at_s >= PROOF_S
        if message.code == ErrorCode.REQUEST_CANCELLED or surely_read:
            self.judge(
                "ACP-CANCEL-006",
                message.code == ErrorCode.REQUEST_CANCELLED,
                f"a prompt that was cancelled before it was inserted got {message.code}; expected -32800",
                request.entry,
                cut,
                message.entry,
            )
        elif message.code not in (ErrorCode.INVALID_PARAMS, ErrorCode.AUTH_REQUIRED):
            self.warn(
                "ACP-CANCEL-006",
                f"a prompt got {message.code} after a cancel; expected -32800, if it had read the cancel",
                request.entry,
                cut,
                message.entry,
            )

    @watch("result session/close")
    def on_closed(self, message: SeenMessage) -> None:
        asked = find_request(message)
        if asked is None:
            return
        request, session_id = asked
        self._hold(message, request.entry, session_id)

    def _hold(self, cut: SeenMessage, since: ConversationEntry, session_id: str | None) -> None:
        """Record unanswered prompts, which were not inserted."""
        prompts = self.requests.find_open("client", session_id or "")
        held = [each for each in prompts if each.method == "session/prompt" and each.entry.n < since.n]
        self._held = [each for each in self._held if each[0] not in held] + [(each, cut) for each in held]

    def _is_over(self, cut: SeenMessage, waited: ConversationEntry) -> bool:
        """Return whether a session has ended the interrupted work, so that an unanswered prompt is lost."""
        session = self.state.session(cut)
        is_idle = session is not None and session.turn is None and waited.at_s - cut.entry.at_s >= PROOF_S
        return cut.kind == "result" or is_idle

    @watch("answer session/prompt")
    def on_held(self, message: SeenMessage) -> None:
        for each in [each for each in self._held if each[0] is message.request]:
            self._held.remove(each)
            self.count_occasion("ACP-CANCEL-006")

    @watch("event waited")
    def on_waited(self, message: SeenMessage) -> None:
        if message.sender != "agent":
            return
        for prompt, cut in [each for each in self._held if self._is_over(each[1], message.entry)]:
            self._held.remove((prompt, cut))
            self.fail(
                "ACP-CANCEL-006",
                f"a prompt that was held when its session was {'closed' if cut.kind == 'result' else 'cancelled'} "
                "got no answer; expected -32800",
                prompt.entry,
                cut.entry,
                message.entry,
            )
        for turn in tuple(self.state.cancelling):
            if turn.cancel is not None and turn.end is None:
                self.state.cancelling.remove(turn)
                if self.state.foreground.of(text(turn.prompt.params, "sessionId")).is_stuck(turn):
                    continue  # ACP-PROMPT-016 covers that
                self.fail(
                    "ACP-CANCEL-004",
                    f"cancelled work has not ended; {message.entry.event} s for it",
                    turn.prompt.entry,
                    turn.cancel,
                    message.entry,
                )


class SessionCloseObserver(Observer):
    """Judges version 2 session/close. Its work is cancelled first, and no update follows."""

    area: ClassVar[str] = "CLOSE"
    versions: ClassVar[tuple[Version, ...]] = V2

    def __init__(self, sink: FindingSink) -> None:
        super().__init__(sink)
        self._cut: dict[str, ConversationEntry] = {}
        """Closes of sessions that were working, by session."""
        self._done: dict[str, ConversationEntry] = {}

    @watch("request session/close")
    def on_close(self, message: SeenMessage) -> None:
        session = self.state.session(message)
        if session is not None and session.turn is not None:
            self._cut[session.id] = message.entry
        self.judge_offer(
            "ACP-CLOSE-101",
            "sessionCapabilities.close",
            message,
            "session/close was called, and the agent advertises no sessions",
        )

    @watch("answer session/close")
    def on_closed(self, message: SeenMessage) -> None:
        asked = find_request(message)
        if asked is None:
            return
        request, session_id = asked
        if session_id.startswith(INVENTED) and message.code != ErrorCode.METHOD_NOT_FOUND:
            self.judge(
                "ACP-CLOSE-005",
                message.kind == "result",
                f"closing a session that does not exist failed with {message.code}; expected success",
                request.entry,
                message.entry,
            )
        session, cut = self.state.sessions.get(session_id), self._cut.pop(session_id, None)
        if message.kind == "error" or session is None:
            return
        self._done[session_id] = message.entry
        if cut is None:
            return
        last = session.last.end if session.last is not None and session.turn is None else None
        reason = text(last.update, "stopReason") if last is not None and last.entry.n > cut.n else None
        if session.turn is not None or reason == "cancelled":  # work that ended otherwise may have been faster
            self.judge(
                "ACP-CLOSE-001",
                reason == "cancelled",
                "a session was closed while it worked, but its work continued after the answer; expected idle with "
                "cancelled before it",
                cut,
                message.entry,
            )

    @watch("update", f"request {PERMISSION}")
    def on_more(self, message: SeenMessage) -> None:
        session_id = text(message.params, "sessionId") or ""
        closed = self._done.get(session_id)
        if closed is None or session_id in self.state.opening:
            return
        prompts = self.requests.find_open("client", session_id)
        if any(each.method == "session/prompt" and each.entry.n > closed.n for each in prompts):
            return  # ACP-CLOSE-003 covers an accepted prompt
        self._done.pop(session_id)
        kind = message.update.get("sessionUpdate") or message.method
        self.fail("ACP-CLOSE-004", f"a {kind} came after session/close was answered", closed, message.entry)

    @watch("request session/prompt", "request session/list")
    def on_next(self, _message: SeenMessage) -> None:
        if self._done:
            self.count_occasion("ACP-CLOSE-004")

    @watch("answer session/prompt")
    def on_prompt(self, message: SeenMessage) -> None:
        asked = find_request(message)
        if asked is None:
            return
        request, session_id = asked
        closed = self._done.get(session_id)
        if closed is not None and closed.n < request.entry.n:
            judge_prompt_of_closed(self, closed, request, message)
            if message.kind == "result":
                del self._done[session_id]

    @watch("answer session/resume")
    def on_reopened(self, message: SeenMessage) -> None:
        asked = find_request(message)
        if asked is None:
            return
        request, session_id = asked
        past = self.state.memory.sessions.get(session_id)
        is_there = message.code != ErrorCode.METHOD_NOT_FOUND  # ACP-INIT-007 covers a missing method
        if past is not None and past.closed and past.spoke and not past.is_lost and request.fits and is_there:
            self.judge(
                "ACP-CLOSE-002",
                message.kind == "result" or message.code == ErrorCode.INVALID_PARAMS,
                f"session/resume of a session that was closed failed with {message.code}; expected its history",
                request.entry,
                message.entry,
            )
        if message.kind == "result":
            self._done.pop(session_id, None)
