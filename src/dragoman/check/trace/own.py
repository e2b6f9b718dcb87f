"""Our own recordings: trajectories of the client, and of `dragoman tap`."""

from collections.abc import Iterator

import msgspec

from dragoman.check.conversation import Conversation, Side
from dragoman.check.trace.source import Source, TraceUnreadable
from dragoman.protocol.trajectory import Kind, TrajectoryUnreadable, read_records

_SENDERS: dict[Kind, Side] = {
    "sent": "client",
    "sent_noise": "client",
    "received": "agent",
    "noise": "agent",
    "event": "agent",
}


def read_own(source: Source) -> Iterator[Conversation]:
    """Yield the one conversation of the file. Raises TraceUnreadable."""
    conversation = Conversation(source.path)
    began = None
    last = 0
    try:
        for record in read_records(source.lines(), source.path):
            began = record.time if began is None else began
            line = msgspec.json.encode(record.message) if record.message else record.noise.encode()
            conversation.add(_SENDERS[record.kind], line, (record.time - began) / 1000, record.event)
            last = record.seq
    except TrajectoryUnreadable as error:
        # The header is line 1, and record 1 is line 2.
        raise TraceUnreadable(source.path, error.problem, last + 2 if last else 1) from None
    source.torn = not source.data.endswith(b"\n")
    yield conversation
