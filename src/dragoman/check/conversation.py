"""The lines and events of one connection, in order. They are the evidence for every verdict.

An entry is a line or an event. Lines are unchanged, without the newline. There are these events, and `sender` is the
side that they are about:

- `started`, or `started in DIRECTORY`: the process of the agent was started, in that directory.

- `stdin closed`: nothing more will be written to this side.

- `exited N`: the process ended with this status, or with minus the number of the signal.

- `stdout closed`: this side can send nothing more, but its process still runs.

- `killed`: we ended the process, so unanswered requests are not its fault.

- `waited S`: this side had a request to answer, and did not answer it for that many seconds.

- `orphans N`: the process ended and left that many of its children running.

- `mcp connected NAME`, `mcp missed NAME`, `mcp alone NAME`, `mcp leaked NAME`: an MCP server of a session was reached,
  was not reached in time, was not used by another session, or was used by another session.

- `mcp untrusted NAME`: the server was not reached, and the agent says that it does not trust the session's directory.

- `stderr`: the side wrote to stderr, which is allowed.
"""

from typing import Literal

import msgspec

from dragoman.errors import DragomanError

MAX_BYTES = 64 * 1024 * 1024
"""Maximum size of one conversation with a side under check, a thousand times more than needed."""


class FloodedError(DragomanError):
    """A side under check sent more than can be stored to judge it."""

    def __init__(self, conversation: str) -> None:
        super().__init__(
            f"in the conversation {conversation!r} the other side sent more than {MAX_BYTES // 1024**2} MiB, the "
            "limit; check that it does not repeat itself"
        )


Side = Literal["client", "agent"]
"""The side that sent a message."""

OTHER: dict[Side, Side] = {"client": "agent", "agent": "client"}
"""The opposite of each side."""


class ConversationEntry(msgspec.Struct):
    """A line that one side sent, or an event of that side."""

    n: int
    at_s: float
    sender: Side
    line: bytes = b""
    event: str = ""


class RecordedConversation:
    """The entries of one connection, numbered from 1. With `max_entries` only the latest are kept."""

    def __init__(self, name: str = "", *, max_entries: int | None = None) -> None:
        self.name = name
        self.entries: list[ConversationEntry] = []
        self._max_entries = max_entries
        self._added = 0

    def add(self, sender: Side, line: bytes = b"", at_s: float = 0.0, event: str = "") -> ConversationEntry:
        """Append the next line or event and return its entry."""
        self._added += 1
        entry = ConversationEntry(self._added, at_s, sender, line, event)
        self.entries.append(entry)
        if self._max_entries is not None and len(self.entries) > 2 * self._max_entries:
            del self.entries[: -self._max_entries]
        return entry

    def find(self, n: int) -> ConversationEntry | None:
        """Return an entry by its number, if it is still stored."""
        index = n - 1 - (self._added - len(self.entries))
        return self.entries[index] if 0 <= index < len(self.entries) else None
