"""The interface of a store for session logs, whether it is made of files or of a database.

A list of sessions is given in pages. The cursor to the next page names the last session that was shown, so that
sessions which come, go or move meanwhile shift nothing. Its checksum covers the filter too: a cursor is good only for
the list that it came from.
"""

import asyncio
import base64
import binascii
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Literal, Protocol, runtime_checkable
from zlib import crc32

import msgspec

from dragoman.errors import BadCursor, LogFailed
from dragoman.store.block import Block, Header, Rename
from dragoman.store.naming import is_session_id
from dragoman.store.sealed_log import Damage

PAGE_SESSIONS = 100
"""Sessions a page: more than a screen holds, and still a small answer."""

UNPROMPTED_KEPT_S = 7 * 24 * 3600.0
"""A session that was never prompted is kept for this long: its id works in another process, and no list shows it."""

ArchiveFilter = Literal["exclude", "include", "only"]
"""The sessions of a list by whether they are archived: those that are not, all, or those that are."""

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
    """The program that began it, if it named itself."""


def summarise(header: Header, title: str | None, message_count: int, updated_ms: int, *, is_archived: bool) -> Summary:
    """Make the entry of a session in a list."""
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
    """Some sessions, newest first, and where to go on."""

    sessions: list[Summary]
    next_cursor: str | None


class Log(Protocol):
    """One session's log, held by one writer.

    The log of a new session takes lines at once; that of a session that was opened has to be read to
    its end first, because only that tells where to go on.
    """

    @property
    def title(self) -> str | None:
        """Known once the log was read; set by the writer, and shown in lists from the next sync on."""
        ...

    @title.setter
    def title(self, title: str | None) -> None: ...

    @property
    def message_count(self) -> int:
        """Known, set and shown as the title is."""
        ...

    @message_count.setter
    def message_count(self, count: int) -> None: ...

    @property
    def is_archived(self) -> bool:
        """Known, set and shown as the title is."""
        ...

    @is_archived.setter
    def is_archived(self, is_archived: bool) -> None: ...

    @property
    def header(self) -> Header:
        """The header: the session that the log belongs to."""
        ...

    @property
    def damage(self) -> Damage | None:
        """The damage found while reading, once; the next one to open the log will not find it again."""
        ...

    @property
    def failure(self) -> LogFailed | None:
        """The reason why nothing can be appended any more, or never could; earlier records can be read."""
        ...

    def append(self, lines: bytes, count: int | None = None) -> None:
        """Add whole lines of the wire, in memory only: the bytes that the client is sent, which replay sends again.

        `count` is their number, from a caller that made them of single ones: then they are not looked at again.
        Raises LogFailed, ValueError for anything else, RuntimeError before the log was read.
        """
        ...

    def record(self, kind: str, data: bytes) -> None:
        """Add a record that no client is sent, given as one line of JSON, in memory only.

        Raises LogFailed, ValueError for an unknown kind or several lines, RuntimeError before the log was read.
        """
        ...

    def flush(self) -> "asyncio.Future[None] | None":
        """Write the appended lines: they then survive the death of this process, and may be shown.

        Where that takes a while, as in a database, it is so when the returned future is done; a failure is its error.
        Raises LogFailed, but not for a log that was opened where nothing can be written: `append` does that.
        """
        ...

    async def sync(self) -> None:
        """Write the appended records so that they survive a power cut too, and show them in lists. Raises LogFailed."""
        ...

    def blocks(self) -> AsyncIterator[list[Block]]:
        """Read all that was appended before this call, in order, some blocks at a time.

        A block has the lines of one `flush` or of several; lines are numbered from 1 without a gap. Raises LogFailed,
        also when the appended lines cannot be written.
        """
        ...

    async def close(self) -> None:
        """Sync, and let others open the session. Raises LogFailed, having let go all the same."""
        ...


class Store(Protocol):
    """A place for session logs.

    A session is prompted once its log has a `turn` record, or a `client` record with a title or an archiving. Lists
    have the sessions that were prompted. The others can be found and opened by their id, and are deleted by the store
    itself when they were not written to for `UNPROMPTED_KEPT_S`, except those that a process holds.
    """

    async def now(self) -> datetime:
        """Return the time for the headers of new sessions, by the one clock of all who share them; raises LogFailed."""
        ...

    async def create(self, header: Header, settings: bytes | None = None) -> Log:
        """Begin the log of a new session, with a first `config` record if `settings` are given, and hold it.

        It survives a power cut when this returns. Raises LogFailed, SessionBusy.
        """
        ...

    async def open(self, session_id: str) -> Log:
        """Hold a session that exists; where nothing can be written, its log can be read and has a `failure`.

        Raises SessionUnknown, SessionBusy, SessionUnreadable, LogFailed.
        """
        ...

    async def find(self, session_id: str) -> Header | None:
        """Look at a session without holding it; raises SessionUnreadable, LogFailed."""
        ...

    async def page(
        self, cwd: str | None = None, cursor: str | None = None, *, archived: ArchiveFilter = "exclude"
    ) -> Page:
        """List sessions that were prompted, of one working directory or all, newest first; raises BadCursor."""
        ...

    async def fork(self, session_id: str, header: Header, rename: Rename, before: int | None = None) -> None:
        """Make a new session of all that another one has written, or of its lines before one; it need not be held.

        `rename` gives lines of the other session the id of the new one, without changing the length of any.
        Raises SessionUnknown, SessionUnreadable, LogFailed.
        """
        ...

    async def delete(self, session_id: str) -> bool:
        """Remove a session, and return whether there was one; raises SessionBusy while it is held, LogFailed."""
        ...

    async def close(self) -> None:
        """Close every log that is still open here, and let go."""
        ...


@runtime_checkable
class SharesApprovals(Protocol):
    """A store that also keeps decisions of people which hold for good, for all who share it."""

    async def find_approval(self, cwd: str, action: bytes) -> str | None:
        """Return the decision about exactly these bytes in a project; raises LogFailed."""
        ...

    async def keep_approval(self, cwd: str, action: bytes, decision: str) -> None:
        """Remember a decision in a project; raises LogFailed."""
        ...


def encode_cursor(updated_ms: int, session_id: str, cwd: str | None, archived: ArchiveFilter = "exclude") -> str:
    """Name the last session that was shown."""
    body = f"{_CURSOR_VERSION}.{updated_ms}.{session_id}"
    return base64.urlsafe_b64encode(f"{body}.{_checksum(body, cwd, archived)}".encode()).decode().rstrip("=")


def decode_cursor(cursor: str, cwd: str | None, archived: ArchiveFilter = "exclude") -> tuple[int, str]:
    """Return the time and id of the last session that was shown; raises BadCursor."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        text = base64.b64decode(padded, altchars=b"-_", validate=True).decode("ascii")
    except (UnicodeError, binascii.Error):
        raise BadCursor("that is no cursor of this list") from None
    body, _, checksum = text.rpartition(".")
    version, _, last = body.partition(".")
    if version != _CURSOR_VERSION:
        raise BadCursor("that is no cursor of this list, or one of another version of dragoman")
    if checksum != _checksum(body, cwd, archived):
        raise BadCursor("that cursor belongs to another list, or was changed on its way")
    updated_ms, _, session_id = last.partition(".")
    if not updated_ms.isdecimal() or not is_session_id(session_id):
        raise BadCursor("that is no cursor of this list")
    return int(updated_ms), session_id


def _checksum(body: str, cwd: str | None, archived: ArchiveFilter) -> str:
    covered = body if archived == "exclude" else f"{body} {archived}"
    covered = covered if cwd is None else f"{covered} {cwd}"
    return f"{crc32(covered.encode()):08x}"
