"""Updates of sessions that nobody knows yet: some agents say things before they have answered `session/new`."""

from collections import deque

MAX_LINES = 1_000
MAX_BYTES = 1024 * 1024
"""What comes that early is a list of commands or the like; more is a session that nobody opened."""


class Early:
    """Holds such updates until their session is known; the oldest are let go."""

    def __init__(self) -> None:
        self._lines: deque[tuple[str, bytes]] = deque()
        self._bytes = 0

    def put(self, session_id: str, line: bytes) -> None:
        """Hold an update."""
        self._lines.append((session_id, line))
        self._bytes += len(line)
        while len(self._lines) > MAX_LINES or self._bytes > MAX_BYTES:
            self._bytes -= len(self._lines.popleft()[1])

    def take(self, session_id: str) -> list[bytes]:
        """Give what was held for a session."""
        taken = [line for held_for, line in self._lines if held_for == session_id]
        if taken:
            self._lines = deque(held for held in self._lines if held[0] != session_id)
            self._bytes -= sum(map(len, taken))
        return taken

    def clear(self) -> None:
        """Let all go."""
        self._lines.clear()
        self._bytes = 0
