"""Rules about version 2 messages, tool calls, diffs and display terminals, and about permission for them.

Version 2 builds each item from updates with its id (upserts). An absent field keeps its value, null clears it, and a
value replaces it. An item that ended stays ended, except that its last status may be repeated.

A tool call or terminal can be cancelled while it advertises `capabilities.cancel`. A withdrawal of that capability may
cross a cancel on the wire. The functions `was_offered` and `may_seem_offered` give each side the benefit of the doubt.
"""

import re
from typing import ClassVar

from dragoman.check.conversation import ConversationEntry
from dragoman.check.judge.foreground import ENDED, WRITERS, SeenDisplay
from dragoman.check.judge.message import Object, SeenMessage, is_absolute, is_base64, offered, part, parts, text
from dragoman.check.judge.observer import FindingSink, Observer, watch
from dragoman.check.judge.open_values import CALL_STATUSES
from dragoman.check.judge.rpc import PERMISSION
from dragoman.check.judge.session import SeenToolCall
from dragoman.check.judge.state import PROOF_S, requested_call_id
from dragoman.check.judge.tool_calls import judge_last_status, judge_locations, judge_path, judge_running_first
from dragoman.check.rule import V2, Version
from dragoman.errors import ErrorCode

_SECTION = re.compile(r"^diff --git (.+)$", re.MULTILINE)
_PATCH_PATH = re.compile(r"^(?:--- |\+\+\+ |rename from |rename to |copy from |copy to )([^\t\n]+)", re.MULTILINE)
NO_FILE = "/dev/null"


class MessageObserver(Observer):
    """Judges messages and thoughts."""

    area: ClassVar[str] = "MSG"
    versions: ClassVar[tuple[Version, ...]] = V2

    @watch(*(f"update {kind}" for kind in WRITERS))
    def on_message(self, message: SeenMessage) -> None:
        message_id = text(message.update, "messageId")
        known = self.state.foreground.of(text(message.params, "sessionId")).messages.get(message_id or "")
        writer = WRITERS[str(message.update["sessionUpdate"])]
        self.judge(
            "ACP-MSG-002",
            known is None or known.writer == writer,
            f"the id {message_id!r} is that of a message of the kind {known.writer if known else None}, "
            f"and is used for one of the kind {writer}",
            *([known.entry] if known else []),
            message.entry,
        )


class ToolCallObserver(Observer):
    """Judges tool calls, their diffs, and cancelling them."""

    area: ClassVar[str] = "TOOL"
    versions: ClassVar[tuple[Version, ...]] = V2

    @watch("update tool_call_update", "update tool_call_content_chunk")
    def on_call(self, message: SeenMessage) -> None:
        self._judge_places(message.update, message)
        session = self.state.session(message)
        if session is None or session.id in self.state.opening:
            return
        call = session.calls.get(text(message.update, "toolCallId") or "")
        if message.update.get("sessionUpdate") == "tool_call_content_chunk":
            return
        if call is None:
            self._judge_title(message.update, message)
        else:
            self._judge_status(call, message)

    @watch(f"request {PERMISSION}")
    def on_question(self, message: SeenMessage) -> None:
        session, update = self.state.session(message), part(part(message.params, "subject"), "toolCall")
        self._judge_places(update, message)
        if session is not None and update and text(update, "toolCallId") not in session.calls:
            self._judge_title(update, message)

    def _judge_title(self, update: Object, message: SeenMessage) -> None:
        self.judge(
            "ACP-TOOL-011",
            update.get("title") not in (None, ""),
            f"the tool call {text(update, 'toolCallId')!r} is reported for the first time without a title",
            message.entry,
        )

    def _judge_status(self, call: SeenToolCall, message: SeenMessage) -> None:
        """Judge the status of a tool call's update against the call's earlier updates.

        An update without a status keeps the old one. A call of a cancelled turn may end without having run.
        """
        update = message.update
        status = text(update, "status") if "status" in update else call.status
        if call.status in ENDED:
            judge_last_status(self, call, status, message)
            return
        if status is None or status not in ENDED:
            return
        is_cut = call.turn is not None and call.turn.cancel is not None
        if not is_cut and status != "cancelled":
            judge_running_first(self, call, status, message)
        if status == "completed":
            is_error = part(update, "rawOutput").get("isError") is True
            self.judge(
                "ACP-TOOL-006",
                call.rejected is None and not is_error,
                f"the tool call {call.id!r} was {'rejected' if call.rejected else 'an error'}, and is reported as "
                "completed; expected failed",
                call.entry,
                *([call.rejected] if call.rejected else []),
                message.entry,
            )
        can_cancel = offered(part(update, "capabilities"), "cancel") if "capabilities" in update else call.can_cancel
        if call.can_cancel:
            self.judge(
                "ACP-TOOL-014",
                not can_cancel,
                f"the tool call {call.id!r} is {status} but still has capabilities.cancel",
                call.entry,
                message.entry,
            )

    def _judge_places(self, update: Object, message: SeenMessage) -> None:
        judge_locations(self, update, message)
        chunk = part(update, "content")
        for each in [chunk] if chunk else parts(update, "content"):
            if each.get("type") == "diff":
                self._judge_diff(each, message)

    def _judge_diff(self, diff: Object, message: SeenMessage) -> None:
        """Judge the paths of a diff: all absolute, and none in the patch that `changes` does not name."""
        changed: set[str] = set()
        for change in parts(diff, "changes"):
            for name in ("path", "oldPath"):
                path = text(change, name)
                judge_path(self, path, "diff", message)
                changed.update([path] if path is not None else [])
        patch = part(diff, "patch")
        patch_text = text(patch, "text")
        if text(patch, "format") != "git_patch" or patch_text is None:
            return
        paths = find_patch_paths(patch_text)
        bad = [path for path in paths if not is_absolute(path)]
        self.judge(
            "ACP-TOOL-012",
            patch_text.startswith("diff --git ") and not bad,
            f"the patch names {bad}; expected absolute paths"
            if bad
            else f"the patch begins with {patch_text[:40]!r}; expected `diff --git`",
            message.entry,
        )
        foreign = [path for path in paths if path not in changed]
        if not bad:
            self.judge(
                "ACP-TOOL-013", not foreign, f"the patch touches {foreign}, which changes does not name", message.entry
            )

    @watch("answer tool_call/cancel")
    def on_cancel(self, message: SeenMessage) -> None:
        session, request = self.state.requested_session(message), message.request
        if session is None or request is None:
            return
        call = session.calls.get(text(request.params, "toolCallId") or "")
        if was_offered(call, request.entry):
            judge_item_route(self, "ACP-TOOL-017", message)
        else:
            judge_item_refusal(self, "ACP-TOOL-015", message)

    @watch("request tool_call/cancel")
    def on_cancelling(self, message: SeenMessage) -> None:
        session = self.state.session(message)
        if session is not None:
            call = session.calls.get(text(message.params, "toolCallId") or "")
            self.judge(
                "ACP-TOOL-101",
                may_seem_offered(call, message.entry),
                f"tool_call/cancel for {text(message.params, 'toolCallId')!r}, which does not offer it",
                message.entry,
            )

    @watch("update state_update", "event waited")
    def on_end(self, message: SeenMessage) -> None:
        if not message.entry.event and text(message.update, "state") != "idle":
            return
        for session in self.state.sessions.values():
            for call in session.calls.values():
                if call.cancelling is not None and (
                    message.entry.event or text(message.params, "sessionId") == session.id
                ):
                    is_over = call.status in ENDED
                    if message.entry.event and is_over:
                        continue
                    request, call.cancelling = call.cancelling, None
                    if call.status not in CALL_STATUSES:
                        continue  # ACP-EXT-006 covers that
                    self.judge(
                        "ACP-TOOL-016",
                        is_over,
                        f"the tool call {call.id!r} was cancelled, and is still {call.status}",
                        request.entry,
                        message.entry,
                    )


def find_patch_paths(patch: str) -> list[str]:
    """Return the paths that a git patch names, without quotes. A section line counts if its two halves are equal."""
    headers: list[str] = []
    named: list[str] = _PATCH_PATH.findall(_without_hunks(patch))
    sections: list[str] = _SECTION.findall(patch)
    for section in sections:
        half = len(section) // 2
        if section[:half] == section[half + 1 :]:
            headers.append(section[:half])
        elif " " in section and section.count(" ") == 1:
            headers.extend(section.split(" "))
    found = [path.strip().strip('"') for path in (*headers, *named)]
    return [path for path in dict.fromkeys(found) if path != NO_FILE]


def _without_hunks(patch: str) -> str:
    """Return the lines of a patch outside its hunks, because a removed line may look like a header."""
    kept: list[str] = []
    inside = False
    for line in patch.splitlines():
        if line.startswith("diff --git "):
            inside = False
        elif line.startswith("@@"):
            inside = True
        if not inside:
            kept.append(line)
    return "\n".join(kept)


def was_offered(item: SeenToolCall | SeenDisplay | None, asked: ConversationEntry) -> bool:
    """Return whether a tool call or terminal could be cancelled at some time since the cancel was requested.

    If it has ended since then, the cancel was too late, or has ended it.
    """
    return item is not None and (item.can_cancel or (item.withdrawn is not None and item.withdrawn.n > asked.n))


def may_seem_offered(item: SeenToolCall | SeenDisplay | None, asked: ConversationEntry) -> bool:
    """Return whether a client may believe that an item can be cancelled, because a withdrawal may cross its request."""
    if item is None or item.can_cancel:
        return item is not None
    return item.withdrawn is not None and asked.at_s - item.withdrawn.at_s < PROOF_S


def judge_item_refusal(observer: Observer, rule: str, answer: SeenMessage) -> None:
    """Judge the response to a cancel of a tool call or terminal that does not offer it."""
    request = answer.request
    if request is None or answer.code == ErrorCode.METHOD_NOT_FOUND:
        return
    observer.judge(
        rule,
        answer.code == ErrorCode.INVALID_PARAMS,
        f"{request.method} for what cannot be cancelled was answered with {answer.code or 'a result'}; expected -32602",
        request.entry,
        answer.entry,
    )


def judge_item_route(observer: Observer, rule: str, answer: SeenMessage) -> None:
    """Judge the response to a cancel of a tool call or terminal that offers it. -32602 means that it has just ended."""
    request = answer.request
    if request is not None:
        observer.judge(
            rule,
            answer.kind == "result" or answer.code == ErrorCode.INVALID_PARAMS,
            f"{request.method} was answered with {answer.code}, though capabilities.cancel was offered",
            request.entry,
            answer.entry,
        )


class DisplayObserver(Observer):
    """Judges the terminals that an agent shows."""

    area: ClassVar[str] = "TERM"
    versions: ClassVar[tuple[Version, ...]] = V2

    @watch("update terminal_update", "update terminal_output_chunk")
    def on_terminal(self, message: SeenMessage) -> None:
        update = message.update
        data = text(update, "data") if "data" in update else text(part(update, "output"), "data")
        if data is not None:
            self.judge("ACP-TERM-008", is_base64(data), "the output of a terminal is not base64", message.entry)
        cwd = text(update, "cwd")
        if cwd is not None:
            self.judge("ACP-TERM-002", is_absolute(cwd), f"cwd is {cwd!r}; expected an absolute path", message.entry)
        known = self.state.foreground.of(text(message.params, "sessionId")).terminals.get(
            text(update, "terminalId") or ""
        )
        if known is not None:
            self._judge_known(known, message)

    def _judge_known(self, terminal: SeenDisplay, message: SeenMessage) -> None:
        update = message.update
        if terminal.exited is not None and terminal.command is not None:
            command = text(update, "command")
            self.judge(
                "ACP-TERM-009",
                command is None
                or command == terminal.command
                or text(message.params, "sessionId") in self.state.opening,
                f"the terminal {terminal.id!r} has ended, and now has the command {command!r}; expected another id",
                terminal.entry,
                terminal.exited,
                message.entry,
            )
        if isinstance(update.get("exitStatus"), dict) and terminal.can_cancel:
            has_left = "capabilities" in update and not offered(part(update, "capabilities"), "cancel")
            self.judge(
                "ACP-TERM-010",
                has_left,
                f"the terminal {terminal.id!r} has ended but still has capabilities.cancel",
                terminal.entry,
                message.entry,
            )

    @watch("request terminal/cancel")
    def on_cancelling(self, message: SeenMessage) -> None:
        terminal_id = text(message.params, "terminalId")
        terminal = self.state.foreground.of(text(message.params, "sessionId")).terminals.get(terminal_id or "")
        if self.state.session(message) is not None:
            self.judge(
                "ACP-TERM-108",
                may_seem_offered(terminal, message.entry),
                f"terminal/cancel for {terminal_id!r}, which does not offer it",
                message.entry,
            )

    @watch("answer terminal/cancel")
    def on_cancel(self, message: SeenMessage) -> None:
        session, request = self.state.requested_session(message), message.request
        if session is None or request is None:
            return
        terminal = self.state.foreground.of(session.id).terminals.get(text(request.params, "terminalId") or "")
        if was_offered(terminal, request.entry):
            judge_item_route(self, "ACP-TERM-013", message)
        else:
            judge_item_refusal(self, "ACP-TERM-011", message)

    @watch("update state_update", "event waited")
    def on_end(self, message: SeenMessage) -> None:
        if not message.entry.event and text(message.update, "state") != "idle":
            return
        for session in self.state.sessions.values():
            for terminal in self.state.foreground.of(session.id).terminals.values():
                is_here = message.entry.event or text(message.params, "sessionId") == session.id
                if terminal.cancelling is None or not is_here:
                    continue
                request, terminal.cancelling = terminal.cancelling, None
                self.judge(
                    "ACP-TERM-012",
                    terminal.exited is not None,
                    f"the terminal {terminal.id!r} was cancelled, and has no exitStatus",
                    request.entry,
                    message.entry,
                )


class UnknownAnswerObserver(Observer):
    """Judges how an agent treats an unknown answer to a permission request."""

    area: ClassVar[str] = "PERM"
    versions: ClassVar[tuple[Version, ...]] = V2

    def __init__(self, sink: FindingSink) -> None:
        super().__init__(sink)
        self._unknown: dict[tuple[str, str], ConversationEntry] = {}
        """Answers that do not approve, by session and tool call."""

    @watch(f"request {PERMISSION}")
    def on_request(self, message: SeenMessage) -> None:
        subject = part(message.params, "subject")
        cwd = text(subject, "cwd")
        if text(subject, "type") == "command" and cwd is not None:
            self.judge(
                "ACP-PERM-007",
                is_absolute(cwd),
                f"the command is to run in {cwd!r}; expected an absolute path",
                message.entry,
            )
        session_id, call_id = text(message.params, "sessionId"), requested_call_id(message.params)
        if session_id is not None and call_id is not None:
            self._unknown.pop((session_id, call_id), None)

    @watch(f"result {PERMISSION}")
    def on_answer(self, message: SeenMessage) -> None:
        request, outcome = message.request, part(message.params, "outcome")
        if request is None:
            return
        offered = [text(each, "optionId") for each in parts(request.params, "options")]
        is_known = text(outcome, "outcome") == "selected" and text(outcome, "optionId") in offered
        session_id, call_id = text(request.params, "sessionId"), requested_call_id(request.params)
        if not is_known and session_id is not None and call_id is not None:
            self.count_occasion("ACP-PERM-008")
            self._unknown[session_id, call_id] = message.entry

    @watch("update tool_call_update")
    def on_call(self, message: SeenMessage) -> None:
        key = (text(message.params, "sessionId") or "", text(message.update, "toolCallId") or "")
        answered = self._unknown.get(key)
        status = text(message.update, "status")
        if answered is not None and status in ("in_progress", "completed"):
            del self._unknown[key]
            self.fail(
                "ACP-PERM-008",
                f"the tool call {key[1]!r} is {status} after an answer that allows nothing",
                answered,
                message.entry,
            )
