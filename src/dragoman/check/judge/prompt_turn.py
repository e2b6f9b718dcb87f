"""Rules about prompt turns and cancelling them.

A cancel and the end of a turn may cross. An agent that answers `end_turn` right after a cancel need not have read it.
The agent is blamed only if something proves that it had read the cancel: it answered a request sent after the cancel,
it was waiting for a permission that was answered after the cancel, or the cancel was sent seconds before.
"""

from typing import ClassVar

from dragoman.check.conversation import ConversationEntry
from dragoman.check.judge.message import SeenMessage, find_request, part, parts, text
from dragoman.check.judge.observer import FindingSink, Observer, watch
from dragoman.check.judge.session import SeenSession, SeenTurn
from dragoman.check.judge.session_setup import CONTENT
from dragoman.check.rule import V1, Version
from dragoman.errors import ErrorCode

BASELINE_CONTENT = frozenset({"text", "resource_link"})
GUARDED_CONTENT = {"image": "image", "audio": "audio", "resource": "embeddedContext"}

ADVERTISED_UPDATES = {
    "notice": "session.notices",
    "compaction_update": "session.compaction",
    "compaction_summary_chunk": "session.compaction",
}
"""Updates that an agent may only send to clients with a capability for them."""


class PromptObserver(Observer):
    """Judges prompts and their ends."""

    area: ClassVar[str] = "PROMPT"

    def __init__(self, sink: FindingSink) -> None:
        super().__init__(sink)
        self._reported: dict[str, ConversationEntry] = {}
        """Ends of turns for which a late update was already reported."""
        self._refused: list[tuple[set[str], ConversationEntry, ConversationEntry]] = []
        """Refused prompts with the kinds of their content. The reason may also be the text."""
        self._unanswered: set[int] = set()
        """Prompts already reported as unanswered, by their entries."""

    @watch(*(f"update {kind}" for kind in ADVERTISED_UPDATES))
    def on_advertised(self, message: SeenMessage) -> None:
        kind = str(message.update["sessionUpdate"])
        capability = ADVERTISED_UPDATES[kind]
        if self.agreement.is_known:
            self.judge(
                "ACP-PROMPT-009",
                self.agreement.client_offers(capability),
                f"a {kind} was sent, {self.agreement.explain_missing_capability(capability)}",
                *([self.agreement.initialize.entry] if self.agreement.initialize else []),
                message.entry,
            )

    @watch("request session/prompt")
    def on_prompt(self, message: SeenMessage) -> None:
        """Judge a prompt: an open session, content that the agent supports, and no other turn in progress."""
        if self.agreement.initialized is None:
            return
        session, session_id = self.state.session(message), text(message.params, "sessionId")
        if session_id is not None:
            self.judge(
                "ACP-PROMPT-102",
                session is not None and session.closed is None,
                f"a prompt for {session_id!r}, which {'was closed' if session else 'was not opened here'}",
                *([session.closed] if session and session.closed else []),
                message.entry,
            )
        kinds = [text(each, "type") for each in parts(message.params, "prompt")]
        bad = [each for each in kinds if each in GUARDED_CONTENT and each not in self._able_kinds()]
        self.judge(
            "ACP-PROMPT-101",
            not bad,
            f"the prompt has content of the type {bad}, which the agent did not advertise",
            self.agreement.initialized.entry,
            message.entry,
        )
        if session is not None:
            running = session.running()
            self.judge(
                "ACP-PROMPT-103",
                not running or running[0].cancel is not None,
                "a prompt was sent while another one runs in the session",
                *([running[0].prompt.entry] if running else []),
                message.entry,
            )

    @watch("answer session/prompt", "answer session/set_mode", "answer session/set_config_option")
    def on_unopened_session(self, message: SeenMessage) -> None:
        asked = find_request(message)
        if asked is None or self.agreement.initialized is None:
            return
        request, session_id = asked
        if session_id not in self.state.sessions:
            self.judge(
                "ACP-PROMPT-002",
                message.kind == "error" or text(message.params, "stopReason") == "refusal",
                f"{request.method} for {session_id!r}, which was never opened, succeeded; expected an error",
                request.entry,
                message.entry,
            )

    @watch("answer session/prompt")
    def on_end(self, message: SeenMessage) -> None:
        session, request = self.state.requested_session(message), message.request
        if session is None or request is None or session.closed is not None:
            return
        if self.state.is_v2:
            self._judge_content(request, message)
            return
        turn = next((each for each in session.running() if each.prompt is request), None)
        if turn is None:
            return
        if not turn.rivals:
            self._judge_content(request, message)
        if message.kind == "result":
            self._judge_reason(session, turn, message)
        elif turn.rivals:
            self.count_occasion("ACP-PROMPT-005")

    def _able_kinds(self) -> set[str]:
        return {
            kind for kind, name in GUARDED_CONTENT.items() if self.agreement.agent_offers(f"promptCapabilities.{name}")
        }

    def _judge_content(self, prompt: SeenMessage, message: SeenMessage) -> None:
        kinds = {kind for each in parts(prompt.params, "prompt") if (kind := text(each, "type"))}
        able = self._able_kinds()
        if not kinds or not kinds <= BASELINE_CONTENT | able or not prompt.fits:
            return
        if message.kind == "result":
            accepted = self.state.memory.accepted_content
            accepted |= kinds
            if accepted >= BASELINE_CONTENT:
                self.count_occasion("ACP-PROMPT-003")
            if kinds & able:
                self.count_occasion("ACP-PROMPT-008")
        elif message.code == ErrorCode.INVALID_PARAMS:
            self._refused.append((kinds, prompt.entry, message.entry))

    def _judge_reason(self, session: SeenSession, turn: SeenTurn, message: SeenMessage) -> None:
        if turn.rivals and turn.cancel:
            self.count_occasion("ACP-PROMPT-005")
        if self.state.may_be_cancelled(session, turn):
            return
        self.judge(
            "ACP-PROMPT-005" if turn.rivals else "ACP-PROMPT-006",
            text(message.params, "stopReason") != "cancelled",
            "the turn ended as cancelled, though nobody cancelled it",
            turn.prompt.entry,
            *turn.rivals,
            message.entry,
        )

    @watch("event waited")
    def on_waited(self, message: SeenMessage) -> None:
        if message.sender != "agent":
            return
        for session in self.state.sessions.values():
            for turn in session.running():
                if turn.rivals and turn.prompt.entry.n not in self._unanswered:
                    self._unanswered.add(turn.prompt.entry.n)
                    self.fail(
                        "ACP-PROMPT-005",
                        "two prompts were sent to a session, and this one got no answer",
                        *turn.rivals,
                        turn.prompt.entry,
                        message.entry,
                    )

    @watch("update")
    def on_update(self, message: SeenMessage) -> None:
        """Report content that a version 1 agent sends after the end of its turn, once per turn."""
        session = self.state.session(message)
        if self.state.is_v2 or session is None or session.closed is not None:
            return
        if session.turn is not None or session.last is None:
            return
        end = session.last.end
        if end is None or session.id in self.state.opening or self._reported.get(session.id) is end.entry:
            return
        kind = message.update.get("sessionUpdate")
        if kind not in CONTENT:
            return
        self._reported[session.id] = end.entry
        rule = "ACP-PROMPT-004" if session.last.cancel is None else "ACP-CANCEL-003"
        self.fail(rule, f"a {kind} came after the answer to the prompt", end.entry, message.entry)

    @watch("request")
    def on_request(self, message: SeenMessage) -> None:
        """Count an occasion. A later request shows that there was time for late updates."""
        session = self.state.session(message)
        if session is not None and session.last is not None and message.sender == "client":
            self.count_occasion("ACP-PROMPT-004" if session.last.cancel is None else "ACP-CANCEL-003")

    def end(self) -> None:
        refused = [
            (kinds - self.state.memory.accepted_content, asked, answered) for kinds, asked, answered in self._refused
        ]
        alone = {kind for kinds, *_ in refused if len(kinds) == 1 for kind in kinds}
        for kinds, asked, answered in refused:
            # If one of several kinds was also refused alone, it is the cause. Otherwise the kinds that every agent must
            # accept are suspected last.
            suspects = kinds & alone or kinds
            if suspects - BASELINE_CONTENT:
                self._report_refused("ACP-PROMPT-008", suspects - BASELINE_CONTENT, "advertised", asked, answered)
            elif suspects:
                self._report_refused("ACP-PROMPT-003", suspects, "required of every agent", asked, answered)
        for session in self.state.sessions.values():
            if session.last is not None:
                self.count_occasion("ACP-PROMPT-004" if session.last.cancel is None else "ACP-CANCEL-003")

    def _report_refused(
        self, rule: str, kinds: set[str], why: str, asked: ConversationEntry, answered: ConversationEntry
    ) -> None:
        self.fail(
            rule,
            f"a prompt with content of the type {sorted(kinds)} was refused, and none was ever accepted; it is {why}",
            asked,
            answered,
        )

    @watch("update usage_update")
    def on_usage(self, message: SeenMessage) -> None:
        currency = text(part(message.update, "cost"), "currency")
        if currency is not None:
            self.judge(
                "ACP-PROMPT-007",
                len(currency) == 3 and currency.isascii() and currency.isalpha() and currency.isupper(),
                f"the currency is {currency!r}; expected a code such as 'USD'",
                message.entry,
            )


class CancelObserver(Observer):
    """Judges how cancelled turns end."""

    area: ClassVar[str] = "CANCEL"
    versions: ClassVar[tuple[Version, ...]] = V1

    @watch("answer session/prompt")
    def on_end(self, message: SeenMessage) -> None:
        session, request = self.state.requested_session(message), message.request
        if session is None or request is None:
            return
        turn = next((each for each in session.running() if each.prompt is request), None)
        if turn is None or turn.cancel is None:
            return
        self.count_occasion("ACP-CANCEL-004")
        reason = text(message.params, "stopReason")
        if message.kind == "result" and reason == "cancelled":
            self.count_occasion("ACP-CANCEL-001")
            self.count_occasion("ACP-CANCEL-002")
            return
        if turn is not session.turn or turn.rivals:  # with several prompts, the cancel may be for another one
            return
        if message.kind == "result" and not message.fits:
            return  # ACP-PROMPT-001 covers that
        proof = self.state.proof_of_reading(turn, message.entry.at_s)
        if proof is None:
            self._warn_of_missed_cancel(turn, turn.cancel, message)
            return
        entries = (request.entry, turn.cancel, proof, message.entry)
        if message.kind == "error":
            self.fail(
                "ACP-CANCEL-002", f"a cancelled turn ended with the error {message.code}; expected cancelled", *entries
            )
        else:
            self.fail("ACP-CANCEL-001", f"a cancelled turn ended with {reason!r}; expected cancelled", *entries)

    def _warn_of_missed_cancel(self, turn: SeenTurn, cancel: ConversationEntry, message: SeenMessage) -> None:
        """Warn if the agent continued after a cancel. Without times, nothing proves better that it had read it."""
        last = self.timeline.last.get("agent")
        if self.timeline.is_timed or last is None or last.n < cancel.n:
            return
        rule = "ACP-CANCEL-002" if message.kind == "error" else "ACP-CANCEL-001"
        ended = text(message.params, "stopReason") or f"the error {message.code}"
        self.warn(
            rule,
            f"the agent continued after a cancel and ended the turn with {ended}; "
            "expected cancelled, if it had read the cancel",
            turn.prompt.entry,
            cancel,
            last,
            message.entry,
        )

    @watch("event waited")
    def on_waited(self, message: SeenMessage) -> None:
        if message.sender != "agent":
            return
        for turn in tuple(self.state.cancelling):
            if turn.cancel is not None and turn.end is None and not turn.rivals:  # ACP-PROMPT-005 covers those
                self.state.cancelling.remove(turn)
                if turn.is_stuck:
                    continue  # ACP-WIRE-011 covers that
                self.fail(
                    "ACP-CANCEL-004",
                    f"a cancelled turn has not ended; {message.entry.event} s for it",
                    turn.prompt.entry,
                    turn.cancel,
                    message.entry,
                )
