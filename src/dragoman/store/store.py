"""The interface of a store for session logs, in files or in a database.

Lists of sessions have pages. The cursor of the next page names the last session that was shown, so sessions that are
added, deleted or moved do not shift the pages. The cursor has a checksum that covers the filter of the list, so it is
only valid for that list.
"""

import base64
import binascii
from datetime import UTC, datetime
from typing import Literal, Protocol, runtime_checkable
from zlib import crc32

import msgspec

from dragoman.errors import InvalidCursorError
from dragoman.store.block import Header, Rename
from dragoman.store.history import History
from dragoman.store.naming import is_session_id

PAGE_SESSIONS = 100
"""Sessions per page. This is more than fits on a screen, but still a small answer."""

UNPROMPTED_KEPT_S = 7 * 24 * 3600.0
"""A session that was never prompted is kept for this long. Other processes can open it by its id. Lists omit it."""

ArchiveFilter = Literal["exclude", "include", "only"]
"""Selects the sessions of a list: without archived sessions, all, or only archived sessions."""

_CURSOR_VERSION = "1"


class Summary(msgspec.Struct, frozen=True):
    """The entry of a session in a list."""

    id: str
    cwd: str
    additional_directories: list[str]
    title: str | None
    updated_at: str
    """ISO 8601 in UTC, with a Z."""
    message_count: int
    is_archived: bool = False
    origin: str | None = None
    """The program that created the session, if it gave its name."""


def summarise(header: Header, title: str | None, message_count: int, updated_ms: int, *, is_archived: bool) -> Summary:
    """Return the entry of a session in a list."""
    updated_at = datetime.fromtimestamp(updated_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return Summary(
        id=header.id,
        cwd=header.cwd,
        additional_directories=header.additional_directories,
        title=title,
        updated_at=updated_at.replace("+00:00", "Z"),
        message_count=message_count,
        is_archived=is_archived,
        origin=header.origin,
    )


class Page(msgspec.Struct, frozen=True):
    """One page of a list of sessions, newest first, with the cursor of the next page."""

    sessions: list[Summary]
    next_cursor: str | None


class Store(Protocol):
    """A store for session logs.

    A session counts as prompted if its log has a `turn` record, or a `client` record with a title or archiving. Lists
    only show prompted sessions. Other sessions can be found and opened by their id. The store deletes them if they were
    not written to for `UNPROMPTED_KEPT_S`, unless a process holds them.
    """

    async def now(self) -> datetime:
        """Return the time for the header of a new session, from the clock of the store. Raises LogError."""
        ...

    async def create(self, header: Header, settings: bytes | None = None) -> History:
        """Create the log of a new session and hold it. `settings` become its first record, of kind `config`.

        When this returns, the session survives a power cut. Raises LogError, SessionBusyError.
        """
        ...

    async def open(self, session_id: str) -> History:
        """Open an existing session and hold it. If nothing can be written, its log has a `failure` and can be read.

        Raises SessionNotFoundError, SessionBusyError, SessionUnreadableError, LogError.
        """
        ...

    async def find(self, session_id: str) -> Header | None:
        """Return the header of a session without holding it, or None. Raises SessionUnreadableError, LogError."""
        ...

    async def page(
        self, cwd: str | None = None, cursor: str | None = None, *, archived: ArchiveFilter = "exclude"
    ) -> Page:
        """Return a page of the prompted sessions of one working directory or all, newest first.

        Raises InvalidCursorError.
        """
        ...

    async def fork(self, session_id: str, header: Header, rename: Rename, before: int | None = None) -> None:
        """Create a session from all written lines of another session, or only from those before line `before`.

        The other session need not be held. `rename` puts the id of the new session into lines, without changing the
        length of any line. Raises SessionNotFoundError, SessionUnreadableError, LogError.
        """
        ...

    async def delete(self, session_id: str) -> bool:
        """Delete a session, and return whether it existed. Raises SessionBusyError while it is held, LogError."""
        ...

    async def close(self) -> None:
        """Close every log that is still open here, and release all resources."""
        ...


@runtime_checkable
class SharesApprovals(Protocol):
    """A store that also stores permanent decisions of users, for all processes that share it."""

    async def find_approval(self, cwd: str, action: bytes) -> str | None:
        """Return the decision about exactly these bytes in a project, or None. Raises LogError."""
        ...

    async def keep_approval(self, cwd: str, action: bytes, decision: str) -> None:
        """Store a decision in a project. Raises LogError."""
        ...


def encode_cursor(updated_ms: int, session_id: str, cwd: str | None, archived: ArchiveFilter = "exclude") -> str:
    """Return the cursor after the last session that was shown."""
    body = f"{_CURSOR_VERSION}.{updated_ms}.{session_id}"
    return base64.urlsafe_b64encode(f"{body}.{_checksum(body, cwd, archived)}".encode()).decode().rstrip("=")


def decode_cursor(cursor: str, cwd: str | None, archived: ArchiveFilter = "exclude") -> tuple[int, str]:
    """Return the time and id of the last session that was shown. Raises InvalidCursorError."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        text = base64.b64decode(padded, altchars=b"-_", validate=True).decode("ascii")
    except (UnicodeError, binascii.Error):
        raise InvalidCursorError("the cursor does not belong to this list") from None
    body, _, checksum = text.rpartition(".")
    version, _, last = body.partition(".")
    if version != _CURSOR_VERSION:
        raise InvalidCursorError("the cursor does not belong to this list, or another version of dragoman made it")
    if checksum != _checksum(body, cwd, archived):
        raise InvalidCursorError("the cursor belongs to another list or was changed")
    updated_ms, _, session_id = last.partition(".")
    if not updated_ms.isdecimal() or not is_session_id(session_id):
        raise InvalidCursorError("the cursor does not belong to this list")
    return int(updated_ms), session_id


def _checksum(body: str, cwd: str | None, archived: ArchiveFilter) -> str:
    covered = body if archived == "exclude" else f"{body} {archived}"
    covered = covered if cwd is None else f"{covered} {cwd}"
    return f"{crc32(covered.encode()):08x}"
