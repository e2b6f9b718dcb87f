"""A terminal that a client made for an agent."""

import msgspec

from dragoman.check.conversation import Entry


class Terminal(msgspec.Struct):
    """One terminal and how far it has come."""

    id: str
    created: Entry
    session_id: str | None
    max_bytes: float | None = None
    exited: Entry | None = None
    killed: Entry | None = None
    released: Entry | None = None
