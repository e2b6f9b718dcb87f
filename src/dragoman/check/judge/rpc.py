"""Rules about JSON-RPC on both sides: ids, responses, errors, and exits of processes.

Most findings follow directly from one message. Three cases need later evidence:

- An error with the id null may answer an invalid line, a request whose string id the peer cannot keep, or a
  notification. It is held in `_nulls` until the request gets its own response, or the peer stays silent.

- A notification must not be answered. A response to a later request proves that it was not.

- A process that exits may have been killed by a line or notification before. The reason decides which rule is broken.
"""

from typing import ClassVar, NamedTuple

from dragoman.check.conversation import OTHER, ConversationEntry, Side
from dragoman.check.judge.foreign_names import explain_method
from dragoman.check.judge.message import LONG_BYTES, NO_ID, Noise, SeenMessage
from dragoman.check.judge.observer import FindingSink, Observer, watch
from dragoman.check.judge.session import INVENTED
from dragoman.check.judge.state import PROOF_S
from dragoman.errors import ErrorCode

MAX_NOTIFICATIONS = 20
"""Maximum number of notifications remembered until the next response."""

PERMISSION = "session/request_permission"


def wire_rule(side: Side, number: int) -> str:
    """Return the rule id of a side for a rule that exists for both sides."""
    return f"ACP-WIRE-{number + (100 if side == 'client' else 0):03d}"


def extension_rule(side: Side, number: int) -> str:
    """Return the rule id of a side for a rule on extensions that exists for both sides."""
    return f"ACP-EXT-{number + (100 if side == 'client' else 0):03d}"


class _Null(NamedTuple):
    """An error with the id null, the request that it may answer, and a notification that it may answer instead."""

    answer: SeenMessage
    request: SeenMessage
    notification: ConversationEntry | None


class RpcObserver(Observer):
    """Judges JSON-RPC itself."""

    area: ClassVar[str] = "WIRE"

    def __init__(self, sink: FindingSink) -> None:
        super().__init__(sink)
        self._garbage: dict[Side, int] = {"agent": 0, "client": 0}
        """Number of invalid lines of a side that the other one may answer with an error for the id null."""
        self._strange: dict[Side, ConversationEntry] = {}
        """A side's last notification that the protocol does not have."""
        self._notifications: dict[Side, list[SeenMessage]] = {"agent": [], "client": []}
        """Notifications of a side, in order, that the other one has not yet proved to leave unanswered."""
        self._death: ConversationEntry | None = None
        """The exit of the agent, if a prompt was running then."""
        self._has_refused = False
        """Whether the agent answered `initialize` with an error. It may exit then, because it has given a reason."""
        self._updated: ConversationEntry | None = None
        """The agent's last `session/update`, which is a notification as well."""
        self._nulls: list[_Null] = []
        """Errors with the id null that may answer a request with a string id, which some peers cannot keep."""

    @watch("answer initialize")
    def on_hello(self, message: SeenMessage) -> None:
        self._has_refused = message.kind == "error"

    def on_noise(self, noise: Noise) -> None:
        self._garbage[noise.entry.sender] += 1

    @watch("request")
    def on_request(self, message: SeenMessage) -> None:
        side = message.sender
        open_requests = self.requests.pending[side]
        if open_requests and message.id is not None:  # ACP-WIRE-026 and ACP-WIRE-126 cover null
            self.judge(
                wire_rule(side, 7),
                message.id not in open_requests,
                f"the id {message.id!r} belongs to a request that is still open; expected a new one",
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
    def on_notification(self, message: SeenMessage) -> None:
        side, method = message.sender, message.method
        self._notifications[side] = [*self._notifications[side], message][-MAX_NOTIFICATIONS:]
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
    def on_update(self, message: SeenMessage) -> None:
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
            f"the {message.sender} sent {message.method}, a method that the {message.sender} only receives",
            message.entry,
        )

    @watch("answer")
    def on_answer(self, message: SeenMessage) -> None:
        side, request = message.sender, message.request
        if message.kind == "error":
            self._judge_error(message)
        if request is None:
            self._on_unmatched(message)
            return
        self.count_occasion(wire_rule(side, 6))
        self.count_occasion(wire_rule(side, 11))
        self._clear_nulls(request)
        if NO_ID in message.flaws:
            pass
        elif type(message.id) is not type(request.id) or message.id != request.id:
            self._report_id(message, request)
        elif isinstance(request.id, str):
            self.count_occasion(wire_rule(side, 5))
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
        """Judge notifications before a request that was answered: they were neither answered nor fatal."""
        other = OTHER[side]
        sent = self._notifications[other]
        if sent and sent[0].entry.n < request.entry.n:
            self.count_occasion(wire_rule(side, 8))
            self._notifications[other] = [each for each in sent if each.entry.n > request.entry.n]
        strange = self._strange.get(other)
        if strange is not None and strange.n < request.entry.n:
            self.count_occasion(extension_rule(side, 4))
            del self._strange[other]

    def _judge_unknown(self, answer: SeenMessage, request: SeenMessage) -> None:
        side = answer.sender
        if answer.kind == "error" and answer.code is None:
            return  # ACP-WIRE-009 and ACP-WIRE-109 cover that
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

    def _report_id(self, answer: SeenMessage, request: SeenMessage) -> None:
        self.fail(
            wire_rule(answer.sender, 5),
            f"the response has the id {answer.id!r}, the request {request.id!r}; expected the same id",
            request.entry,
            answer.entry,
        )

    def _on_unmatched(self, message: SeenMessage) -> None:
        """Handle a response that matches no request.

        An error with the id null may answer an invalid line, which is right. It may answer a request with a string id,
        which some peers cannot keep. Then it waits until that request gets its own response, or does not. Otherwise it
        answers a notification, or nothing.
        """
        side = message.sender
        other = OTHER[side]
        if NO_ID in message.flaws:
            return  # ACP-WIRE-004 and ACP-WIRE-104 cover those
        if message.id is None and message.kind == "error" and self._garbage[other] > 0:
            self._garbage[other] -= 1
            return
        if message.id is None and any(
            len(each.entry.line) > LONG_BYTES for each in self.requests.pending[other].values()
        ):
            return  # pieces of a line that was too long for its reader, which ACP-WIRE-014 and ACP-WIRE-114 cover
        strings = [each for each in self.requests.pending[other].values() if isinstance(each.id, str)]
        notification = self._pop_notification(message) or (self._updated if other == "agent" else None)
        if message.id is None and strings:
            self._nulls.append(_Null(message, strings[0], notification))
            return
        self._report_stray(message, notification)

    def _pop_notification(self, answer: SeenMessage) -> ConversationEntry | None:
        """Remove the notification that a response without an id answers from the list. Return its entry.

        Prefer the notification whose method the response names, then the oldest that the protocol does not have,
        because those are refused, then the oldest.
        """
        sent = self._notifications[OTHER[answer.sender]]
        if answer.id is not None or not sent:
            return None
        body = str(answer.body)
        named = sorted((each for each in sent if each.method in body), key=lambda each: -len(each.method))
        strange = [each for each in sent if each.method not in self.agreement.dialect.methods]
        chosen = [*named, *strange, *sent][0]
        sent.remove(chosen)
        return chosen.entry

    def _clear_nulls(self, request: SeenMessage) -> None:
        """Report responses without an id that were not for this request, because it got its own response."""
        for null in [each for each in self._nulls if each.request is request]:
            self._nulls.remove(null)
            self._report_stray(null.answer, null.notification)

    @watch("event waited")
    def on_waited(self, _message: SeenMessage) -> None:
        self._report_nulls()

    def end(self) -> None:
        self._report_nulls()

    def _report_nulls(self) -> None:
        for null in self._nulls:
            if null.notification is not None and null.answer.sender in self.timeline.closed:
                self._report_stray(
                    null.answer, null.notification
                )  # it may have exited before it could answer the request
            elif self.requests.pending[null.request.sender].get(null.request.id) is null.request:
                self.requests.mark_late(null.request)
                self._report_id(null.answer, null.request)
        self._nulls.clear()

    def _report_stray(self, message: SeenMessage, notification: ConversationEntry | None) -> None:
        side = message.sender
        other = OTHER[side]
        if message.id is None and notification is not None:
            self.fail(wire_rule(side, 8), "a notification was answered; expected silence", notification, message.entry)
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
    def on_death(self, message: SeenMessage) -> None:
        if message.sender == "client" and self._death is not None:
            self.count_occasion("ACP-WIRE-113")
        elif message.sender == "agent" and any(each.running() for each in self.state.sessions.values()):
            self._death = message.entry

    @watch("event waited")
    def on_hanging(self, message: SeenMessage) -> None:
        if message.sender == "client" and self._death is not None:
            self.fail(
                "ACP-WIRE-113",
                f"the agent died while a prompt was running, and the client is still running; {message.entry.event} s",
                self._death,
                message.entry,
            )

    @watch("event exited")
    def on_exit(self, message: SeenMessage) -> None:
        side = message.sender
        closed = self.timeline.closed.get(side)
        if closed is not None:
            self._on_orderly_exit(side, closed)
            return
        strange = self._strange.get(OTHER[side])
        if self.timeline.explained is message.entry:
            return
        if strange is not None:
            self.fail(
                extension_rule(side, 4),
                f"the {side} {message.entry.event} after a notification that it did not know; expected it to continue",
                strange,
                message.entry,
            )
        elif side == "agent" and not self._has_refused:
            self._report_exit(message)

    def _on_orderly_exit(self, side: Side, closed: ConversationEntry) -> None:
        if side == "agent" and closed.event == "stdin closed":
            self.count_occasion("ACP-WIRE-017")
            self.count_occasion("ACP-WIRE-019")

    def _report_exit(self, message: SeenMessage) -> None:
        last = self.timeline.last.get("client")
        self.fail(
            "ACP-WIRE-019",
            f"the agent {message.entry.event} though its stdin was open; expected it to keep running",
            *([last] if last else []),
            message.entry,
        )
        if self.timeline.is_own_end(message.entry):
            for request in tuple(self.requests.pending["client"].values()):
                if request.method != "initialize" or not request.fits:  # ACP-INIT-001 covers that
                    self.requests.mark_late(request)
                    self.fail(
                        "ACP-WIRE-011", f"{request.method} got no answer from the agent", request.entry, message.entry
                    )

    @watch("event killed")
    def on_kill(self, message: SeenMessage) -> None:
        closed = self.timeline.closed.get(message.sender)
        if message.sender == "agent" and closed is not None and closed.event == "stdin closed":
            waited = message.entry.at_s - closed.at_s
            is_working = any(each.running() for each in self.state.sessions.values())
            self.fail(
                "ACP-WIRE-017",
                f"the agent was still running {waited:.1f} s after its stdin was closed"
                f"{' in the middle of a turn' if is_working else ''}; expected it to exit",
                closed,
                message.entry,
            )

    @watch("event orphans")
    def on_orphans(self, message: SeenMessage) -> None:
        count = message.entry.event.partition(" ")[2]
        self.judge("ACP-WIRE-018", count == "0", f"{count} child processes remain; expected none", message.entry)


def _kind(answer: SeenMessage) -> str:
    return "a result" if answer.kind == "result" else f"the error {answer.code}"
