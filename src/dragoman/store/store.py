"""What a place for session logs offers, whether it is made of files or of a database."""

from collections.abc import AsyncIterator
from typing import Protocol

import msgspec

from dragoman.store.damage import Damage
from dragoman.store.record import Header, Record

PAGE_SESSIONS = 100
"""Sessions a page: more than a screen holds, and still a small answer."""


class Summary(msgspec.Struct, frozen=True):
    """What a list says of a session."""

    id: str
    cwd: str
    additional_directories: list[str]
    title: str | None
    updated_at: str
    """ISO 8601 in UTC, with a Z."""
    message_count: int


class Page(msgspec.Struct, frozen=True):
    """Some sessions, newest first, and where to go on."""

    sessions: list[Summary]
    next_cursor: str | None


class Log(Protocol):
    """One session's log, held by one writer.

    The log of a new session takes records at once; that of a session that was opened has to be read to
    its end first, for only then it is known where to go on.
    """

    title: str | None
    message_count: int
    """Known once the records were read; changed by whoever writes, and shown in lists from the next sync on."""

    @property
    def header(self) -> Header:
        """Whose log this is."""
        ...

    @property
    def damage(self) -> Damage | None:
        """What was found wrong while reading, once; the next one to open the log will not find it again."""
        ...

    def append(self, kind: str, *payloads: bytes) -> None:
        """Add records of one kind, each of one line of JSON, in memory only.

        Raises LogFailed, ValueError for an unknown kind or several lines, RuntimeError before the log was read.
        """
        ...

    def flush(self) -> None:
        """Write what was appended: it then survives the death of this process. Raises LogFailed."""
        ...

    async def sync(self) -> None:
        """Write what was appended so that it survives a power cut too, and show it in lists. Raises LogFailed."""
        ...

    def records(self) -> AsyncIterator[list[Record]]:
        """Read all that was appended before this call, in order, many at a time.

        Raises LogFailed, also when what was appended cannot be written.
        """
        ...

    async def close(self) -> None:
        """Sync, and let others open the session. Raises LogFailed, having let go all the same."""
        ...


class Store(Protocol):
    """A place for session logs."""

    async def create(self, header: Header) -> Log:
        """Begin the log of a new session, and hold it; raises LogFailed, SessionBusy."""
        ...

    async def open(self, session_id: str) -> Log:
        """Hold a session that exists; raises SessionUnknown, SessionBusy, SessionUnreadable, LogFailed."""
        ...

    async def find(self, session_id: str) -> Header | None:
        """Look at a session without holding it; raises SessionUnreadable, LogFailed."""
        ...

    async def page(self, cwd: str | None = None, cursor: str | None = None) -> Page:
        """List sessions, those of one working directory or all, newest first; raises BadCursor."""
        ...

    async def fork(self, session_id: str, header: Header) -> None:
        """Make a new session of all that another one has written; it need not be held.

        Raises SessionUnknown, SessionUnreadable, LogFailed.
        """
        ...

    async def delete(self, session_id: str) -> bool:
        """Remove a session, and say whether there was one; raises SessionBusy while anybody holds it, LogFailed."""
        ...

    async def close(self) -> None:
        """Close every log that is still open here, and let go."""
        ...
