"""What came of a run: what the agent said and did, what it was denied, and the exit code that follows from it."""

from typing import Any

import msgspec

from dragoman.cli.exit_code import FAILED
from dragoman.client import Asked, Done, Event, Noticed, Question, Session, Text, Withdrawn
from dragoman.client.answer import Answer

DONE, LIMIT, REFUSED, CANCELLED, DENIED, TIMEOUT = 0, 3, 4, 5, 6, 124
"""Beside those of `exit_code`."""

_CODES = {
    "end_turn": DONE,
    "max_tokens": LIMIT,
    "max_turn_requests": LIMIT,
    "refusal": REFUSED,
    "cancelled": CANCELLED,
}


class Denial(msgspec.Struct, frozen=True):
    """Something that the agent wanted to do and may not."""

    question: Question
    reason: str


class Record:
    """One run, as far as it has come."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self.denied: list[Denial] = []
        self.notices: list[Noticed] = []
        self.done: Done | None = None
        self.error: str | None = None
        self.error_code: int | None = None
        self.is_interrupted = False
        self._answer = Answer()
        self._message_id: str | None = None
        self._line_is_open = False

    @property
    def text(self) -> str:
        """The agent's answer: all that it said, without what it has withdrawn."""
        return "".join(self._answer.messages())

    def note(self, event: Event) -> None:
        """Take what came before the turn, of which only notices count."""
        if isinstance(event, Noticed):
            self.notices.append(event)

    def take(self, event: Event) -> str:
        """Take the next event; returns what it adds to the answer: a message that follows another begins a line."""
        match event:
            case Text(text, update):
                added = f"\n{text}" if self._begins_message(update.message_id) and self._line_is_open else text
                self._answer.add(added, update.message_id)
                self._line_is_open = not added.endswith("\n")
                return added
            case Withdrawn(message_id):
                self._answer.withdraw(message_id)
                self._line_is_open = bool(self.text) and not self.text.endswith("\n")
            case Noticed():
                self.note(event)
            case Asked(question, decision) if decision is not None and decision.verdict == "deny":
                self.denied.append(Denial(question, decision.reason))
            case Done():
                self.done = event
            case _:
                pass
        return ""

    @property
    def exit_code(self) -> int:
        """The code of a turn that came to an end; some agents call it cancelled when something was denied."""
        if self.error is not None or self.done is None:
            return FAILED
        code = _CODES.get(self.done.stop_reason, FAILED)
        if self.denied and (code == DONE or (code == CANCELLED and not self.is_interrupted)):
            return DENIED
        return code

    def as_json(self, code: int) -> dict[str, Any]:
        """Return it all as one object."""
        calls = self.session.tool_calls.values() if self.session else ()
        return {
            "text": self.text,
            "stop_reason": self.done.stop_reason if self.done else None,
            "usage": _usage(self.done),
            "session_id": self.session.id if self.session else None,
            "tool_calls": [
                {"tool_call_id": call.tool_call_id, "title": call.title, "kind": call.kind, "status": call.status}
                for call in calls
            ],
            "denied": [{"title": each.question.tool_call.title, "reason": each.reason} for each in self.denied],
            "notices": [
                {"severity": each.severity, "title": each.title, "description": each.description}
                for each in self.notices
            ],
            "error": self.error,
            "error_code": self.error_code,
            "exit_code": code,
        }

    def _begins_message(self, message_id: str | None) -> bool:
        before, self._message_id = self._message_id, message_id
        return before is not None and message_id is not None and before != message_id


def _usage(done: Done | None) -> dict[str, Any] | None:
    if done is None or done.usage is None:
        return None
    return {name: count for name, count in msgspec.structs.asdict(done.usage).items() if isinstance(count, int)}
