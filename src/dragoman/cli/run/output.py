"""The result of a run, and how it is shown: as text, as one JSON object, or as the raw conversation."""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from dragoman.cli.exit_codes import FAILED, turn_exit_code
from dragoman.cli.terminal.asides import aside_words
from dragoman.cli.terminal.screen import AnswerOutput, SettledText
from dragoman.client import Asked, Done, Event, Noticed, Question, Session, Text, ToolCallState, ToolChanged, Withdrawn
from dragoman.client.result import Answer
from dragoman.protocol.secrecy import hide_secrets
from dragoman.text import one_line
from dragoman.wire import Malformed, Oversized, parse


class Denial(msgspec.Struct, frozen=True):
    """An action that the agent wanted and that was not allowed."""

    question: Question
    reason: str


class RunRecord:
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
        """The agent's answer: all its messages, without those that it has withdrawn."""
        return "".join(self._answer.messages())

    def note(self, event: Event) -> None:
        """Take an event from before the turn; only notices count."""
        if isinstance(event, Noticed):
            self.notices.append(event)

    def take(self, event: Event) -> str:
        """Take the next event; returns its addition to the answer: a message that follows another begins a line."""
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
        """The code of this run."""
        if self.error is not None or self.done is None:
            return FAILED
        return turn_exit_code(self.done.stop_reason, was_denied=bool(self.denied), was_interrupted=self.is_interrupted)

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
            "subagents": [
                {"session_id": each.session_id, "title": each.title, "state": each.state.state if each.state else None}
                for each in (self.session.entities.subagents.values() if self.session else ())
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


class RunOutput(Protocol):
    """One of the formats."""

    def begin(self, session: Session, *, withdraws: bool) -> None:
        """Take the session, with its events from before the turn, and whether the agent may withdraw messages."""
        ...

    def show(self, event: Event, added: str) -> None:
        """Take the next event, and its addition to the answer."""
        ...

    def finish(self, record: RunRecord, code: int) -> None:
        """Take the end."""
        ...


class TextOutput:
    """The answer as it comes, with tool calls and notices beside it."""

    def __init__(self, output: AnswerOutput) -> None:
        self._output = output
        self._named: set[str] = set()
        self._settled = SettledText(holds=False)

    def begin(self, session: Session, *, withdraws: bool) -> None:
        self._settled = SettledText(holds=withdraws and not self._output.is_terminal)
        for event in session.events_between_turns:
            show_notice(self._output, event)
            if isinstance(event, Text) and event.text.strip():
                self._output.aside(f"[{event.text.strip()}]")

    def show(self, event: Event, added: str) -> None:
        self._output.say(self._settled.take(event, added))
        show_notice(self._output, event)
        show_aside(self._output, event)
        match event:
            case Withdrawn() if self._output.is_terminal:
                self._output.end_line()
                self._output.aside("[the words above are void: the agent begins this part of its answer anew]")
            case ToolChanged(call):
                self._name(call)
            case Asked(question, decision):
                if decision is not None and decision.verdict == "deny":
                    self._named.add(question.tool_call.tool_call_id)
                show_denial(self._output, event)
            case _:
                pass

    def finish(self, record: RunRecord, code: int) -> None:
        del code
        self._output.say(self._settled.finish())
        self._output.end_line()
        if record.error is not None:
            show_error(self._output, record.error)

    def _name(self, call: ToolCallState) -> None:
        """Name a call once, when it runs: before, many agents know no more than the name of the tool."""
        if call.title and call.status != "pending" and call.tool_call_id not in self._named:
            self._named.add(call.tool_call_id)
            self._output.aside(f"[{one_line(call.title)}]")


class JsonOutput:
    """One object, at the end."""

    def __init__(self, output: AnswerOutput) -> None:
        self._output = output

    def begin(self, session: Session, *, withdraws: bool) -> None:
        del withdraws
        for event in session.events_between_turns:
            show_notice(self._output, event)

    def show(self, event: Event, added: str) -> None:
        del added
        show_denial(self._output, event)
        show_notice(self._output, event)
        show_aside(self._output, event)

    def finish(self, record: RunRecord, code: int) -> None:
        self._output.write_json(f"{msgspec.json.encode(record.as_json(code)).decode()}\n")
        if record.error is not None:
            show_error(self._output, record.error)


class NdjsonOutput:
    """The conversation itself: every message of both sides, one a line, without secrets.

    Messages are kept until the run takes the next event, and printed there: where they pass, nothing can report that
    the reader is gone.
    """

    def __init__(self, output: AnswerOutput) -> None:
        self._output = output
        self._passed: list[bytes] = []

    def begin(self, session: Session, *, withdraws: bool) -> None:
        del session, withdraws
        self._print()

    def show(self, event: Event, added: str) -> None:
        del added
        self._print()
        show_denial(self._output, event)

    def finish(self, record: RunRecord, code: int) -> None:
        del code
        self._print()
        if record.error is not None:
            show_error(self._output, record.error)

    def sent(self, lines: bytes | bytearray | memoryview) -> None:
        """Take lines to the agent."""
        self._passed += bytes(lines).splitlines()

    def received(self, lines: Sequence[bytes | Oversized]) -> None:
        """Take lines from the agent."""
        self._passed += [line for line in lines if isinstance(line, bytes)]

    def _print(self) -> None:
        passed, self._passed = self._passed, []
        messages = [hide_secrets(line) for line in passed if not isinstance(parse(line), Malformed)]
        if messages:
            self._output.write_json(b"".join(message + b"\n" for message in messages).decode())


OUTPUTS: dict[str, type[TextOutput | JsonOutput | NdjsonOutput]] = {
    "text": TextOutput,
    "json": JsonOutput,
    "ndjson": NdjsonOutput,
}


def show_denial(output: AnswerOutput, event: Event) -> None:
    """Show an action that was not allowed, with the reason; a person's own no has none."""
    if isinstance(event, Asked) and event.decision is not None and event.decision.verdict == "deny":
        call = event.question.tool_call
        if event.decision.reason:
            output.aside(f"[not allowed: {one_line(call.title or call.tool_call_id)}; {event.decision.reason}]")


def show_notice(output: AnswerOutput, event: Event) -> None:
    """Show a notice of the agent about the conversation."""
    if isinstance(event, Noticed):
        detail = f"\n{event.description}" if event.description else ""
        output.aside(f"[{one_line(event.title)}]{detail}")


def show_aside(output: AnswerOutput, event: Event) -> None:
    """Show a compaction, a subagent, or a message between agent and subagent."""
    if (words := aside_words(event)) is not None:
        output.aside(f"[{words}]")


def show_error(output: AnswerOutput, error: str) -> None:
    """Show an error."""
    output.complain(f"dragoman run: {error}")
