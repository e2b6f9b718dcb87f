"""Watches lines: whether they are messages, and whether a side survives garbage from the other.

A line that ends before its JSON does may be the first of a message printed over several lines, or the last line of
a process that was killed. The next line or event decides.
"""

from typing import ClassVar

from dragoman.check.conversation import OTHER, ConversationEntry, Side
from dragoman.check.judge.message import Noise, SeenMessage
from dragoman.check.judge.observer import FindingSink, Observer, watch
from dragoman.check.judge.rpc import wire_rule

LONG_BYTES = 64 * 1024
"""The buffer of many line readers: a longer line shows their limit."""


class NoiseObserver(Observer):
    """Judges the framing of both sides."""

    area: ClassVar[str] = "WIRE"

    def __init__(self, sink: FindingSink) -> None:
        super().__init__(sink)
        self._sink = sink
        self._lines: dict[Side, int] = {"agent": 0, "client": 0}
        self._unfinished: dict[Side, ConversationEntry] = {}
        self._in_pieces: set[Side] = set()
        self._garbage: dict[Side, list[Noise]] = {"agent": [], "client": []}
        """Garbage from a side that the other one has not yet been seen to survive."""
        self._long: dict[Side, SeenMessage] = {}
        self._silent: ConversationEntry | None = None
        """The event that the agent has not answered a request after garbage."""
        self.nulls: dict[Side, int] = {"agent": 0, "client": 0}

    def count(self) -> None:
        for side, lines in self._lines.items():
            for number in (1, 2, 3, 4):
                self._sink.count_occasions(wire_rule(side, number), lines)
            self._lines[side] = 0

    def see_noise(self, noise: Noise) -> None:
        side = noise.entry.sender
        if not noise.entry.line.strip():
            self.warn(
                wire_rule(side, 1), "the line is blank, which most readers pass over; expected a message", noise.entry
            )
            return
        self._garbage[side].append(noise)
        if self._tell_unfinished(side, noise):
            return
        match noise.kind:
            case "unfinished":
                self._unfinished[side] = noise.entry
            case "utf-8":
                self.fail(wire_rule(side, 2), f"{noise.detail}; expected UTF-8", noise.entry)
            case "batch" | "trailing":
                self.fail(wire_rule(side, 3), f"{noise.detail}; expected one message a line", noise.entry)
            case "no message":
                self.fail(wire_rule(side, 4), f"{noise.detail}; expected a JSON-RPC message", noise.entry)
            case _:
                self.fail(wire_rule(side, 1), f"{noise.detail}; expected a JSON-RPC message", noise.entry)

    @watch("message")
    def see_message(self, message: SeenMessage) -> None:
        side = message.sender
        self._lines[side] += 1
        if self._unfinished or self._in_pieces:
            self._tell_unfinished(side, None)
            self._in_pieces.discard(side)
        if message.flaws:
            for flaw in message.flaws:
                self.fail(wire_rule(side, 4), f"{flaw}; expected a JSON-RPC 2.0 message", message.entry)
        if len(message.entry.line) > LONG_BYTES:
            self._long.setdefault(side, message)

    @watch("answer")
    def see_answer(self, message: SeenMessage) -> None:
        """An answer shows that its side survived the lines before the request."""
        side, request = message.sender, message.request
        if request is None:
            return
        other = OTHER[side]
        survived = [each for each in self._garbage[other] if each.entry.n < request.entry.n]
        if survived:
            self.saw(wire_rule(side, 12))
            self._garbage[other] = self._garbage[other][len(survived) :]
            self._silent = None
            if side == "agent":
                self._tell_unanswered(survived, message.entry)
        long = self._long.get(other)
        if long is not None and long.entry.n <= request.entry.n:
            self.saw(wire_rule(side, 14))
            del self._long[other]

    @watch("error")
    def see_refusal(self, message: SeenMessage) -> None:
        if message.request is None and message.id is None:
            self.nulls[message.sender] += 1

    @watch("event exited", "event waited")
    def see_end(self, message: SeenMessage) -> None:
        side = message.sender
        if side in self.timeline.closed:
            return
        other = OTHER[side]
        if side in self._unfinished:
            self._tell_unfinished(side, None)
        has_ended = message.entry.event.startswith("exited")
        if self._garbage[other] and has_ended:
            self._tell_deadly(side, self._garbage[other].pop(), message.entry)
            self._garbage[other].clear()
        elif side == "agent" and self._has_asked_after_garbage():
            self._silent = message.entry
        elif other in self._long:
            self._tell_long(side, self._long.pop(other), message.entry)

    def _has_asked_after_garbage(self) -> bool:
        garbage = self._garbage["client"]
        return any(garbage and each.entry.n > garbage[0].entry.n for each in self.requests.pending["client"].values())

    def _tell_deadly(self, side: Side, noise: Noise, proof: ConversationEntry) -> None:
        self.timeline.explained = proof
        detail = f"the {side} {_fate(proof.event)} after a line that is"
        if noise.kind == "utf-8":
            # The other side broke a MUST, and strict decoders are common: that is no proof of a weak reader.
            self.warn(wire_rule(side, 12), f"{detail} not UTF-8, which nobody may send", noise.entry, proof)
        else:
            self.fail(wire_rule(side, 12), f"{detail} no message; expected it to go on", noise.entry, proof)

    def _tell_long(self, side: Side, long: SeenMessage, proof: ConversationEntry) -> None:
        # That it was not answered, or that the process ended, is no second mistake.
        self.timeline.explained = proof
        self.requests.give_up(long)
        self.fail(
            wire_rule(side, 14),
            f"after a line of {len(long.entry.line)} bytes the {side} {_fate(proof.event)}; expected it to be read",
            long.entry,
            proof,
        )

    def end(self) -> None:
        for side in tuple(self._unfinished):
            if side not in self.timeline.closed:
                self._tell_unfinished(side, None)
        if self._silent is not None and self._garbage["client"]:
            self._tell_deadly("agent", self._garbage["client"][-1], self._silent)

    def _tell_unfinished(self, side: Side, noise: Noise | None) -> bool:
        """Say that a message was spread over lines, once for all its pieces; true when the noise is one of them."""
        entry = self._unfinished.pop(side, None)
        if entry is not None:
            self.fail(wire_rule(side, 3), "the line ends before its JSON does; expected a message in one line", entry)
            self._in_pieces.add(side)
        return noise is not None and side in self._in_pieces

    def _tell_unanswered(self, survived: list[Noise], answer: ConversationEntry) -> None:
        self.saw("ACP-WIRE-013")
        if self.nulls["agent"] >= len(survived):
            self.nulls["agent"] -= len(survived)
            return
        self.nulls["agent"] = 0
        self.warn(
            "ACP-WIRE-013",
            "a line that is no message got no answer; expected an error with the id null",
            survived[-1].entry,
            answer,
        )


def _fate(event: str) -> str:
    return event if event.startswith("exited") else f"was silent, {event} s for it"
