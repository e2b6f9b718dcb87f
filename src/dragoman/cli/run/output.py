"""The result of a run in its formats: text, one JSON object, or the raw conversation."""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from dragoman.cli.exit_codes import FAILED, turn_exit_code
from dragoman.cli.terminal.asides import aside_text
from dragoman.cli.terminal.screen import AnswerOutput, SettledText
from dragoman.client import Session, ToolCallState
from dragoman.client.events import (
    Event,
    MessageWithdrawn,
    NoticeReceived,
    PermissionRequested,
    TextChunk,
    ToolCallChanged,
    TurnFinished,
)
from dragoman.client.policies import PermissionQuestion
from dragoman.client.sessions.result import Answer
from dragoman.protocol.permission_options import USE_SKILLS
from dragoman.recording.secrecy import hide_secrets
from dragoman.text import one_line
from dragoman.wire import Malformed, Oversized, parse


class Denial(msgspec.Struct, frozen=True):
    """An action that was denied to the agent."""

    question: PermissionQuestion
    reason: str


class RunRecord:
    """The results of one run so far."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self.denied: list[Denial] = []
        self.notices: list[NoticeReceived] = []
        self.done: TurnFinished | None = None
        self.error: str | None = None
        self.error_code: int | None = None
        self.is_interrupted = False
        self._answer = Answer()
        self._message_id: str | None = None
        self._line_is_open = False

    @property
    def text(self) -> str:
        """The agent's messages, without withdrawn ones."""
        return "".join(self._answer.messages())

    def add_notice(self, event: Event) -> None:
        """Record a notice from before the turn. Other events are ignored."""
        if isinstance(event, NoticeReceived):
            self.notices = [each for each in self.notices if event.key is None or each.key != event.key]
            self.notices.append(event)

    def add(self, event: Event) -> str:
        """Add the next event and return its addition to the answer.

        A message that follows another message starts on a new line.
        """
        # Only text, withdrawals, notices, denials and the end change the record. Most messages do not end with a
        # newline, so one is inserted between messages.
        match event:
            case TextChunk(text, update):
                added = f"\n{text}" if self._begins_message(update.message_id) and self._line_is_open else text
                self._answer.add(added, update.message_id)
                self._line_is_open = not added.endswith("\n")
                return added
            case MessageWithdrawn(message_id):
                self._answer.withdraw(message_id)
                self._line_is_open = bool(self.text) and not self.text.endswith("\n")
            case NoticeReceived():
                self.add_notice(event)
            case PermissionRequested(question, decision) if decision is not None and decision.verdict == "deny":
                if question.tool_call.name != USE_SKILLS:  # a project's skills are an offer, and the run works without
                    self.denied.append(Denial(question, decision.reason))
            case TurnFinished():
                self.done = event
            case _:
                pass
        return ""

    @property
    def exit_code(self) -> int:
        """The exit code of this run."""
        if self.error is not None or self.done is None:
            return FAILED
        return turn_exit_code(self.done.stop_reason, was_denied=bool(self.denied), was_interrupted=self.is_interrupted)

    def as_json(self, code: int) -> dict[str, Any]:
        """Return the results as one object."""
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


def _usage(done: TurnFinished | None) -> dict[str, Any] | None:
    if done is None or done.usage is None:
        return None
    return {name: count for name, count in msgspec.structs.asdict(done.usage).items() if isinstance(count, int)}


class RunOutput(Protocol):
    """One output format."""

    def begin(self, session: Session, *, withdraws: bool) -> None:
        """Start the output of a session. `withdraws` says whether the agent may withdraw messages."""
        ...

    def show(self, event: Event, added: str) -> None:
        """Show the next event and its addition to the answer."""
        ...

    def finish(self, record: RunRecord, code: int) -> None:
        """Finish the output."""
        ...


class TextOutput:
    """Prints the answer to stdout as it streams, and tool calls and notices to stderr."""

    def __init__(self, output: AnswerOutput) -> None:
        self._output = output
        self._announced: set[str] = set()
        self._settled = SettledText(holds=False)

    def begin(self, session: Session, *, withdraws: bool) -> None:
        self._settled = SettledText(holds=withdraws and not self._output.is_terminal)
        for event in session.events_between_turns:
            show_notice(self._output, event)
            if isinstance(event, TextChunk) and event.text.strip():
                self._output.aside(f"[{event.text.strip()}]")

    def show(self, event: Event, added: str) -> None:
        self._output.say(self._settled.settle(event, added))
        show_notice(self._output, event)
        show_aside(self._output, event)
        match event:
            case MessageWithdrawn() if self._output.is_terminal:
                self._output.end_line()
                self._output.aside("[the text above is discarded: the agent starts this part of its answer again]")
            case ToolCallChanged(call):
                self._name(call)
            case PermissionRequested(question, decision):
                if decision is not None and decision.verdict == "deny":
                    self._announced.add(question.tool_call.tool_call_id)
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
        """Print a call's title once, when it runs. Before that, many agents know only the name of the tool."""
        if call.title and call.status != "pending" and call.tool_call_id not in self._announced:
            self._announced.add(call.tool_call_id)
            self._output.aside(f"[{one_line(call.title)}]")


class JsonOutput:
    """Prints one object at the end."""

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
    """Prints every message of both sides, one per line, without secrets.

    Messages are buffered until the run handles the next event, and printed there. The callbacks that receive them
    cannot report a broken pipe.
    """

    def __init__(self, output: AnswerOutput) -> None:
        self._output = output
        self._buffered: list[bytes] = []

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
        """Buffer lines sent to the agent."""
        self._buffered += bytes(lines).splitlines()

    def received(self, lines: Sequence[bytes | Oversized]) -> None:
        """Buffer lines received from the agent."""
        self._buffered += [line for line in lines if isinstance(line, bytes)]

    def _print(self) -> None:
        buffered, self._buffered = self._buffered, []
        messages = [hide_secrets(line) for line in buffered if not isinstance(parse(line), Malformed)]
        if messages:
            self._output.write_json(b"".join(message + b"\n" for message in messages).decode())


OUTPUTS: dict[str, type[TextOutput | JsonOutput | NdjsonOutput]] = {
    "text": TextOutput,
    "json": JsonOutput,
    "ndjson": NdjsonOutput,
}


def show_denial(output: AnswerOutput, event: Event) -> None:
    """Show a denied action with the reason. The user's own answer has no reason and is not repeated."""
    if isinstance(event, PermissionRequested) and event.decision is not None and event.decision.verdict == "deny":
        call = event.question.tool_call
        if event.decision.reason:
            output.aside(f"[not allowed: {one_line(call.title or call.tool_call_id)}; {event.decision.reason}]")


def show_notice(output: AnswerOutput, event: Event) -> None:
    """Show an agent's notice about the conversation."""
    if isinstance(event, NoticeReceived):
        detail = f"\n{event.description}" if event.description else ""
        output.aside(f"[{one_line(event.title)}]{detail}", key=event.key)


def show_aside(output: AnswerOutput, event: Event) -> None:
    """Show a compaction, a subagent, or a message between agents."""
    if (text := aside_text(event)) is not None:
        output.aside(f"[{text}]")


def show_error(output: AnswerOutput, error: str) -> None:
    """Show an error."""
    output.print_error(f"dragoman run: {error}")
