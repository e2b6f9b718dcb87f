"""A recorded conversation, in whichever of the known formats it is."""

import os
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import msgspec

from dragoman.check.conversation import Conversation
from dragoman.check.trace.bare import is_bare, read_bare
from dragoman.check.trace.conductor import is_conductor, read_conductor
from dragoman.check.trace.directed import is_directed, read_directed
from dragoman.check.trace.own import read_own
from dragoman.check.trace.source import Source, TraceUnreadable
from dragoman.protocol.trajectory import is_header

__all__ = ["FORMATS", "Format", "Trace", "TraceUnreadable", "read_trace"]

Format = Literal["dragoman", "conductor", "directed", "messages"]

FORMATS: dict[Format, str] = {
    "dragoman": "a trajectory of dragoman's client or tap",
    "conductor": "a trace of the Rust conductor",
    "directed": "messages with a direction, one a line",
    "messages": "messages alone, one a line, as acpx writes them",
}

_READERS: dict[Format, Callable[[Source], Iterator[Conversation]]] = {
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
    """What was read."""

    format: Format
    conversations: list[Conversation]
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
