"""Rules about lines: whether they are messages, and whether a side survives invalid lines from the other.

A line that ends before its JSON does may be the first of a message printed over several lines, or the last line of a
killed process. The next line or event decides.
"""

from typing import ClassVar

from dragoman.check.conversation import OTHER, ConversationEntry, Side
from dragoman.check.judge.message import LONG_BYTES, Noise, SeenMessage
from dragoman.check.judge.observer import FindingSink, Observer, watch
from dragoman.check.judge.rpc import wire_rule


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
        """Invalid lines from a side that the other one has not yet proved to survive."""
        self._long: dict[Side, SeenMessage] = {}
        self._silent: ConversationEntry | None = None
        """The event that the agent did not answer a request after an invalid line."""
        self.nulls: dict[Side, int] = {"agent": 0, "client": 0}

    def count(self) -> None:
        for side, lines in self._lines.items():
            for number in (1, 2, 3, 4):
                self._sink.count_occasions(wire_rule(side, number), lines)
            self._lines[side] = 0

    def on_noise(self, noise: Noise) -> None:
        side = noise.entry.sender
        if not noise.entry.line.strip():
            self.warn(
                wire_rule(side, 1), "the line is blank, which most readers ignore; expected a message", noise.entry
            )
            return
        self._garbage[side].append(noise)
        if self._report_unfinished(side, noise):
            return
        match noise.kind:
            case "unfinished":
                self._unfinished[side] = noise.entry
            case "utf-8":
                self.fail(wire_rule(side, 2), f"{noise.detail}; expected UTF-8", noise.entry)
            case "batch" | "trailing":
                self.fail(wire_rule(side, 3), f"{noise.detail}; expected one message per line", noise.entry)
            case "no message":
                self.fail(wire_rule(side, 4), f"{noise.detail}; expected a JSON-RPC message", noise.entry)
            case _:
                self.fail(wire_rule(side, 1), f"{noise.detail}; expected a JSON-RPC message", noise.entry)

    @watch("message")
    def on_message(self, message: SeenMessage) -> None:
        side = message.sender
        self._lines[side] += 1
        if self._unfinished or self._in_pieces:
            self._report_unfinished(side, None)
            self._in_pieces.discard(side)
        if message.flaws:
            for flaw in message.flaws:
                self.fail(wire_rule(side, 4), f"{flaw}; expected a JSON-RPC 2.0 message", message.entry)
        if len(message.entry.line) > LONG_BYTES:
            self._long.setdefault(side, message)

    @watch("answer")
    def on_answer(self, message: SeenMessage) -> None:
        """Record that the answering side survived the lines before the request."""
        side, request = message.sender, message.request
        if request is None:
            return
        other = OTHER[side]
        survived = [each for each in self._garbage[other] if each.entry.n < request.entry.n]
        if survived:
            self.count_occasion(wire_rule(side, 12))
            self._garbage[other] = self._garbage[other][len(survived) :]
            self._silent = None
            if side == "agent":
                self._report_unanswered(survived, message.entry)
        long = self._long.get(other)
        if long is not None and long.entry.n <= request.entry.n:
            self.count_occasion(wire_rule(side, 14))
            del self._long[other]

    @watch("error")
    def on_refusal(self, message: SeenMessage) -> None:
        if message.request is None and message.id is None:
            self.nulls[message.sender] += 1

    @watch("event exited", "event waited")
    def on_end(self, message: SeenMessage) -> None:
        side = message.sender
        if side in self.timeline.closed:
            return
        other = OTHER[side]
        if side in self._unfinished:
            self._report_unfinished(side, None)
        has_ended = message.entry.event.startswith("exited")
        if self._garbage[other] and has_ended:
            self._report_deadly(side, self._garbage[other].pop(), message.entry)
            self._garbage[other].clear()
        elif side == "agent" and self._has_asked_after_garbage():
            self._silent = message.entry
        elif other in self._long and (has_ended or not self._was_silent_before(side, self._long[other])):
            self._report_long(side, self._long.pop(other), message.entry)

    def _was_silent_before(self, side: Side, long: SeenMessage) -> bool:
        """Return whether a side left requests unanswered before a long line, so that its silence proves nothing."""
        return self.requests.find_oldest_unanswered(OTHER[side]) < long.entry.n

    def _has_asked_after_garbage(self) -> bool:
        garbage = self._garbage["client"]
        return any(garbage and each.entry.n > garbage[0].entry.n for each in self.requests.pending["client"].values())

    def _report_deadly(self, side: Side, noise: Noise, proof: ConversationEntry) -> None:
        self.timeline.explained = proof
        detail = f"the {side} {_end_text(proof.event)} after a line that is"
        if noise.kind == "utf-8":
            # The other side broke a MUST, and strict decoders are common. This does not prove a weak reader.
            self.warn(wire_rule(side, 12), f"{detail} not UTF-8, which is never valid", noise.entry, proof)
        else:
            self.fail(wire_rule(side, 12), f"{detail} not a message; expected it to continue", noise.entry, proof)

    def _report_long(self, side: Side, long: SeenMessage, proof: ConversationEntry) -> None:
        # A missing answer to this line, or the exit, is not a second mistake.
        self.timeline.explained = proof
        self.requests.mark_late(long)
        self.fail(
            wire_rule(side, 14),
            f"after a line of {len(long.entry.line)} bytes the {side} {_end_text(proof.event)}; expected it to be read",
            long.entry,
            proof,
        )

    def end(self) -> None:
        for side in tuple(self._unfinished):
            if side not in self.timeline.closed:
                self._report_unfinished(side, None)
        if self._silent is not None and self._garbage["client"]:
            self._report_deadly("agent", self._garbage["client"][-1], self._silent)

    def _report_unfinished(self, side: Side, noise: Noise | None) -> bool:
        """Report a message that was spread over lines, once for all its pieces.

        Return whether the noise is one of them.
        """
        entry = self._unfinished.pop(side, None)
        if entry is not None:
            self.fail(wire_rule(side, 3), "the line ends before its JSON does; expected a message in one line", entry)
            self._in_pieces.add(side)
        return noise is not None and side in self._in_pieces

    def _report_unanswered(self, survived: list[Noise], answer: ConversationEntry) -> None:
        self.count_occasion("ACP-WIRE-013")
        if self.nulls["agent"] >= len(survived):
            self.nulls["agent"] -= len(survived)
            return
        self.nulls["agent"] = 0
        self.warn(
            "ACP-WIRE-013",
            "a line that is not a message got no answer; expected an error with the id null",
            survived[-1].entry,
            answer,
        )


def _end_text(event: str) -> str:
    return event if event.startswith("exited") else f"was silent, {event} s for it"
