"""How `dragoman run` shows what happens: as text, as one JSON object, or as the updates of the agent, one a line."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from dragoman.cli.run_record import Record
from dragoman.cli.run_screen import Screen
from dragoman.cli.settled_text import SettledText
from dragoman.client import Asked, Event, Noticed, Session, Text, ToolCallState, ToolChanged, Withdrawn
from dragoman.protocol.secrecy import hide_secrets
from dragoman.text import clean_text, one_line
from dragoman.wire import Malformed, Oversized, parse


class Output(Protocol):
    """One of the formats."""

    def begin(self, session: Session, *, withdraws: bool) -> None:
        """Take the session, with what it said before its turn, and whether the agent may withdraw what it says."""
        ...

    def show(self, event: Event, added: str) -> None:
        """Take the next event, and what it adds to the answer."""
        ...

    def finish(self, record: Record, code: int) -> None:
        """Take the end."""
        ...


class TextOutput:
    """The answer as it comes, with asides for whoever watches."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._named: set[str] = set()
        self._settled = SettledText(holds=False)

    def begin(self, session: Session, *, withdraws: bool) -> None:
        self._settled = SettledText(holds=withdraws and not self._screen.is_terminal)
        for event in session.strays:
            show_notice(self._screen, event)
            if isinstance(event, Text) and event.text.strip():
                self._screen.aside(f"[{event.text.strip()}]")

    def show(self, event: Event, added: str) -> None:
        self._screen.say(self._settled.take(event, added))
        show_notice(self._screen, event)
        match event:
            case Withdrawn() if self._screen.is_terminal:
                self._screen.end_line()
                self._screen.aside("[the words above are void: the agent begins this part of its answer anew]")
            case ToolChanged(call):
                self._name(call)
            case Asked(question, decision):
                if decision is not None and decision.verdict == "deny":
                    self._named.add(question.tool_call.tool_call_id)
                show_denial(self._screen, event)
            case _:
                pass

    def finish(self, record: Record, code: int) -> None:
        del code
        self._screen.say(self._settled.finish())
        self._screen.end_line()
        if record.error is not None:
            show_error(self._screen, record.error)

    def _name(self, call: ToolCallState) -> None:
        """Name a call once, when it runs: before, many agents know no more than the name of the tool."""
        if call.title and call.status != "pending" and call.tool_call_id not in self._named:
            self._named.add(call.tool_call_id)
            self._screen.aside(f"[{one_line(call.title)}]")


class JsonOutput:
    """One object, at the end."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def begin(self, session: Session, *, withdraws: bool) -> None:
        del withdraws
        for event in session.strays:
            show_notice(self._screen, event)

    def show(self, event: Event, added: str) -> None:
        del added
        show_denial(self._screen, event)
        show_notice(self._screen, event)

    def finish(self, record: Record, code: int) -> None:
        self._screen.write_json(f"{msgspec.json.encode(record.as_json(code)).decode()}\n")
        if record.error is not None:
            show_error(self._screen, record.error)


class NdjsonOutput:
    """The conversation itself: every message of both sides, one a line, without secrets.

    What passes is kept until the run has got so far, and printed there: where it is seen, nobody could be told that the
    reader is gone.
    """

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._passed: list[bytes] = []

    def begin(self, session: Session, *, withdraws: bool) -> None:
        del session, withdraws
        self._print()

    def show(self, event: Event, added: str) -> None:
        del added
        self._print()
        show_denial(self._screen, event)

    def finish(self, record: Record, code: int) -> None:
        del code
        self._print()
        if record.error is not None:
            show_error(self._screen, record.error)

    def sent(self, lines: bytes | bytearray) -> None:
        """See what goes to the agent."""
        self._passed += bytes(lines).splitlines()

    def received(self, lines: Sequence[bytes | Oversized]) -> None:
        """See what comes from the agent."""
        self._passed += [line for line in lines if isinstance(line, bytes)]

    def _print(self) -> None:
        passed, self._passed = self._passed, []
        messages = [hide_secrets(line) for line in passed if not isinstance(parse(line), Malformed)]
        if messages:
            self._screen.write_json(b"".join(message + b"\n" for message in messages).decode())


OUTPUTS: dict[str, type[TextOutput | JsonOutput | NdjsonOutput]] = {
    "text": TextOutput,
    "json": JsonOutput,
    "ndjson": NdjsonOutput,
}


def show_denial(screen: Screen, event: Event) -> None:
    """Say what was not allowed, and why; whoever said no himself knows it."""
    if isinstance(event, Asked) and event.decision is not None and event.decision.verdict == "deny":
        call = event.question.tool_call
        if event.decision.reason:
            screen.aside(f"[not allowed: {one_line(call.title or call.tool_call_id)}; {event.decision.reason}]")


def show_notice(screen: Screen, event: Event) -> None:
    """Say what the agent says about the conversation."""
    if isinstance(event, Noticed):
        detail = f"\n{event.description}" if event.description else ""
        screen.aside(f"[{one_line(event.title)}]{detail}")


def show_error(screen: Screen, error: str) -> None:
    """Say what went wrong."""
    screen.write_beside(f"dragoman run: {clean_text(error)}\n")
