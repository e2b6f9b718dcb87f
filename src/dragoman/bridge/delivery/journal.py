"""The journal of a session: every notification as it came, numbered, in a file or a database, its end in memory.

Notifications are added as lines, and those of one tick of the event loop are written as one block (see `store.block`);
viewers see only what was written. Files are in `file_journal`, the tables of a database in `database_journal`.

An epoch names a journal in which a cursor keeps its meaning.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol
from zlib import crc32

import msgspec

from dragoman.bridge.delivery.journal_file import JournalPart
from dragoman.bridge.delivery.runs import JournalTail, TailBudget
from dragoman.bridge.translation import V1, Version
from dragoman.errors import LogFailed
from dragoman.store.block import Draft, Header, now_ms

MAX_BLOCK_BYTES = 256 * 1024
"""Lines of one block: a few reads from an agent. A block goes to a viewer whole, and its frames are kept for others."""

EPOCH_CHARACTERS = 12

_CONVERSATION_KINDS = frozenset({"permission", "title", "turn"})
"""Records that are a part of the conversation."""

_CONVERSATION = re.compile(
    rb'"sessionUpdate"\s*:\s*"(?!(?:available_commands|config_option|current_mode|session_info|state|usage)_update")'
)
"""An update that is one, too. An agent tells its settings again whenever it is started, or gets another model."""

_MAX_DIGITS = 18
"""Digits of a number that fits into 64 bits."""


class Cursor(msgspec.Struct, frozen=True):
    """A place in a journal, and among the direct messages of one viewer."""

    epoch: str
    seq: int
    number: int | None = None
    """The last direct message; the cursor of a journalled message has none."""


def read_cursor(text: str | None) -> Cursor | None:
    """Read `<epoch>.<seq>.<number>`, the id of an event, or `<epoch>.<seq>`; None for anything else."""
    epoch, *numbers = (text or "").split(".")
    if len(numbers) not in {1, 2} or not all(map(_is_number, numbers)):
        return None
    return Cursor(epoch, *map(int, numbers))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS


def make_header(session_id: str, cwd: str, directories: list[str], now: datetime | None = None) -> Header:
    """Make the header of a new journal; its time tells it from others of the same session."""
    return Header(session_id, cwd, directories, _write_time(now or datetime.now(UTC)))


def renew_header(header: Header) -> Header:
    """Make another header for a journal of which something was lost."""
    return msgspec.structs.replace(header, created=_write_time(datetime.now(UTC)))


def make_epoch(header: Header, run: bytes = b"") -> str:
    """Name a journal, so that a cursor into one does not fit another; `run` names a run in which cursors hold.

    The header is taken as version 1 wrote it, so that cursors hold when a journal is converted.
    """
    line = msgspec.json.encode({"dragoman": 1, "session": header})[:-1]
    named = b'%b,"crc":"%08x"}\n%b' % (line, crc32(line), run)
    return hashlib.sha256(named).hexdigest()[:EPOCH_CHARACTERS]


def _write_time(time: datetime) -> str:
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z")


def encode_settings(settings: Mapping[str, object], version: Version) -> bytes:
    """Return the record of a session's settings, in the words of a version."""
    return msgspec.json.encode(settings if version == V1 else {"protocolVersion": version, **settings})


class _SettingsVersion(msgspec.Struct):
    protocol_version: Version = msgspec.field(default=V1, name="protocolVersion")


def version_of_settings(config: bytes) -> Version:
    """Return the version of ACP of settings, and so of the messages after them."""
    try:
        return msgspec.json.decode(config, type=_SettingsVersion).protocol_version
    except msgspec.DecodeError:
        return V1


def find_version(changes: Sequence[tuple[int, Version]], seq: int) -> Version:
    """Return the version of ACP in which a record is; each change names the last record before it."""
    found: Version = V1
    for after, version in changes:
        if after < seq:
            found = version
    return found


def is_all_in(changes: Sequence[tuple[int, Version]], version: Version) -> bool:
    """Tell whether all records of a journal are in one version; the journal begins with version 1."""
    begins_so = version == V1 or (bool(changes) and changes[0][0] == 1)
    return begins_so and all(each == version for _, each in changes)


class EarlierTurn(msgspec.Struct, frozen=True):
    """A turn whose prompt had a key; without an end it was cut off."""

    stop_reason: str | None = None
    error: msgspec.Raw | None = None


class SessionDescription(msgspec.Struct, frozen=True):
    """A session as lists show it."""

    fields: dict[str, Any]
    """The params of `_dragoman/session`."""
    is_prompted: bool


class JournalReader(Protocol):
    """A session, as its journal needs it."""

    def changed(self) -> None:
        """Note that the journal fails, or has recovered."""
        ...

    def wake_viewers(self) -> None:
        """Note that records can be seen that could not when they were flushed."""
        ...

    def describe_for_lists(self) -> SessionDescription:
        """Give the facts that lists of other nodes show."""
        ...


class EarlierRun(msgspec.Struct, frozen=True):
    """Facts that an earlier run of the bridge left in a journal."""

    config: bytes | None = None
    """The last settings of the session."""
    prompts: int = 0
    """The user's messages."""
    versions: tuple[tuple[int, Version], ...] = ()
    """The records after which the agent spoke another version of ACP, with that version."""
    turns: Mapping[str, EarlierTurn] = {}
    """The last turns whose prompts had a key, by it."""
    has_open_turn: bool = False
    """Whether its last turn was broken off."""


class Journal:
    """One session's journal, open for more."""

    def __init__(self, header: Header, budget: TailBudget, epoch: str, end: int) -> None:
        self.header = header
        self.end = end
        """The last record that viewers may see."""
        self.updated_ms = now_ms()
        """When the conversation last went on; settings and the like are written without that."""
        self.failure: LogFailed | None = None
        self.reader: JournalReader | None = None
        """The session that it is the journal of."""
        self.earlier = EarlierRun()
        self.is_sync_due = False
        """Whether it is synced soon, which closes its file."""
        self.tail = JournalTail(budget, epoch.encode(), end)
        self._lasting_epoch = epoch
        self._versions: list[tuple[int, Version]] = []
        """The last record before each change of the agent's version, with the new version; it begins with version 1."""
        self._drafts = [Draft()]
        """Blocks that are not written; the last one is added to."""
        self._goes_on = False
        """Whether one of them has a part of the conversation."""

    @property
    def place(self) -> str:
        """The place where it is written, for people."""
        raise NotImplementedError

    @property
    def epoch(self) -> str:
        """The epoch of cursors into it, now."""
        return self._lasting_epoch

    @property
    def is_waiting(self) -> bool:
        """Whether part of it waits for space on the disk."""
        return False

    @property
    def is_lost(self) -> bool:
        """Whether it will never be written again."""
        return self.failure is not None and not self.is_waiting

    @property
    def next_end(self) -> int:
        """The last record, written or about to be."""
        return self.end + sum(map(len, self._drafts))

    @property
    def version(self) -> Version:
        """The version of ACP in which its next records are."""
        return self._versions[-1][1] if self._versions else V1

    def version_at(self, seq: int) -> Version:
        """Return the version of ACP in which a record is."""
        return find_version(self._versions, seq)

    def is_all_in(self, version: Version) -> bool:
        """Tell whether all records are in this version: a viewer that speaks it needs no translation."""
        return is_all_in(self._versions, version)

    def keep_earlier(self, earlier: EarlierRun) -> None:
        """Go on where an earlier run of the bridge ended."""
        self.earlier = earlier
        self._versions = list(earlier.versions)

    @property
    def versions(self) -> list[tuple[int, Version]]:
        """The changes of the version, each with the record before the first in it."""
        return list(self._versions)

    def set_version(self, version: Version) -> None:
        """Note that the next records are in this version of ACP, where that is another one.

        The record is one of settings, which name the version of their words: a new kind of record could not be read by
        earlier releases.
        """
        if version != self.version:
            self._versions.append((self.next_end + 1, version))
            self.note("config", encode_settings({}, version))

    def has(self, cursor: Cursor) -> bool:
        """Tell whether a cursor names a place of this journal."""
        return cursor.epoch == self._lasting_epoch and 0 <= cursor.seq <= self.end and not self.is_lost

    def cursor(self, seq: int) -> str:
        """Name a place of this journal."""
        return f"{self.epoch}.{seq}"

    def add(self, lines: bytes, count: int | None = None) -> None:
        """Add notifications, each a line of the wire with its newline; their number if they were checked already."""
        while len(lines) > MAX_BLOCK_BYTES:
            end = lines.rfind(b"\n", 0, MAX_BLOCK_BYTES) + 1 or lines.index(b"\n") + 1
            self._add(lines[:end], None)
            lines, count = lines[end:], None
        if lines:
            self._add(lines, count)

    def note(self, kind: str, payload: bytes) -> None:
        """Add a record that viewers do not get."""
        self._drafts[-1].add_record(kind, payload)
        self._goes_on = self._goes_on or kind in _CONVERSATION_KINDS

    def flush(self) -> None:
        """Have the added records written, and show them to viewers once they are."""
        raise NotImplementedError

    def note_change(self) -> None:
        """Have the facts that lists of other nodes show written with the next flush."""

    def follow_on(self, other: "Journal") -> None:
        """Show the records that are added from now on behind those that another journal has."""

    async def claim(self) -> None:
        """Be the one that opens a session which has no journal yet; raises SessionBusy if another node does."""

    def recover(self) -> bool:
        """Write the records that wait for space on the disk, if there is any now; tells whether none waits any more."""
        return True

    async def read(self, after: int, until: int, *, with_cursors: bool) -> JournalPart:
        """Read messages that are not in memory any more; raises OSError."""
        raise NotImplementedError

    def begin_sync(self) -> Callable[[], None] | None:
        """Write the added records, and give the work of a thread that syncs them, if there is any."""
        self.is_sync_due = False
        self.flush()
        return None

    def close(self) -> None:
        """Close what is open until the next write."""

    def drop(self) -> None:
        """Hold nothing of it any more, neither in memory nor open."""
        raise NotImplementedError

    def delete(self) -> None:
        """Remove it for good."""
        raise NotImplementedError

    def _add(self, lines: bytes, count: int | None) -> None:
        draft = self._drafts[-1]
        if draft and draft.size + len(lines) > MAX_BLOCK_BYTES:
            draft = Draft()
            self._drafts.append(draft)
        draft.add_lines(lines, count)
        self._goes_on = self._goes_on or _CONVERSATION.search(lines) is not None

    def _note_written(self, time_ms: int) -> None:
        """Note when the conversation went on, if the added records are a part of it."""
        if self._goes_on:
            self.updated_ms, self._goes_on = time_ms, False

    def _show(self, drafts: Iterable[Draft], time_ms: int) -> None:
        """Let viewers see records that were written."""
        for draft in drafts:
            for first, count, lines in draft.runs(self.end + 1):
                self.tail.extend(first, lines, time_ms, count=count)
            self.end += len(draft)

    def _tell(self) -> None:
        if self.reader is not None:
            self.reader.changed()
