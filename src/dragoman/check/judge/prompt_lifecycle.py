"""Rules about prompts and states of version 2: how prompts are accepted, and how work is reported.

Background work may send updates while a session is idle, and an agent may start work itself. An update in an idle
session therefore proves nothing. The rules judge how the work on an accepted prompt starts and ends.
"""

from typing import ClassVar

from dragoman.check.conversation import ConversationEntry
from dragoman.check.judge.foreground import ENDED, WORKING, Foreground, list_background
from dragoman.check.judge.message import SeenMessage, find_request, items, part, parts, text
from dragoman.check.judge.observer import FindingSink, Observer, watch
from dragoman.check.judge.rpc import PERMISSION
from dragoman.check.judge.session import INVENTED, SeenSession, SeenTurn
from dragoman.check.rule import V2, Version
from dragoman.errors import ErrorCode

HELD_UP_S = 0.15
"""A permission request that is open this long, without any other message of the agent, blocks its work."""
SESSION_METHODS = ("session/prompt", "session/resume", "session/set_config_option")


class AcceptanceObserver(Observer):
    """Judges how prompts are answered."""

    area: ClassVar[str] = "PROMPT"
    versions: ClassVar[tuple[Version, ...]] = V2

    def __init__(self, sink: FindingSink) -> None:
        super().__init__(sink)
        self._worked: dict[int, ConversationEntry] = {}
        """The end of work that started after a still unanswered prompt, by the entry of the prompt."""

    @watch("request session/prompt")
    def on_prompt(self, message: SeenMessage) -> None:
        if isinstance(message.params.get("prompt"), list):
            self.judge("ACP-PROMPT-104", bool(items(message.params, "prompt")), "the prompt is empty", message.entry)

    @watch("update state_update")
    def on_state(self, message: SeenMessage) -> None:
        session = self.state.session(message)
        turn = session.turn if session is not None else None
        if session is None or turn is None or text(message.update, "state") != "idle":
            return
        spoken = self.state.foreground.of(session.id).spoken
        for prompt in self.requests.find_open("client", session.id):
            is_its_work = prompt.method == "session/prompt" and prompt.entry.n < turn.prompt.entry.n
            if is_its_work and spoken is not None and text(message.update, "stopReason") != "cancelled":
                self._worked.setdefault(prompt.entry.n, message.entry)

    @watch("event waited")
    def on_waited(self, message: SeenMessage) -> None:
        for session in self.state.sessions.values() if message.sender == "agent" else ():
            for prompt in self.requests.find_open("client", session.id):
                worked = self._worked.pop(prompt.entry.n, None)
                if worked is not None:
                    self.requests.mark_late(prompt)
                    detail = "the work on a prompt has ended, and the prompt got no answer"
                    self.fail("ACP-PROMPT-013", detail, prompt.entry, worked, message.entry)

    @watch("answer session/prompt")
    def on_answer(self, message: SeenMessage) -> None:
        request, session = message.request, self.state.requested_session(message)
        if request is None or session is None:
            return
        worked = self._worked.pop(request.entry.n, None)
        if message.kind == "result":
            self.judge(
                "ACP-PROMPT-013",
                worked is None,
                "the prompt was answered after its work had ended; expected the answer when the message was inserted",
                request.entry,
                *([worked] if worked else []),
                message.entry,
            )
        self._judge_refusal(message, request, self.state.foreground.of(session.id))

    def _judge_refusal(self, answer: SeenMessage, request: SeenMessage, seen: Foreground) -> None:
        """Judge a refused prompt: the code for an unknown content type, and no message shown before the refusal."""
        kinds = [text(each, "type") or "" for each in parts(request.params, "prompt")]
        unknown = [each for each in kinds if each.startswith("_")]
        if unknown:
            self.judge(
                "ACP-CONTENT-004",
                answer.code == ErrorCode.INVALID_PARAMS,
                f"a prompt with a block of the type {unknown[0]!r} was answered with {answer.code or 'a result'}; "
                "expected -32602",
                request.entry,
                answer.entry,
            )
        asked = "".join(text(each, "text") or "" for each in parts(request.params, "prompt"))
        shown = [
            each
            for each in seen.messages.values()
            if each.writer == "user" and each.entry.n > request.entry.n and each.text == asked
        ]
        if shown and asked:
            self.judge(
                "ACP-PROMPT-019",
                answer.kind == "result",
                f"the message of a prompt was shown, and the prompt refused with {answer.code}",
                request.entry,
                shown[0].entry,
                answer.entry,
            )

    @watch(*(f"error {method}" for method in SESSION_METHODS))
    def on_unopened_session(self, message: SeenMessage) -> None:
        asked = find_request(message)
        if asked is None:
            return
        request, session_id = asked
        if not session_id.startswith(INVENTED) or not request.fits:
            return
        if message.code in (ErrorCode.METHOD_NOT_FOUND, ErrorCode.AUTH_REQUIRED):
            return
        named = text(part(message.params, "data"), "sessionId")
        detail = (
            f"{request.method} for an unknown session was refused with {message.code} and the sessionId {named!r} in "
            f"its data; expected -32002 and {session_id!r}"
        )
        if message.code == ErrorCode.INTERNAL_ERROR:  # another request may have failed first
            self.warn("ACP-PROMPT-010", detail, request.entry, message.entry)
            return
        is_right = message.code == ErrorCode.RESOURCE_NOT_FOUND and named == session_id
        self.judge("ACP-PROMPT-010", is_right, detail, request.entry, message.entry)


class WorkObserver(Observer):
    """Judges how work is reported: as running, as waiting for the user, and as ended."""

    area: ClassVar[str] = "PROMPT"
    versions: ClassVar[tuple[Version, ...]] = V2

    def __init__(self, sink: FindingSink) -> None:
        super().__init__(sink)
        self._held_up: dict[str, SeenMessage] = {}
        """Permission requests since which the agent has sent nothing else, by session."""

    @watch("update state_update")
    def on_state(self, message: SeenMessage) -> None:
        """Judge a state_update: work must be reported before its output, and `idle` ends the turn.

        States that are replayed while a session is opened are not judged.
        """
        session, state = self.state.session(message), text(message.update, "state")
        session_id = text(message.params, "sessionId")
        if session_id is None or session_id in self.state.opening:
            return
        seen = self.state.foreground.of(session_id)
        self._judge_background(session, seen, message)
        if state == "requires_action":
            self.count_occasion("ACP-PROMPT-017")
            self._held_up.pop(session_id, None)
        if state in WORKING and seen.accepted and seen.early is not None and not self._is_calling(session):
            self.fail(
                "ACP-PROMPT-014",
                f"the agent worked on a prompt before it reported {state}",
                seen.accepted[0].answer.entry,
                seen.early,
                message.entry,
            )
        if session is None or state != "idle":
            return
        if session.turn is None:
            self._on_idle_again(seen, message)
        else:
            self._on_end(session, session.turn, seen, message)

    def _is_calling(self, session: SeenSession | None) -> bool:
        """Return whether a tool call of earlier work is running. Its output may arrive while the session is idle."""
        last = session.last if session is not None else None
        return last is not None and any(call.status not in ENDED for call in last.calls.values())

    def _on_idle_again(self, seen: Foreground, message: SeenMessage) -> None:
        """Judge an idle session that reports idle again. Work on a prompt in between was never reported."""
        reason = text(message.update, "stopReason")
        if seen.accepted and seen.spoken is not None and reason is not None:
            self.fail(
                "ACP-PROMPT-014",
                f"work on a prompt ended with {reason!r}, and was never reported as running",
                seen.accepted[0].answer.entry,
                seen.spoken,
                message.entry,
            )

    def _on_end(self, session: SeenSession, turn: SeenTurn, seen: Foreground, message: SeenMessage) -> None:
        reason = text(message.update, "stopReason")
        self.count_occasion("ACP-PROMPT-016")
        if seen.accepted:
            self.count_occasion("ACP-PROMPT-014")
        if not seen.accepted and seen.spoken is None and reason is None:
            return  # a refused prompt, on which no work was done
        self.judge(
            "ACP-PROMPT-015",
            reason is not None,
            "the work ended without a stopReason",
            turn.prompt.entry,
            message.entry,
        )
        if reason is not None and not self.state.may_be_cancelled(session, turn):
            self.judge(
                "ACP-PROMPT-006",
                reason != "cancelled",
                "the work ended as cancelled, though nobody cancelled it",
                turn.prompt.entry,
                message.entry,
            )
        self._judge_shown(seen, message.entry)

    def _judge_shown(self, seen: Foreground, proof: ConversationEntry) -> None:
        for prompt in seen.accepted:
            self.judge(
                "ACP-PROMPT-012",
                prompt.is_shown,
                f"the work is over, and no user_message with the id {prompt.message_id!r} came",
                *([prompt.answer.request.entry] if prompt.answer.request else []),
                prompt.answer.entry,
                proof,
            )

    @watch("event waited")
    def on_waited(self, message: SeenMessage) -> None:
        """Judge work that has not started or ended within the time limit.

        Work that takes too long gets a warning first. It is a breach only if it continues after a cancel.
        """
        if message.sender != "agent":
            return
        for session_id, session in self.state.sessions.items():
            seen = self.state.foreground.of(session_id)
            if session.turn is None and seen.accepted:
                detail = (
                    f"a prompt was accepted, and neither running nor idle was reported; {message.entry.event} s for it"
                )
                self.fail("ACP-PROMPT-014", detail, seen.accepted[0].answer.entry, message.entry)
                seen.accepted.clear()
            elif session.turn is not None and seen.is_stuck(session.turn):
                self.fail(
                    "ACP-PROMPT-016",
                    "the agent did not report the end of its work, neither within the time limit nor after a cancel",
                    *([session.turn.overdue] if session.turn.overdue else []),
                    *([session.turn.cancel] if session.turn.cancel else []),
                    message.entry,
                )
            elif session.turn is not None and session.turn.cancel is None and not self._is_asking(session_id):
                session.turn.overdue = message.entry
                self.warn(
                    "ACP-PROMPT-016",
                    f"work has not ended; {message.entry.event} s for it; if it only needs longer, use --turn-timeout",
                    session.turn.prompt.entry,
                    message.entry,
                )

    def _is_asking(self, session_id: str) -> bool:
        return bool(self.requests.find_open("agent", session_id))

    # ── work that waits for the user ────────────────────────────────────────────────────────────

    @watch(f"request {PERMISSION}")
    def on_question(self, message: SeenMessage) -> None:
        session = self.state.session(message)
        if session is not None and self.state.foreground.of(session.id).state == "running":
            self._held_up[session.id] = message

    @watch("update")
    def on_update(self, message: SeenMessage) -> None:
        """Report a tool call that continues after the permission, while the state is still requires_action."""
        if message.update.get("sessionUpdate") != "state_update":
            self._held_up.pop(text(message.params, "sessionId") or "", None)
        session = self.state.session(message)
        if session is None or message.update.get("sessionUpdate") != "tool_call_update":
            return
        seen, call = self.state.foreground.of(session.id), session.calls.get(text(message.update, "toolCallId") or "")
        if seen.state != "requires_action" or call is None or call.granted is None or self._is_asking(session.id):
            return
        if text(message.update, "status") in ("in_progress", "completed") and session.turn is not None:
            self.fail(
                "ACP-PROMPT-018",
                f"the tool call {call.id!r} continues while the state is requires_action; expected running first",
                *([seen.changed] if seen.changed else []),
                call.granted,
                message.entry,
            )

    @watch("update state_update")
    def on_running_again(self, message: SeenMessage) -> None:
        session = self.state.session(message)
        before = self.state.foreground.of(text(message.params, "sessionId")).state
        if session is not None and before == "requires_action" and text(message.update, "state") == "running":
            self.count_occasion("ACP-PROMPT-018")

    @watch(f"answer {PERMISSION}")
    def on_answer(self, message: SeenMessage) -> None:
        session = self.state.requested_session(message)
        request = self._held_up.pop(session.id, None) if session is not None else None
        if request is None or request is not message.request or not self.timeline.is_timed:
            return
        if message.entry.at_s - request.entry.at_s >= HELD_UP_S:
            self.warn(
                "ACP-PROMPT-017",
                "the agent waited for a permission and sent nothing else while its state was running",
                request.entry,
                message.entry,
            )

    # ── background work ─────────────────────────────────────────────────────────────────────────

    def _judge_background(self, session: SeenSession | None, seen: Foreground, message: SeenMessage) -> None:
        """Judge `background`: it stays once used, lists only announced work, and drops only work that ended."""
        is_listed = isinstance(message.update.get("background"), list)
        if seen.background is not None:
            self.judge(
                "ACP-PROMPT-020",
                is_listed,
                "the state_update has no background, and one before it had",
                *([seen.background_entry] if seen.background_entry else []),
                message.entry,
            )
        if not is_listed or session is None:
            return
        listed = list_background(message.update)
        unknown = [each for each in listed if not _is_announced(session, seen, each)]
        if listed:
            self.judge("ACP-PROMPT-021", not unknown, f"background lists {unknown}, never announced", message.entry)
        gone = [each for each in seen.background or () if each not in listed]
        running = [each for each in gone if _is_announced(session, seen, each) and not _has_ended(session, seen, each)]
        if gone:
            self.judge(
                "ACP-PROMPT-022",
                not running,
                f"background no longer lists {running}, which was not reported to have ended",
                *([seen.background_entry] if seen.background_entry else []),
                message.entry,
            )


def _is_announced(session: SeenSession, seen: Foreground, work: tuple[str, str]) -> bool:
    return work[1] in (session.calls if work[0] == "tool_call" else seen.terminals)


def _has_ended(session: SeenSession, seen: Foreground, work: tuple[str, str]) -> bool:
    kind, name = work
    return session.calls[name].status in ENDED if kind == "tool_call" else seen.terminals[name].exited is not None
