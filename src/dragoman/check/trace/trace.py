"""Recorded conversations in any known format: detection, reading, and the report about them."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from dragoman.check.conversation import RecordedConversation, Side
from dragoman.check.judge import Judge
from dragoman.check.judge.message import decode_object
from dragoman.check.results import CheckReport, conclude, count_verdicts
from dragoman.check.trace.conductor import is_conductor, read_conductor
from dragoman.check.trace.messages import is_bare, is_directed, read_bare, read_directed
from dragoman.check.trace.source import Source, TraceError
from dragoman.recording.trajectory import Kind, TrajectoryError, is_header, is_torn, read_records

_SENDERS: dict[Kind, Side] = {
    "sent": "client",
    "sent_noise": "client",
    "received": "agent",
    "noise": "agent",
    "event": "agent",
}


def read_own(source: Source) -> Iterator[RecordedConversation]:
    """Yield the one conversation of the file. Raises TraceError."""
    conversation = RecordedConversation(source.path)
    began = None
    try:
        for record in read_records(source.lines(), source.path):
            began = record.time if began is None else began
            line = msgspec.json.encode(record.message) if record.message else record.noise.encode()
            conversation.add(_SENDERS[record.kind], line, (record.time - began) / 1000, record.event)
    except TrajectoryError as error:
        raise TraceError(source.path, error.problem, error.line) from None
    source.torn = is_torn(source.data)
    yield conversation


__all__ = ["FORMATS", "Format", "Trace", "TraceError", "read_trace"]

Format = Literal["dragoman", "conductor", "directed", "messages"]

FORMATS: dict[Format, str] = {
    "dragoman": "a trajectory of dragoman's client or tap",
    "conductor": "a trace of the Rust conductor",
    "directed": "messages with a direction, one per line",
    "messages": "messages without a direction, one per line, as acpx writes them",
}

_READERS: dict[Format, Callable[[Source], Iterator[RecordedConversation]]] = {
    "dragoman": read_own,
    "conductor": read_conductor,
    "directed": read_directed,
    "messages": read_bare,
}
_TESTS: tuple[tuple[Format, Callable[[dict[str, Any]], bool]], ...] = (
    ("conductor", is_conductor),
    ("directed", is_directed),
    ("messages", is_bare),
)


class Trace(NamedTuple):
    """A recording that was read."""

    format: Format
    conversations: list[RecordedConversation]
    torn: bool
    """Whether the last line was incomplete and therefore left out."""


def read_trace(path: str | os.PathLike[str]) -> Trace:
    """Read a plain or gzipped recording. Raises TraceError with the number of the wrong line."""
    source = Source(path)
    found = _detect(source)
    conversations = list(_READERS[found](source))
    return Trace(found, conversations, source.torn)


def _detect(source: Source) -> Format:
    if is_header(source.first_line):
        return "dragoman"
    first = next(source.objects(), None)
    if first is not None:
        for name, is_it in _TESTS:
            if is_it(first.value):
                return name
    known = "; ".join(FORMATS.values())
    shown = msgspec.json.encode(sorted(first.value)).decode() if first is not None else "nothing"
    raise source.unreadable(f"this is not a known recording: it begins with {shown}; expected one of: {known}", 1)


def check_trace(path: str | os.PathLike[str], sides: Sequence[Side] = ("agent", "client")) -> CheckReport:
    """Judge a recording. Raises TraceError."""
    judges: list[Judge] = []
    for conversation in read_trace(path).conversations:
        judge = Judge(conversation, sides=sides)
        judge.state.timeline.is_from_start = _is_from_start(conversation)
        for entry in conversation.entries:
            judge.see(entry)
        judge.end()
        judges.append(judge)
    results = [result for side in sides for result in conclude(judges, side)]
    return CheckReport(sides[0], results, count_verdicts(results))


def _is_from_start(conversation: RecordedConversation) -> bool:
    """Return whether nothing can have come before: the client's first request is `initialize`."""
    for entry in conversation.entries:
        fields = decode_object(entry.line)
        if fields is None:
            continue
        is_answer = "method" not in fields
        if entry.sender == "client" and not is_answer:
            return fields["method"] == "initialize"
        if entry.sender == "agent" and is_answer:
            return False
    return False
