"""Recorded conversations in any known format: detection, reading, and the report about them."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from dragoman.check.conversation import RecordedConversation, Side
from dragoman.check.judge import Judge
from dragoman.check.judge.message import decode_object
from dragoman.check.results import CheckReport, conclude, summarize
from dragoman.check.rule import Role
from dragoman.check.trace.conductor import is_conductor, read_conductor
from dragoman.check.trace.messages import is_bare, is_directed, read_bare, read_directed
from dragoman.check.trace.source import Source, TraceUnreadable
from dragoman.protocol.trajectory import Kind, TrajectoryUnreadable, is_header, is_torn, read_records

_SENDERS: dict[Kind, Side] = {
    "sent": "client",
    "sent_noise": "client",
    "received": "agent",
    "noise": "agent",
    "event": "agent",
}


def read_own(source: Source) -> Iterator[RecordedConversation]:
    """Yield the one conversation of the file. Raises TraceUnreadable."""
    conversation = RecordedConversation(source.path)
    began = None
    try:
        for record in read_records(source.lines(), source.path):
            began = record.time if began is None else began
            line = msgspec.json.encode(record.message) if record.message else record.noise.encode()
            conversation.add(_SENDERS[record.kind], line, (record.time - began) / 1000, record.event)
    except TrajectoryUnreadable as error:
        raise TraceUnreadable(source.path, error.problem, error.line) from None
    source.torn = is_torn(source.data)
    yield conversation


__all__ = ["FORMATS", "Format", "Trace", "TraceUnreadable", "read_trace"]

Format = Literal["dragoman", "conductor", "directed", "messages"]

FORMATS: dict[Format, str] = {
    "dragoman": "a trajectory of dragoman's client or tap",
    "conductor": "a trace of the Rust conductor",
    "directed": "messages with a direction, one a line",
    "messages": "messages alone, one a line, as acpx writes them",
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
    """Whether the last line was cut short, and so left out."""


def read_trace(path: str | os.PathLike[str]) -> Trace:
    """Read a recording; gzipped ones too. Raises TraceUnreadable, with the number of the line at fault."""
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
    raise source.unreadable(f"no known recording begins like this, with {shown}; known are: {known}", 1)


def check_trace(path: str | os.PathLike[str], roles: Sequence[Role] = ("agent", "client")) -> CheckReport:
    """Judge a recording. Raises TraceUnreadable."""
    judges: list[Judge] = []
    for conversation in read_trace(path).conversations:
        judge = Judge(conversation, roles=roles)
        judge.state.timeline.is_from_start = _is_from_start(conversation)
        for entry in conversation.entries:
            judge.see(entry)
        judge.end()
        judges.append(judge)
    results = [result for role in roles for result in conclude(judges, role)]
    return CheckReport(roles[0], results, summarize(results))


def _is_from_start(conversation: RecordedConversation) -> bool:
    """Tell whether nothing can have come before: the client first asks for `initialize`, and has asked nothing else."""
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
