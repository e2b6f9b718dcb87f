"""The store of one agent's histories: open histories, and stored ones of earlier runs.

It uses files (`file_histories`), or a database that several nodes share (`database_histories`).
"""

from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from dragoman.bridge.delivery.earlier_run import EarlierRun
from dragoman.bridge.delivery.history_index import HistoryIndex
from dragoman.bridge.delivery.stored_histories import GroupOf, StoredHistories, StoredHistory
from dragoman.bridge.envelope import rename_session
from dragoman.bridge.translation import Version
from dragoman.store.history import History
from dragoman.store.runs import MessageRun


class SessionDescription(msgspec.Struct, frozen=True):
    """The facts of a session in lists."""

    fields: dict[str, Any]
    """The params of `_dragoman/session`."""
    is_prompted: bool


class HistoryStore(Protocol):
    """Creates histories, and finds the histories of earlier runs and of other nodes."""

    stored: StoredHistories
    """Histories that are not open here."""
    is_shared: bool
    """Whether other nodes use the same store."""
    group_of: GroupOf
    """Returns the list group of a session."""
    index: HistoryIndex | None
    """The index for searching messages, or None. Then a search reads the histories."""

    def can_keep(self, session_id: str) -> bool:
        """Return whether the store accepts this session id."""
        ...

    async def scan(self) -> None:
        """List the stored histories. Raises OSError, LogError."""
        ...

    def create(self, session_id: str, cwd: str, directories: list[str]) -> History:
        """Begin a history. It replaces an older one of that session when `settle` is called."""
        ...

    def settle(self, history: History) -> None:
        """Replace an older history of the session by a new one."""
        ...

    async def reopen(self, session_id: str) -> tuple[History, EarlierRun] | None:
        """Continue a stored history. Return None if there is none that can be read. Raises OSError, LogError."""
        ...

    async def claim(self, history: History) -> None:
        """Reserve a session without an older history. Raises SessionBusyError if another node is opening it."""
        ...

    def follow(self, history: History, other: History) -> None:
        """Make later records of a history visible only after the present records of another history."""
        ...

    def put_away(self, history: History, stored: StoredHistory) -> None:
        """Release a complete history from memory, except its facts for lists. `reopen` opens it again."""
        ...

    async def copy_for(self, history: History, session_id: str) -> list[tuple[Version, bytes]]:
        """Return all readable messages of a history, with another session id.

        They are in pieces, each with its version of ACP.
        """
        ...

    def read_stored(self, session_id: str) -> AsyncGenerator[list[MessageRun]]:
        """Read the messages of a history that is not open here, in parts. Raises OSError and DragomanError."""
        ...

    def delete(self, session_id: str) -> None:
        """Delete the history of a session that is not open."""
        ...


async def copy_messages(history: History, session_id: str) -> list[tuple[Version, bytes]]:
    """Return all readable messages of a history, with another session id.

    They are in pieces, each with its version of ACP.
    """

    def rename(lines: bytes) -> bytes:
        return b"".join([rename_session(line, session_id) + b"\n" for line in lines[:-1].split(b"\n")])

    pieces: list[tuple[Version, bytes]] = []
    reached, end = 0, history.end
    with suppress(OSError):
        while reached < end:
            part = await history.read(reached, end, lambda run: run.change(rename))
            pieces.extend((history.version_at(run.first), run.lines) for run in part.runs)
            reached = part.reached
    return pieces
