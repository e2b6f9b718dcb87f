"""Rules about requests without an answer, which distinguish a peer that forgets from one that is slow.

A checker that stops waiting for an answer records `waited S`. On a busy machine that proves nothing about an agent,
because its answer may come later. An answer to a later request proves that the first one was forgotten. The verdict on
an agent therefore waits for the end of the conversation.
"""

from typing import ClassVar, NamedTuple

from dragoman.check.conversation import OTHER, ConversationEntry, Side
from dragoman.check.judge.message import Json, SeenMessage, text
from dragoman.check.judge.observer import FindingSink, Observer, watch
from dragoman.check.judge.rpc import PERMISSION, wire_rule
from dragoman.check.judge.session import ALIVE, SeenSession
from dragoman.check.judge.state import PROOF_S

SILENCE_S = 30.0
"""A request this old will not be answered, if its receiver has sent other messages since."""
ENOUGH_ANSWERS = 3
"""Without times, this many answers to later requests show that an earlier one was forgotten."""

PATIENT = frozenset(
    {
        "authenticate",
        "session/prompt",
        PERMISSION,
        "elicitation/create",
        "terminal/wait_for_exit",
        "mcp/message",
    }
)
"""Requests that wait for a user, a model or a program, and may take any time."""


class _Overdue(NamedTuple):
    """A request to the agent that was not answered in time, and the event that records this."""

    request: SeenMessage
    waited: ConversationEntry


class UnansweredObserver(Observer):
    """Judges whether every request is answered."""

    area: ClassVar[str] = "WIRE"

    def __init__(self, sink: FindingSink) -> None:
        super().__init__(sink)
        self._last_answers: dict[Side, list[int]] = {"agent": [], "client": []}
        """The entry numbers of the requests that a side answered last."""
        self._overdue: list[_Overdue] = []
        self._overtaken: dict[int, ConversationEntry] = {}
        """The first response to a request sent after an overdue one, by the entry number of the overdue one."""
        self._kept_waiting: ConversationEntry | None = None
        """The event that a client did not answer a permission request in time."""
        self._outlived: dict[Json, ConversationEntry] = {}
        """Prompts sent after a turn with an unanswered permission request, by the id of that request."""
        self._ended: set[Json] = set()
        """Permission requests that were open when their turn ended."""

    @watch("answer")
    def on_answer(self, message: SeenMessage) -> None:
        side, request = message.sender, message.request
        if request is None:
            return
        self._last_answers[side] = [*self._last_answers[side], request.entry.n][-ENOUGH_ANSWERS:]
        for overdue in tuple(self._overdue) if side == "agent" else ():
            if overdue.request is request:
                self._overdue.remove(overdue)
                self._report_slow(overdue, message.entry)
            elif request.entry.n > overdue.request.entry.n:
                self._overtaken.setdefault(overdue.request.entry.n, message.entry)

    @watch("answer session/prompt")
    def on_turn_end(self, message: SeenMessage) -> None:
        session = self.state.requested_session(message)
        if session is not None:
            questions = self.requests.find_open("agent", session.id)
            self._ended.update(each.id for each in questions if each.method == PERMISSION)

    @watch("request session/prompt")
    def on_next_turn(self, message: SeenMessage) -> None:
        session_id = message.params.get("sessionId")
        if self._ended and isinstance(session_id, str):
            for each in self.requests.find_open("agent", session_id):
                if each.id in self._ended:
                    self._outlived.setdefault(each.id, message.entry)

    @watch("event waited")
    def on_waited(self, message: SeenMessage) -> None:
        """Judge every open request after the time limit, and the turns of an agent.

        A cancelled request needs an answer soonest. Requests that wait for a user or for a command may take
        longer, unless the command was killed.
        """
        side = message.sender
        for request in tuple(self.requests.pending[OTHER[side]].values()):
            if side == "client" and request.method == PERMISSION:
                self._kept_waiting = message.entry
            if request.cancelled is not None:
                self._report_unanswered(wire_rule(side, 25), side, request, message.entry)
            elif side == "client" and (request.method not in PATIENT or self._is_killed(request)):
                self._report_unanswered(wire_rule(side, 11), side, request, message.entry)
            elif request.method not in PATIENT and request.method != ALIVE:
                self._on_overdue(request, message.entry)
        for session in self.state.sessions.values() if side == "agent" else ():
            if self.state.is_v2:
                self._on_queue(session, message.entry)
            else:
                self._on_turn(session, message.entry)

    def _on_queue(self, session: SeenSession, waited: ConversationEntry) -> None:
        """Judge a version 2 prompt that was held during other work, and never started."""
        last = session.last
        if session.turn is not None or last is None or last.end is None or last.cancel is not None:
            return
        for prompt in self.requests.find_open("client", session.id):
            is_past = (
                last.prompt.entry.n < prompt.entry.n < last.end.entry.n and waited.at_s - last.end.entry.at_s >= PROOF_S
            )
            if prompt.method == "session/prompt" and prompt.cancelled is None and session.closing is None and is_past:
                self.requests.mark_late(prompt)
                detail = "session/prompt got no answer from the agent, though the work before it has ended"
                self.fail("ACP-WIRE-011", detail, prompt.entry, last.end.entry, waited)

    def _on_turn(self, session: SeenSession, waited: ConversationEntry) -> None:
        """Judge a version 1 turn that has ended neither in time nor after a cancel that the agent has read."""
        turn = session.turn
        if turn is None or turn.rivals or self.requests.find_open("agent", session.id):
            return
        if turn.is_stuck:
            self.fail(
                "ACP-WIRE-011",
                "the agent answered session/prompt neither within the time limit nor after a cancel",
                turn.prompt.entry,
                *([turn.cancel] if turn.cancel else []),
                waited,
            )
        elif turn.cancel is None and turn.prompt.cancelled is None and session.closing is None:
            turn.overdue = waited
            detail = (
                f"session/prompt got no answer from the agent in {_seconds(waited)}; if it only needs longer, give it"
            )
            self.warn("ACP-WIRE-011", f"{detail} --turn-timeout", turn.prompt.entry, waited)

    def _is_killed(self, request: SeenMessage) -> bool:
        """Return whether a request waits for the end of a killed command."""
        terminal = self.state.terminals.get(text(request.params, "terminalId") or "")
        return request.method == "terminal/wait_for_exit" and terminal is not None and terminal.killed is not None

    def _on_overdue(self, request: SeenMessage, waited: ConversationEntry) -> None:
        if request.method == "initialize" and request.fits and not self.state.memory.versions:
            # An agent that never answered initialize cannot pass, however busy the machine is.
            self.requests.mark_late(request)
            detail = f"{request.method} got no answer from the agent in {_seconds(waited)}"
            self.fail("ACP-WIRE-011", f"{detail}; if it only needs longer, use --start-timeout", request.entry, waited)
            return
        self.requests.mark_late(request)
        self._overdue.append(_Overdue(request, waited))

    @watch("event stdout")
    def on_closed(self, message: SeenMessage) -> None:
        """Report the open requests of a side that can no longer answer."""
        side = message.sender
        for request in tuple(self.requests.pending[OTHER[side]].values()):
            self._report_unanswered(wire_rule(side, 11), side, request, message.entry)

    def end(self) -> None:
        for overdue in self._overdue:
            if overdue.waited is not self.timeline.explained:
                self._judge_overdue(overdue)
        self._overdue.clear()
        for side in ("agent", "client"):
            last = self.timeline.last.get(side)
            for request in tuple(self.requests.pending[OTHER[side]].values()):
                if request.cancelled is not None:
                    continue
                if request.method == PERMISSION:
                    self._judge_question(request)
                elif last is not None and request.method not in PATIENT and self._is_forgotten(side, request, last):
                    self._report_unanswered(wire_rule(side, 11), side, request, last)

    def _judge_overdue(self, overdue: _Overdue) -> None:
        request, waited = overdue
        overtaken = self._overtaken.get(request.entry.n)
        if overtaken is None:
            self._report_slow(overdue, waited)
            return
        self.fail(
            "ACP-WIRE-011",
            f"{request.method} got no answer from the agent, and a request that was sent later did",
            request.entry,
            waited,
            overtaken,
        )

    def _report_slow(self, overdue: _Overdue, proof: ConversationEntry) -> None:
        option = "--start-timeout" if overdue.request.method == "initialize" else "--answer-timeout or --turn-timeout"
        self.warn(
            "ACP-WIRE-011",
            f"{overdue.request.method} got no answer from the agent in {_seconds(overdue.waited)}; if it only needs "
            f"longer, use {option}",
            overdue.request.entry,
            overdue.waited,
            proof,
        )

    def _is_forgotten(self, side: Side, request: SeenMessage, last: ConversationEntry) -> bool:
        if self.timeline.is_timed:
            return last.at_s - request.entry.at_s >= SILENCE_S
        later = [each for each in self._last_answers[side] if each > request.entry.n]
        return len(later) >= ENOUGH_ANSWERS

    def _judge_question(self, request: SeenMessage) -> None:
        """Judge an open permission request. The user may take long, but not past the turn's end and the next prompt."""
        session = self.state.session(request)
        if session is None or session.closing is not None:
            return
        turns = [*session.running(), *([session.last] if session.last is not None else [])]
        if any(turn.cancel is not None for turn in turns):
            return  # ACP-CANCEL-101 covers those
        waited = self._kept_waiting
        proof = waited if waited is not None and waited.n > request.entry.n else self._outlived.get(request.id)
        if proof is not None:
            self._report_unanswered(wire_rule("client", 11), "client", request, proof)

    def _report_unanswered(self, rule_id: str, side: Side, request: SeenMessage, proof: ConversationEntry) -> None:
        # Report it once. It stays open and would be found again.
        self.requests.mark_late(request)
        self.fail(rule_id, f"{request.method} got no answer from the {side}", request.entry, proof)


def _seconds(waited: ConversationEntry) -> str:
    return f"{waited.event.removeprefix('waited ')} s"
