"""Watches prompt turns and their cancelling.

A cancel and the end of a turn may cross: seen from the client's side, an agent that answers `end_turn`
right after a cancel need not have read it. It is blamed only on proof that it had: it answered something that was
asked after the cancel, it had been waiting for a permission that was answered after the cancel, or the cancel was
there for seconds.
"""

from typing import ClassVar

from dragoman.check.conversation import ConversationEntry
from dragoman.check.judge.message import SeenMessage, find_asked, part, parts, text
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
"""Updates that an agent may send only to clients with a capability for them."""


class PromptObserver(Observer):
    """Judges prompts and their ends."""

    area: ClassVar[str] = "PROMPT"

    def __init__(self, sink: FindingSink) -> None:
        super().__init__(sink)
        self._told: dict[str, ConversationEntry] = {}
        """Ends of turns after which a late update was told already."""
        self._refused: list[tuple[set[str], ConversationEntry, ConversationEntry]] = []
        """Prompts that were refused, with the kinds of their content; the reason may also be the text."""
        self._unanswered: set[int] = set()
        """Prompts that were told already to have got no answer, by their entries."""

    @watch(*(f"update {kind}" for kind in ADVERTISED_UPDATES))
    def see_advertised(self, message: SeenMessage) -> None:
        kind = str(message.update["sessionUpdate"])
        capability = ADVERTISED_UPDATES[kind]
        if self.agreement.is_known:
            self.judge(
                "ACP-PROMPT-009",
                self.agreement.client_offers(capability),
                f"a {kind} was sent, {self.agreement.explain_lack(capability)}",
                *([self.agreement.initialize.entry] if self.agreement.initialize else []),
                message.entry,
            )

    @watch("request session/prompt")
    def see_prompt(self, message: SeenMessage) -> None:
        if self.agreement.initialized is None:
            return
        session = self.state.session(message)
        self.judge(
            "ACP-PROMPT-102",
            session is not None,
            f"a prompt for {text(message.params, 'sessionId')!r}, which was not opened here",
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
    def see_stranger(self, message: SeenMessage) -> None:
        asked = find_asked(message)
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
    def see_end(self, message: SeenMessage) -> None:
        session, request = self.state.asked_session(message), message.request
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
            self.saw("ACP-PROMPT-005")

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
            taken = self.state.memory.taken
            taken |= kinds
            if taken >= BASELINE_CONTENT:
                self.saw("ACP-PROMPT-003")
            if kinds & able:
                self.saw("ACP-PROMPT-008")
        elif message.code == ErrorCode.INVALID_PARAMS:
            self._refused.append((kinds, prompt.entry, message.entry))

    def _judge_reason(self, session: SeenSession, turn: SeenTurn, message: SeenMessage) -> None:
        if turn.rivals and turn.cancel:
            self.saw("ACP-PROMPT-005")
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
    def see_waited(self, message: SeenMessage) -> None:
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
    def see_update(self, message: SeenMessage) -> None:
        session = self.state.session(message)
        if self.state.is_v2 or session is None or session.closed is not None:
            return
        if session.turn is not None or session.last is None:
            return
        end = session.last.end
        if end is None or session.id in self.state.opening or self._told.get(session.id) is end.entry:
            return
        kind = message.update.get("sessionUpdate")
        if kind not in CONTENT:
            return
        self._told[session.id] = end.entry
        rule = "ACP-PROMPT-004" if session.last.cancel is None else "ACP-CANCEL-003"
        self.fail(rule, f"a {kind} came after the answer to the prompt", end.entry, message.entry)

    @watch("request")
    def see_request(self, message: SeenMessage) -> None:
        """Count an occasion: a later request shows that there was time for late updates."""
        session = self.state.session(message)
        if session is not None and session.last is not None and message.sender == "client":
            self.saw("ACP-PROMPT-004" if session.last.cancel is None else "ACP-CANCEL-003")

    def end(self) -> None:
        refused = [(kinds - self.state.memory.taken, asked, answered) for kinds, asked, answered in self._refused]
        alone = {kind for kinds, *_ in refused if len(kinds) == 1 for kind in kinds}
        for kinds, asked, answered in refused:
            # Of several kinds, one that was also refused alone is the cause. If there is none, kinds that every agent
            # must take are suspected last.
            suspects = kinds & alone or kinds
            if suspects - BASELINE_CONTENT:
                self._tell_refused("ACP-PROMPT-008", suspects - BASELINE_CONTENT, "advertised", asked, answered)
            elif suspects:
                self._tell_refused("ACP-PROMPT-003", suspects, "for every agent to take", asked, answered)
        for session in self.state.sessions.values():
            if session.last is not None:
                self.saw("ACP-PROMPT-004" if session.last.cancel is None else "ACP-CANCEL-003")

    def _tell_refused(
        self, rule: str, kinds: set[str], why: str, asked: ConversationEntry, answered: ConversationEntry
    ) -> None:
        self.fail(
            rule,
            f"a prompt with content of the type {sorted(kinds)} was refused, and none was ever taken; it is {why}",
            asked,
            answered,
        )

    @watch("update usage_update")
    def see_usage(self, message: SeenMessage) -> None:
        currency = text(part(message.update, "cost"), "currency")
        if currency is not None:
            self.judge(
                "ACP-PROMPT-007",
                len(currency) == 3 and currency.isascii() and currency.isalpha() and currency.isupper(),
                f"the currency is {currency!r}; expected a code such as 'USD'",
                message.entry,
            )


class CancelObserver(Observer):
    """Judges how turns end that were cancelled."""

    area: ClassVar[str] = "CANCEL"
    versions: ClassVar[tuple[Version, ...]] = V1

    @watch("answer session/prompt")
    def see_end(self, message: SeenMessage) -> None:
        session, request = self.state.asked_session(message), message.request
        if session is None or request is None:
            return
        turn = next((each for each in session.running() if each.prompt is request), None)
        if turn is None or turn.cancel is None:
            return
        self.saw("ACP-CANCEL-004")
        reason = text(message.params, "stopReason")
        if message.kind == "result" and reason == "cancelled":
            self.saw("ACP-CANCEL-001")
            self.saw("ACP-CANCEL-002")
            return
        if turn is not session.turn or turn.rivals:  # of several prompts, it may be for another one
            return
        proof = self.state.has_heard(turn, message.entry.at_s)
        if proof is None:
            self._doubt(turn, turn.cancel, message)
            return
        entries = (request.entry, turn.cancel, proof, message.entry)
        if message.kind == "error":
            self.fail(
                "ACP-CANCEL-002", f"a cancelled turn ended with the error {message.code}; expected cancelled", *entries
            )
        else:
            self.fail("ACP-CANCEL-001", f"a cancelled turn ended with {reason!r}; expected cancelled", *entries)

    def _doubt(self, turn: SeenTurn, cancel: ConversationEntry, message: SeenMessage) -> None:
        """Warn if the agent went on after a cancel; without times there is no better proof that it had read it."""
        last = self.timeline.last.get("agent")
        if self.timeline.is_timed or last is None or last.n < cancel.n:
            return
        rule = "ACP-CANCEL-002" if message.kind == "error" else "ACP-CANCEL-001"
        ended = text(message.params, "stopReason") or f"the error {message.code}"
        self.warn(
            rule,
            f"the agent went on after a cancel and ended the turn with {ended}; expected cancelled, if it had read it",
            turn.prompt.entry,
            cancel,
            last,
            message.entry,
        )

    @watch("event waited")
    def see_waited(self, message: SeenMessage) -> None:
        if message.sender != "agent":
            return
        for turn in tuple(self.state.cancelling):
            if turn.cancel is not None and turn.end is None and not turn.rivals:  # ACP-PROMPT-005 is for those
                self.state.cancelling.remove(turn)
                self.fail(
                    "ACP-CANCEL-004",
                    f"a cancelled turn has not ended; {message.entry.event} s for it",
                    turn.prompt.entry,
                    turn.cancel,
                    message.entry,
                )
