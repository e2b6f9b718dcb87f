"""Watches requests and responses of both sides: ids, answers, errors, and the ends of processes."""

from typing import ClassVar, NamedTuple

from dragoman.check.conversation import OTHER, ConversationEntry, Side
from dragoman.check.judge.foreign_names import explain_method
from dragoman.check.judge.message import Noise, SeenMessage
from dragoman.check.judge.observer import FindingSink, Observer, watch
from dragoman.check.judge.session import INVENTED
from dragoman.check.judge.state import PROOF_S
from dragoman.errors import ErrorCode

MAX_TOLD = 20
"""Notifications that are remembered until the next answer."""

PERMISSION = "session/request_permission"


def wire_rule(side: Side, number: int) -> str:
    """Return the id of a rule that both sides have, for one of them."""
    return f"ACP-WIRE-{number + (100 if side == 'client' else 0):03d}"


def extension_rule(side: Side, number: int) -> str:
    """Return the id of a rule on extensions that both sides have, for one of them."""
    return f"ACP-EXT-{number + (100 if side == 'client' else 0):03d}"


class _Null(NamedTuple):
    """An error with the id null, the request that it may be for, and a notification that it may be for instead."""

    answer: SeenMessage
    request: SeenMessage
    told: ConversationEntry | None


class RpcObserver(Observer):
    """Judges JSON-RPC as such."""

    area: ClassVar[str] = "WIRE"

    def __init__(self, sink: FindingSink) -> None:
        super().__init__(sink)
        self._garbage: dict[Side, int] = {"agent": 0, "client": 0}
        """How many lines of a side the other one may answer with an error for the id null."""
        self._strange: dict[Side, ConversationEntry] = {}
        """The last notification of a side that the protocol does not have."""
        self._told: dict[Side, list[SeenMessage]] = {"agent": [], "client": []}
        """Notifications of a side, in order, that the other one has not yet been seen to leave unanswered."""
        self._death: ConversationEntry | None = None
        """The end of the agent, if a prompt was running then."""
        self._has_refused = False
        """Whether the agent has answered `initialize` with an error: it may end then, because it has said why."""
        self._updated: ConversationEntry | None = None
        """The last `session/update` of the agent, which is a notification too."""
        self._nulls: list[_Null] = []
        """Errors with the id null that may be for a request with a string as its id, which some peers cannot keep."""

    @watch("answer initialize")
    def see_hello(self, message: SeenMessage) -> None:
        self._has_refused = message.kind == "error"

    def see_noise(self, noise: Noise) -> None:
        self._garbage[noise.entry.sender] += 1

    @watch("request")
    def see_request(self, message: SeenMessage) -> None:
        side = message.sender
        open_requests = self.requests.pending[side]
        if open_requests:
            self.judge(
                wire_rule(side, 7),
                message.id not in open_requests,
                f"the id {message.id!r} is that of a request that is still open; expected a new one",
                message.entry,
                *([open_requests[message.id].entry] if message.id in open_requests else []),
            )
        if message.flaws or message.id is None:
            self._garbage[side] += 1
        is_fraction = isinstance(message.id, float) and not message.id.is_integer()
        self.judge(
            wire_rule(side, 26),
            message.id is not None and not is_fraction,
            f"the id of the request is {message.id!r}; expected a string or a whole number",
            message.entry,
        )
        dialect = self.agreement.dialect
        known = dialect.methods.get(message.method)
        if known is not None:
            self.judge(
                wire_rule(side, 23),
                message.method in dialect.requests,
                f"{message.method} came with an id; expected a notification",
                message.entry,
            )
            self._judge_side(message)

    @watch("notification")
    def see_notification(self, message: SeenMessage) -> None:
        side, method = message.sender, message.method
        self._told[side] = [*self._told[side], message][-MAX_TOLD:]
        if message.flaws:
            self._garbage[side] += 1
        dialect = self.agreement.dialect
        if method not in dialect.methods:
            self._strange[side] = message.entry
            return
        if method == PERMISSION:
            return
        self.judge(
            wire_rule(side, 23),
            method in dialect.notifications,
            f"{method} came without an id; expected a request",
            message.entry,
        )
        self._judge_side(message)

    @watch("update")
    def see_update(self, message: SeenMessage) -> None:
        if message.sender == "client":
            self._judge_side(message)
        else:
            self._updated = message.entry

    def _judge_side(self, message: SeenMessage) -> None:
        dialect = self.agreement.dialect
        known = dialect.notifications.get(message.method) if message.kind == "notification" else None
        handled_by = (known or dialect.methods[message.method]).side
        self.judge(
            wire_rule(message.sender, 24),
            handled_by != message.sender,
            f"the {message.sender} sent {message.method}, which is for the {message.sender} to take",
            message.entry,
        )

    @watch("answer")
    def see_answer(self, message: SeenMessage) -> None:
        side, request = message.sender, message.request
        if message.kind == "error":
            self._judge_error(message)
        if request is None:
            self._see_stray(message)
            return
        self.saw(wire_rule(side, 6))
        self.saw(wire_rule(side, 11))
        self._clear_nulls(request)
        if type(message.id) is not type(request.id) or message.id != request.id:
            self._tell_id(message, request)
        elif isinstance(request.id, str):
            self.saw(wire_rule(side, 5))
        self._judge_silence(side, request)
        self._judge_unknown(message, request)
        if request.cancelled is not None:
            self._judge_cancelled(message, request, request.cancelled)

    def _judge_error(self, message: SeenMessage) -> None:
        error = message.body
        ok = (
            isinstance(error, dict)
            and isinstance(message.params.get("code"), int)
            and isinstance(message.params.get("message"), str)
        )
        self.judge(
            wire_rule(message.sender, 9),
            ok,
            "the error has no integer code or no message; expected both",
            message.entry,
        )

    def _judge_silence(self, side: Side, request: SeenMessage) -> None:
        """An answer to a later request shows that a notification before it was left alone, and not deadly."""
        other = OTHER[side]
        told = self._told[other]
        if told and told[0].entry.n < request.entry.n:
            self.saw(wire_rule(side, 8))
            self._told[other] = [each for each in told if each.entry.n > request.entry.n]
        strange = self._strange.get(other)
        if strange is not None and strange.n < request.entry.n:
            self.saw(extension_rule(side, 4))
            del self._strange[other]

    def _judge_unknown(self, answer: SeenMessage, request: SeenMessage) -> None:
        side = answer.sender
        detail = f"{request.method} was answered with {_kind(answer)}; expected the error -32601"
        if request.method.startswith("_"):
            if INVENTED in request.method:
                self.judge(
                    extension_rule(side, 3),
                    answer.code == ErrorCode.METHOD_NOT_FOUND,
                    detail,
                    request.entry,
                    answer.entry,
                )
        elif (
            request.method not in self.agreement.dialect.methods
            and explain_method(request.method, self.agreement.dialect) is None
        ):
            self.judge(
                wire_rule(side, 10), answer.code == ErrorCode.METHOD_NOT_FOUND, detail, request.entry, answer.entry
            )

    def _judge_cancelled(self, answer: SeenMessage, request: SeenMessage, cancel: ConversationEntry) -> None:
        surely_read = answer.entry.at_s - cancel.at_s >= PROOF_S
        if (
            answer.kind == "error"
            and answer.code not in (ErrorCode.REQUEST_CANCELLED, ErrorCode.METHOD_NOT_FOUND)
            and not surely_read
        ):
            return
        self.judge(
            wire_rule(answer.sender, 25),
            answer.kind == "result" or answer.code in (ErrorCode.REQUEST_CANCELLED, ErrorCode.METHOD_NOT_FOUND),
            f"a cancelled {request.method} was answered with {_kind(answer)}; expected a result or the error -32800",
            request.entry,
            cancel,
            answer.entry,
        )

    def _tell_id(self, answer: SeenMessage, request: SeenMessage) -> None:
        self.fail(
            wire_rule(answer.sender, 5),
            f"the response has the id {answer.id!r}, the request {request.id!r}; expected it to the letter",
            request.entry,
            answer.entry,
        )

    def _see_stray(self, message: SeenMessage) -> None:
        """See an answer that matches no request.

        An error with the id null may be for a line that is no message, which is right. It may be for a request with a
        string as its id, which some peers cannot keep: then it waits until that request gets its own answer, or not.
        Otherwise it answers a notification, or nothing.
        """
        side = message.sender
        other = OTHER[side]
        if message.id is None and message.kind == "error" and self._garbage[other] > 0:
            self._garbage[other] -= 1
            return
        strings = [each for each in self.requests.pending[other].values() if isinstance(each.id, str)]
        told = self._take_told(message) or (self._updated if other == "agent" else None)
        if message.id is None and strings:
            self._nulls.append(_Null(message, strings[0], told))
            return
        self._tell_stray(message, told)

    def _take_told(self, answer: SeenMessage) -> ConversationEntry | None:
        """Take the notification off the list that an answer without an id is for, and return its entry.

        It is the one whose method the answer names; otherwise the oldest that the protocol does not have, because those
        are refused; otherwise the oldest.
        """
        told = self._told[OTHER[answer.sender]]
        if answer.id is not None or not told:
            return None
        words = str(answer.body)
        named = sorted((each for each in told if each.method in words), key=lambda each: -len(each.method))
        strange = [each for each in told if each.method not in self.agreement.dialect.methods]
        chosen = [*named, *strange, *told][0]
        told.remove(chosen)
        return chosen.entry

    def _clear_nulls(self, request: SeenMessage) -> None:
        """Report answers without an id that were not for this request, because it got its own answer."""
        for null in [each for each in self._nulls if each.request is request]:
            self._nulls.remove(null)
            self._tell_stray(null.answer, null.told)

    @watch("event waited")
    def see_waited(self, message: SeenMessage) -> None:
        del message
        self._tell_nulls()

    def end(self) -> None:
        self._tell_nulls()

    def _tell_nulls(self) -> None:
        for null in self._nulls:
            if null.told is not None and null.answer.sender in self.timeline.closed:
                self._tell_stray(null.answer, null.told)  # it may have gone before it came to answer the request
            elif self.requests.pending[null.request.sender].get(null.request.id) is null.request:
                self.requests.give_up(null.request)
                self._tell_id(null.answer, null.request)
        self._nulls.clear()

    def _tell_stray(self, message: SeenMessage, told: ConversationEntry | None) -> None:
        side = message.sender
        other = OTHER[side]
        if message.id is None and told is not None:
            self.fail(wire_rule(side, 8), "a notification was answered; expected silence", told, message.entry)
            return
        if not self.timeline.is_whole:
            return
        twice = self.requests.retired[other].get(message.id)
        self.fail(
            wire_rule(side, 6),
            f"a second response to {twice.event}" if twice else f"no request has the id {message.id!r}",
            *([twice] if twice else []),
            message.entry,
        )

    @watch("event exited")
    def see_death(self, message: SeenMessage) -> None:
        if message.sender == "client" and self._death is not None:
            self.saw("ACP-WIRE-113")
        elif message.sender == "agent" and any(each.running() for each in self.state.sessions.values()):
            self._death = message.entry

    @watch("event waited")
    def see_hanging(self, message: SeenMessage) -> None:
        if message.sender == "client" and self._death is not None:
            self.fail(
                "ACP-WIRE-113",
                f"the agent died while a prompt was running, and the client is still there; {message.entry.event} s",
                self._death,
                message.entry,
            )

    @watch("event exited")
    def see_exit(self, message: SeenMessage) -> None:
        side = message.sender
        closed = self.timeline.closed.get(side)
        if closed is not None:
            self._see_orderly_exit(side, closed)
            return
        strange = self._strange.get(OTHER[side])
        if self.timeline.explained is message.entry:
            return
        if strange is not None:
            self.fail(
                extension_rule(side, 4),
                f"the {side} {message.entry.event} after a notification that it did not know; expected it to go on",
                strange,
                message.entry,
            )
        elif side == "agent" and not self._has_refused:
            self._tell_exit(message)

    def _see_orderly_exit(self, side: Side, closed: ConversationEntry) -> None:
        if side == "agent" and closed.event == "stdin closed":
            self.saw("ACP-WIRE-017")
            self.saw("ACP-WIRE-019")

    def _tell_exit(self, message: SeenMessage) -> None:
        last = self.timeline.last.get("client")
        self.fail(
            "ACP-WIRE-019",
            f"the agent {message.entry.event} though its stdin was open; expected it to stay",
            *([last] if last else []),
            message.entry,
        )
        if self.timeline.is_own_end(message.entry):
            for request in tuple(self.requests.pending["client"].values()):
                if request.method != "initialize" or not request.fits:  # ACP-INIT-001 is for that
                    self.requests.give_up(request)
                    self.fail(
                        "ACP-WIRE-011", f"{request.method} got no answer from the agent", request.entry, message.entry
                    )

    @watch("event killed")
    def see_kill(self, message: SeenMessage) -> None:
        closed = self.timeline.closed.get(message.sender)
        if message.sender == "agent" and closed is not None and closed.event == "stdin closed":
            waited = message.entry.at_s - closed.at_s
            self.fail(
                "ACP-WIRE-017",
                f"the agent was still there {waited:.1f} s after its stdin was closed; expected it to end",
                closed,
                message.entry,
            )

    @watch("event orphans")
    def see_orphans(self, message: SeenMessage) -> None:
        count = message.entry.event.partition(" ")[2]
        self.judge("ACP-WIRE-018", count == "0", f"{count} children were left behind; expected none", message.entry)


def _kind(answer: SeenMessage) -> str:
    return "a result" if answer.kind == "result" else f"the error {answer.code}"
