"""Watches requests that get no answer, or a late one, and tells a peer that forgets from one that is slow.

A checker that gives up on an answer records `waited S`. On a busy machine that proves nothing about an agent, because
its answer may come later. An answer to a request that was sent later proves that the first request was forgotten. So
the verdict on an agent waits for the end of the conversation.
"""

from typing import ClassVar, NamedTuple

from dragoman.check.conversation import OTHER, ConversationEntry, Side
from dragoman.check.judge.message import Json, SeenMessage
from dragoman.check.judge.observer import FindingSink, Observer, watch
from dragoman.check.judge.rpc import PERMISSION, wire_rule
from dragoman.check.judge.session import ALIVE

SILENCE_S = 30.0
"""A request this old gets no answer any more, if its receiver has sent other messages since."""
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
"""Requests that wait for a person, a model or a program, and may take as long as those do."""


class _Overdue(NamedTuple):
    """A request to the agent without an answer in time, and the event that says so."""

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
        """The first answer to a request that was sent after an overdue one, by the entry number of the overdue one."""
        self._kept_waiting: ConversationEntry | None = None
        """The event that a client did not answer a permission request in time."""
        self._outlived: dict[Json, ConversationEntry] = {}
        """Prompts after a turn with a question that the client never answered, by the id of the question."""
        self._ended: set[Json] = set()
        """Questions that were open when their turn ended."""

    @watch("answer")
    def see_answer(self, message: SeenMessage) -> None:
        side, request = message.sender, message.request
        if request is None:
            return
        self._last_answers[side] = [*self._last_answers[side], request.entry.n][-ENOUGH_ANSWERS:]
        for overdue in tuple(self._overdue) if side == "agent" else ():
            if overdue.request is request:
                self._overdue.remove(overdue)
                self._tell_slow(overdue, message.entry)
            elif request.entry.n > overdue.request.entry.n:
                self._overtaken.setdefault(overdue.request.entry.n, message.entry)

    @watch("answer session/prompt")
    def see_turn_end(self, message: SeenMessage) -> None:
        session = self.state.asked_session(message)
        if session is not None:
            questions = self.requests.find_open("agent", session.id)
            self._ended.update(each.id for each in questions if each.method == PERMISSION)

    @watch("request session/prompt")
    def see_next_turn(self, message: SeenMessage) -> None:
        session_id = message.params.get("sessionId")
        if self._ended and isinstance(session_id, str):
            for each in self.requests.find_open("agent", session_id):
                if each.id in self._ended:
                    self._outlived.setdefault(each.id, message.entry)

    @watch("event waited")
    def see_waited(self, message: SeenMessage) -> None:
        side = message.sender
        for request in tuple(self.requests.pending[OTHER[side]].values()):
            if side == "client" and request.method == PERMISSION:
                self._kept_waiting = message.entry
            if request.cancelled is not None:
                self._tell_unanswered(wire_rule(side, 25), side, request, message.entry)
            elif side == "client" and request.method not in PATIENT:
                self._tell_unanswered(wire_rule(side, 11), side, request, message.entry)
            elif request.method not in PATIENT and request.method != ALIVE:
                self._see_overdue(request, message.entry)

    def _see_overdue(self, request: SeenMessage, waited: ConversationEntry) -> None:
        if request.method == "initialize" and request.fits and not self.state.memory.versions:
            # An agent that was never seen to say hello cannot pass, however busy the machine is.
            self.requests.give_up(request)
            detail = f"{request.method} got no answer from the agent in {_seconds(waited)}"
            self.fail(
                "ACP-WIRE-011", f"{detail}; if it only needs longer, give it --start-timeout", request.entry, waited
            )
            return
        self.requests.give_up(request)
        self._overdue.append(_Overdue(request, waited))

    @watch("event stdout")
    def see_closed(self, message: SeenMessage) -> None:
        """Report the open requests of a side that can answer nothing any more."""
        side = message.sender
        for request in tuple(self.requests.pending[OTHER[side]].values()):
            self._tell_unanswered(wire_rule(side, 11), side, request, message.entry)

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
                    self._tell_unanswered(wire_rule(side, 11), side, request, last)

    def _judge_overdue(self, overdue: _Overdue) -> None:
        request, waited = overdue
        overtaken = self._overtaken.get(request.entry.n)
        if overtaken is None:
            self._tell_slow(overdue, waited)
            return
        self.fail(
            "ACP-WIRE-011",
            f"{request.method} got no answer from the agent, and a request that was sent later did",
            request.entry,
            waited,
            overtaken,
        )

    def _tell_slow(self, overdue: _Overdue, proof: ConversationEntry) -> None:
        option = "--start-timeout" if overdue.request.method == "initialize" else "--timeout or --turn-timeout"
        self.warn(
            "ACP-WIRE-011",
            f"{overdue.request.method} got no answer from the agent in {_seconds(overdue.waited)}; if it only needs "
            f"longer, give it {option}",
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
        """A person may take long, but not past the end of the turn and the next prompt."""
        session = self.state.session(request)
        if session is None or session.closing is not None:
            return
        turns = [*session.running(), *([session.last] if session.last is not None else [])]
        if any(turn.cancel is not None for turn in turns):
            return  # ACP-CANCEL-101 is for those
        waited = self._kept_waiting
        proof = waited if waited is not None and waited.n > request.entry.n else self._outlived.get(request.id)
        if proof is not None:
            self._tell_unanswered(wire_rule("client", 11), "client", request, proof)

    def _tell_unanswered(self, rule_id: str, side: Side, request: SeenMessage, proof: ConversationEntry) -> None:
        # Told once: it stays open, and would be found again.
        self.requests.give_up(request)
        self.fail(rule_id, f"{request.method} got no answer from the {side}", request.entry, proof)


def _seconds(waited: ConversationEntry) -> str:
    return f"{waited.event.removeprefix('waited ')} s"
