"""The lines and events of one connection, in order: the evidence for every verdict.

An entry is a line or an event. Lines are as they came, without the newline. These events are known, and `sender`
is the side that they happened to:

- `started`, or `started in DIRECTORY`: the process of the agent was started, there;
- `stdin closed`: nothing more will be written to this side;
- `exited N`: the process ended, with this status or minus the number of the signal;
- `stdout closed`: this side can send nothing any more, though its process runs on;
- `killed`: it was ended from outside, so requests that it left open are no fault of its own;
- `waited S`: for that many seconds this side had a request to answer, and did not;
- `orphans N`: the process ended and left that many of its children running;
- `mcp connected NAME`, `mcp missed NAME`, `mcp alone NAME`, `mcp leaked NAME`: an MCP server given to a session was
  reached, was not reached in time, was not used by another session, or was used by it;
- `mcp untrusted NAME`: it was not reached, and the agent says that it does not trust the directory of the session;
- `stderr`: the side wrote to stderr, which it may.
"""

from typing import Literal

import msgspec

from dragoman.errors import DragomanError

MAX_BYTES = 64 * 1024 * 1024
"""The size limit of one conversation with a side under check: a thousand times the need of any."""


class Flooded(DragomanError):
    """A side under check has said more than can be kept to judge it."""

    def __init__(self, conversation: str) -> None:
        super().__init__(
            f"in the conversation {conversation!r} it said more than {MAX_BYTES // 1024**2} MiB, which is more than is"
            " judged; see that it does not repeat itself"
        )


Side = Literal["client", "agent"]
"""The side that sent a message."""

OTHER: dict[Side, Side] = {"client": "agent", "agent": "client"}
"""The other side of each."""


class ConversationEntry(msgspec.Struct):
    """A line that one side sent, or an event that happened to it."""

    n: int
    at_s: float
    sender: Side
    line: bytes = b""
    event: str = ""


class RecordedConversation:
    """The entries of one connection, numbered from 1; with `max_entries` only the latest are kept."""

    def __init__(self, name: str = "", *, max_entries: int | None = None) -> None:
        self.name = name
        self.entries: list[ConversationEntry] = []
        self._max_entries = max_entries
        self._added = 0

    def add(self, sender: Side, line: bytes = b"", at_s: float = 0.0, event: str = "") -> ConversationEntry:
        """Add the next line or event, and return its entry for the judge."""
        self._added += 1
        entry = ConversationEntry(self._added, at_s, sender, line, event)
        self.entries.append(entry)
        if self._max_entries is not None and len(self.entries) > 2 * self._max_entries:
            del self.entries[: -self._max_entries]
        return entry

    def find(self, n: int) -> ConversationEntry | None:
        """Return an entry by its number, if it is still kept."""
        index = n - 1 - (self._added - len(self.entries))
        return self.entries[index] if 0 <= index < len(self.entries) else None
