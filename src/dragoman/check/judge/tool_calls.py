"""Rules about version 1 tool calls, and about permission requests in both versions.

A tool call is announced once, changes by updates, and ends once as completed or failed. After its end, an update may
only repeat the status. A call that the user allowed must be reported as in_progress before it ends. A rejected call
must not complete. The functions `judge_…` are shared with the version 2 rules in `upserts`.
"""

from typing import ClassVar

from dragoman.check.conversation import ConversationEntry
from dragoman.check.judge.message import Object, SeenMessage, is_absolute, number, part, parts, text
from dragoman.check.judge.observer import FindingSink, Observer, watch
from dragoman.check.judge.session import FINISHED, UNFINISHED, SeenSession, SeenToolCall
from dragoman.check.judge.state import requested_call_id
from dragoman.check.rule import V1, Version
from dragoman.errors import ErrorCode

MAX_ASKED = 1000


class ToolObserver(Observer):
    """Judges version 1 tool calls."""

    area: ClassVar[str] = "TOOL"
    versions: ClassVar[tuple[Version, ...]] = V1

    def __init__(self, sink: FindingSink) -> None:
        super().__init__(sink)
        self._asked: dict[tuple[str, str], None] = {}
        """Tool calls, with their sessions, that were first mentioned in a permission request."""
        self._nameless: set[str] = set()
        """Sessions with updates in the running turn that name no tool call."""

    @watch("request session/request_permission")
    def on_question(self, message: SeenMessage) -> None:
        session = self.state.session(message)
        call_id = requested_call_id(message.params)
        if session is not None and call_id is not None and call_id not in session.calls:
            self._asked[session.id, call_id] = None
            if len(self._asked) > MAX_ASKED:
                del self._asked[next(iter(self._asked))]

    @watch("update tool_call", "update tool_call_update")
    def on_call(self, message: SeenMessage) -> None:
        update = message.update
        self._judge_places(update, message)
        session = self.state.session(message)
        call_id = text(update, "toolCallId")
        if session is None or session.id in self.state.opening:
            return
        if call_id is None:
            self._nameless.add(session.id)
            return
        call = session.calls.get(call_id)
        if update.get("sessionUpdate") == "tool_call":
            self._judge_new(call, call_id, message)
        else:
            self._judge_update(session, call, update, message)

    def _judge_new(self, call: SeenToolCall | None, call_id: str, message: SeenMessage) -> None:
        self.count_occasion("ACP-TOOL-001")
        if call is not None and call.status in FINISHED:
            self.fail(
                "ACP-TOOL-001",
                f"the tool call {call_id!r} is announced again after it had ended; expected a new id",
                call.entry,
                message.entry,
            )

    def _judge_update(
        self, session: SeenSession, call: SeenToolCall | None, update: Object, message: SeenMessage
    ) -> None:
        call_id = text(update, "toolCallId") or ""
        if call is None and (session.id, call_id) in self._asked:
            return  # ACP-PERM-001 covers that
        self.count_occasion("ACP-TOOL-002")
        if call is None:
            self.fail(
                "ACP-TOOL-002",
                f"an update of the tool call {call_id!r}, which was not announced; expected a tool_call first",
                *([session.turn.prompt.entry] if session.turn else []),
                message.entry,
            )
            return
        status = text(update, "status")
        if status is not None and (status in FINISHED or call.status in FINISHED):
            self._judge_end(call, status, update, message)

    def _judge_end(self, call: SeenToolCall, status: str, update: Object, message: SeenMessage) -> None:
        if call.status in FINISHED:
            judge_last_status(self, call, status, message)
        elif not _is_cancelled(call):
            judge_running_first(self, call, status, message)
        if status == "completed":
            self._judge_completed(call, update, message)

    def _judge_completed(self, call: SeenToolCall, update: Object, message: SeenMessage) -> None:
        if call.rejected is not None:
            self.judge(
                "ACP-TOOL-006",
                False,
                f"the tool call {call.id!r} was rejected, and is reported as completed; expected failed",
                call.entry,
                call.rejected,
                message.entry,
            )
            return
        failed = part(update, "rawOutput").get("isError") is True
        self.judge(
            "ACP-TOOL-006",
            not failed,
            f"the output of the tool call {call.id!r} says isError, and it is reported as completed; expected failed",
            call.entry,
            message.entry,
        )

    def _judge_places(self, update: Object, message: SeenMessage) -> None:
        judge_locations(self, update, message)
        for each in parts(update, "content"):
            match each.get("type"):
                case "diff":
                    judge_path(self, text(each, "path"), "diff", message)
                case "terminal":
                    self._judge_terminal(text(each, "terminalId"), message)
                case _:
                    pass

    def _judge_terminal(self, terminal_id: str | None, message: SeenMessage) -> None:
        session = self.state.session(message)
        is_replay = session is None or session.turn is None or session.id in self.state.opening
        if terminal_id is None or is_replay or self.agreement.initialized is None:
            return
        self.judge(
            "ACP-TOOL-007",
            terminal_id in self.state.terminals,
            f"a tool call shows the terminal {terminal_id!r}, which terminal/create never returned",
            message.entry,
        )

    @watch("result session/prompt")
    def on_turn_end(self, message: SeenMessage) -> None:
        session = self.state.requested_session(message)
        if session is None or text(message.params, "stopReason") != "end_turn":
            return
        turn = next((each for each in session.running() if each.prompt is message.request), None)
        if turn is None or turn.cancel is not None or not turn.calls:
            return
        if session.id in self._nameless:
            self._nameless.discard(session.id)
            return  # ACP-TOOL-010 covers those, and they may have been about the end of any call
        open_calls = [call for call in turn.calls.values() if call.status in UNFINISHED]
        self.judge(
            "ACP-TOOL-003",
            not open_calls,
            f"the turn ended with tool calls that had not: {[(call.id, call.status) for call in open_calls]}",
            *(call.entry for call in open_calls),
            message.entry,
        )


def judge_last_status(observer: Observer, call: SeenToolCall, status: str | None, message: SeenMessage) -> None:
    """Judge the status in an update of a tool call that has ended."""
    observer.judge(
        "ACP-TOOL-004",
        status == call.status,
        f"the tool call {call.id!r} was {call.status} and is {status} now",
        call.entry,
        message.entry,
    )


def judge_running_first(observer: Observer, call: SeenToolCall, status: str, message: SeenMessage) -> None:
    """Judge the end of a tool call. If the user allowed it, it must have been reported as running before."""
    if call.granted is not None:
        observer.judge(
            "ACP-TOOL-008",
            call.ran,
            f"the tool call {call.id!r} was allowed and then {status}; expected in_progress before",
            call.granted,
            message.entry,
        )


def judge_locations(observer: Observer, update: Object, message: SeenMessage) -> None:
    """Judge the paths and lines of the locations of a tool call."""
    for each in parts(update, "locations"):
        judge_path(observer, text(each, "path"), "location", message)
        line = number(each, "line")
        if line is not None:
            detail = f"a location has the line {line:g}; lines begin with 1"
            observer.judge("ACP-TOOL-009", line >= 1, detail, message.entry)


def judge_path(observer: Observer, path: str | None, noun: str, message: SeenMessage) -> None:
    """Judge a path in a tool call, if there is one."""
    if path is not None:
        detail = f"a {noun} has the path {path!r}; expected an absolute path"
        observer.judge("ACP-TOOL-005", is_absolute(path), detail, message.entry)


def _is_cancelled(call: SeenToolCall) -> bool:
    return call.turn is not None and (call.turn.cancel is not None or call.turn.prompt.cancelled is not None)


class PermissionObserver(Observer):
    """Judges permission requests and their answers."""

    area: ClassVar[str] = "PERM"

    def __init__(self, sink: FindingSink) -> None:
        super().__init__(sink)
        self._dismissed: list[tuple[SeenMessage, ConversationEntry]] = []
        """Requests answered with `cancelled` in a turn that was not cancelled, or not yet."""

    @watch("notification session/request_permission")
    def on_notification(self, message: SeenMessage) -> None:
        self.fail("ACP-PERM-003", "session/request_permission came without an id; expected a request", message.entry)

    @watch("request session/request_permission")
    def on_request(self, message: SeenMessage) -> None:
        self.count_occasion("ACP-PERM-003")
        options = parts(message.params, "options")
        ids = [text(each, "optionId") for each in options]
        self.judge("ACP-PERM-002", len(set(ids)) == len(ids), f"options share an id: {ids}", message.entry)
        if isinstance(message.params.get("options"), list):
            self.judge("ACP-PERM-005", bool(options), "the permission request has no options", message.entry)
        session = self.state.session(message)
        call_id = requested_call_id(message.params)
        if session is not None and call_id is not None:
            self.judge(
                "ACP-PERM-001",
                call_id in session.calls,
                f"permission is asked for the tool call {call_id!r}, which was not announced",
                message.entry,
            )
            self._judge_time(session.calls.get(call_id), message)

    def _judge_time(self, call: SeenToolCall | None, message: SeenMessage) -> None:
        if call is not None and call.status == "completed":
            self.fail(
                "ACP-PERM-004",
                f"permission is asked for the tool call {call.id!r}, which is {call.status} already",
                call.entry,
                message.entry,
            )

    @watch("update tool_call", "update tool_call_update")
    def on_call(self, message: SeenMessage) -> None:
        pending = self.requests.pending["agent"]
        if not pending:
            return
        update = message.update
        call_id, status = text(update, "toolCallId"), text(update, "status")
        for request in pending.values():
            if (
                request.method == "session/request_permission"
                and requested_call_id(request.params) == call_id
                and text(request.params, "sessionId") == text(message.params, "sessionId")
                and status in ("in_progress", "completed")
                and not self._is_cancelled(request)
            ):
                self.fail(
                    "ACP-PERM-004",
                    f"the tool call {call_id!r} is {status} while permission is still asked for it",
                    request.entry,
                    message.entry,
                )

    def _is_cancelled(self, request: SeenMessage) -> bool:
        session = self.state.session(request)
        return session is not None and any(turn.cancel is not None for turn in session.running())

    @watch("result session/request_permission")
    def on_answer(self, message: SeenMessage) -> None:
        request = message.request
        if request is None:
            return
        self.count_occasion("ACP-PERM-004")
        outcome = part(message.params, "outcome")
        chosen = text(outcome, "optionId")
        if outcome.get("outcome") == "selected" and chosen is not None:
            ids = [text(each, "optionId") for each in parts(request.params, "options")]
            self.judge(
                "ACP-PERM-102",
                chosen in ids,
                f"the option {chosen!r} was selected; expected one of {ids}",
                request.entry,
                message.entry,
            )
            self.count_occasion("ACP-PERM-103")
        elif outcome.get("outcome") == "cancelled":
            self._on_dismissed(request, message)

    def _on_dismissed(self, request: SeenMessage, answer: SeenMessage) -> None:
        session = self.state.session(request)
        kinds = [text(each, "kind") or "" for each in parts(request.params, "options")]
        can_reject = any(kind.startswith("reject") for kind in kinds)
        if session is None or session.turn is None or request.cancelled is not None or not can_reject:
            return
        if session.turn.cancel is not None or session.closing is not None:
            self.count_occasion("ACP-PERM-103")
            return
        self._dismissed.append((request, answer.entry))

    @watch("answer session/prompt")
    def on_turn_end(self, message: SeenMessage) -> None:
        session = self.state.requested_session(message)
        if session is not None and self._dismissed:
            self._report_dismissed(session)

    @watch("event exited", "event killed", "event stdin")
    def on_process_end(self, _message: SeenMessage) -> None:
        """Forget requests that were cancelled because one side exited, which is right."""
        self._dismissed.clear()

    def _report_dismissed(self, session: SeenSession) -> None:
        left: list[tuple[SeenMessage, ConversationEntry]] = []
        for request, answer in self._dismissed:
            if text(request.params, "sessionId") != session.id:
                left.append((request, answer))
                continue
            was_cancelled = session.closing is not None or any(turn.cancel for turn in session.running())
            self.judge(
                "ACP-PERM-103",
                was_cancelled,
                "permission was answered with cancelled, though the turn was not cancelled; expected a reject option",
                request.entry,
                answer,
            )
        self._dismissed = left


class PendingPermissionObserver(Observer):
    """Judges the answers to permission requests of cancelled turns."""

    area: ClassVar[str] = "CANCEL"
    versions: ClassVar[tuple[Version, ...]] = V1

    def __init__(self, sink: FindingSink) -> None:
        super().__init__(sink)
        self._owed: list[tuple[SeenMessage, ConversationEntry]] = []
        """Unanswered requests of cancelled turns, and the cancel."""
        self._last: ConversationEntry | None = None

    @watch("request", "answer")
    def on_client(self, message: SeenMessage) -> None:
        if message.sender == "client":
            self._last = message.entry

    @watch("notification session/cancel")
    def on_cancel(self, message: SeenMessage) -> None:
        session_id = text(message.params, "sessionId")
        if session_id is None:
            return
        known = [request for request, _ in self._owed]
        for request in self.requests.find_open("agent", session_id):
            if request.method == "session/request_permission" and request not in known:
                self._owed.append((request, message.entry))

    @watch("request session/request_permission")
    def on_late(self, message: SeenMessage) -> None:
        session = self.state.session(message)
        if session is not None and session.turn is not None and session.turn.cancel is not None:
            self._owed.append((message, session.turn.cancel))

    @watch("answer session/request_permission")
    def on_answer(self, message: SeenMessage) -> None:
        for owed in self._owed:
            request, cancel = owed
            if request is message.request:
                self._owed.remove(owed)
                self._judge_answer(request, cancel, message)
                return

    def _judge_answer(self, request: SeenMessage, cancel: ConversationEntry, answer: SeenMessage) -> None:
        is_cancelled = part(answer.params, "outcome").get("outcome") == "cancelled"
        by_request = answer.code == ErrorCode.REQUEST_CANCELLED and request.cancelled is not None
        outcome = text(part(answer.params, "outcome"), "outcome") or (
            "an error" if answer.kind == "error" else "nothing"
        )
        self.judge(
            "ACP-CANCEL-101",
            is_cancelled or by_request,
            f"a permission request of a cancelled turn was answered with {outcome}; expected cancelled",
            request.entry,
            cancel,
            answer.entry,
        )

    @watch("request session/prompt", "event waited")
    def on_next(self, message: SeenMessage) -> None:
        """Report requests that a client forgot: it sent the next prompt, or did not answer in time."""
        session_id = text(message.params, "sessionId")
        if message.entry.event and message.sender != "client":
            return
        for request, cancel in tuple(self._owed):
            if message.entry.event or text(request.params, "sessionId") == session_id:
                self._owed.remove((request, cancel))
                self.fail(
                    "ACP-CANCEL-101",
                    "a permission request of a cancelled turn was left unanswered; expected cancelled",
                    request.entry,
                    cancel,
                    message.entry,
                )

    def end(self) -> None:
        """Report requests that a client left open although it sent messages after the end of the turn."""
        for request, cancel in self._owed:
            session = self.state.session(request)
            end = session.last.end if session is not None and session.last is not None else None
            if end is not None and self._last is not None and self._last.n > end.entry.n > cancel.n:
                self.fail(
                    "ACP-CANCEL-101",
                    "a permission request of a cancelled turn was left unanswered; expected cancelled",
                    request.entry,
                    cancel,
                    self._last,
                )
        self._owed.clear()
