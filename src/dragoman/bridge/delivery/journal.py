"""The journal of a session: every notification as it came, numbered, in a file and with its end in memory.

Notifications are added as lines, and those of one tick of the event loop are written as one block (see `store.block`);
viewers see only what was written. While
the disk is full the journal goes on in memory, and all of that is written once there is space again: until then cursors
have an epoch of their own, because they would mean something else if the bridge ended. A journal that cannot be written
for another reason goes on in memory alone: a viewer at its end notices nothing, but no cursor into it is promised to
hold.

An epoch names a journal in which a cursor keeps its meaning. Viewers are told of records before those are safe from a
power cut. Records that were lost that way may leave no trace, and their numbers are given anew. So the epoch changes
with every start of the machine, and when part of a journal was cut off: then its header gets another time.
"""

import asyncio
import errno
import hashlib
import secrets
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from zlib import crc32

import msgspec

from dragoman.bridge.delivery.journal_file import JournalFile, JournalPart
from dragoman.bridge.delivery.runs import JournalTail, TailBudget
from dragoman.errors import LogFailed
from dragoman.store.block import Draft, Header, encode_header, now_ms
from dragoman.store.block_log import LogPosition
from dragoman.store.disk import Disk
from dragoman.store.naming import version1_path

MAX_UNWRITTEN_BYTES = 64 * 1024 * 1024
"""Kept in memory for a full disk: the rest of a long turn, because no other begins meanwhile."""

MAX_BLOCK_BYTES = 256 * 1024
"""Lines of one block: a few reads from an agent. A block goes to a viewer whole, and its frames are kept for others."""

_FULL = (errno.ENOSPC, errno.EDQUOT)

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_EPOCH_CHARACTERS = 12

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


def make_header(session_id: str, cwd: str, directories: list[str]) -> Header:
    """Make the header of a new journal; its time tells it from others of the same session."""
    return Header(session_id, cwd, directories, _now())


def renew_header(header: Header) -> Header:
    """Make another header for a journal of which something was lost."""
    return msgspec.structs.replace(header, created=_now())


def make_epoch(header: Header) -> str:
    """Name a journal, so that a cursor into one does not fit another.

    The header is taken as version 1 wrote it, so that cursors hold when a journal is converted.
    """
    line = msgspec.json.encode({"dragoman": 1, "session": header})[:-1]
    named = b'%b,"crc":"%08x"}\n%b' % (line, crc32(line), boot_id())
    return hashlib.sha256(named).hexdigest()[:_EPOCH_CHARACTERS]


@cache
def boot_id() -> bytes:
    """Name this run of the machine; empty where the system does not tell."""
    try:
        return _BOOT_ID.read_bytes()
    except OSError:
        return b""


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def delete_files(path: Path) -> None:
    """Remove the file of a journal, and the original of one that was converted."""
    for each in (path, version1_path(path)):
        with suppress(OSError):
            each.unlink()


class EarlierRun(msgspec.Struct, frozen=True):
    """Facts that an earlier run of the bridge left in a journal."""

    config: bytes | None = None
    """The last settings of the session."""
    prompts: int = 0
    """The user's messages."""


class Journal:
    """One session's journal, open for more."""

    def __init__(self, file: JournalFile, header: Header, budget: TailBudget) -> None:
        self.file = file
        self.header = header
        self.end = file.durable_end
        """The last record that viewers may see."""
        self.updated_ms = now_ms()
        self.failure: LogFailed | None = None
        self.on_failure: Callable[[], None] | None = None
        """Called when it fails, and when it has recovered."""
        self.earlier = EarlierRun()
        self.is_sync_due = False
        """Whether it is synced soon, which closes its file."""
        self._epoch = make_epoch(header)
        self._interim_epoch: str | None = None
        self.tail = JournalTail(budget, self._epoch.encode(), self.end)
        self._drafts = [Draft()]
        """Blocks that are not written; the last one is added to."""

    @classmethod
    def create(cls, disk: Disk, path: Path, header: Header, budget: TailBudget) -> "Journal":
        """Begin a journal; one that cannot even begin goes on in memory."""
        file = JournalFile(disk, path, positions=[], end=LogPosition(0, 0, 0))
        journal = cls(file, header, budget)
        file.put_header(*encode_header(header, now_ms()))
        journal._write("create")
        file.close()
        return journal

    @property
    def path(self) -> Path:
        """The path of its file."""
        return self.file.path

    @property
    def epoch(self) -> str:
        """The epoch of cursors into it, now."""
        return self._epoch if self._interim_epoch is None or not self.is_waiting else self._interim_epoch

    @property
    def is_waiting(self) -> bool:
        """Whether part of it waits for space on the disk."""
        return self.file.is_waiting

    @property
    def is_lost(self) -> bool:
        """Whether it will never be written again."""
        return self.failure is not None and not self.is_waiting

    @property
    def next_end(self) -> int:
        """The last record, written or about to be."""
        return self.end + sum(map(len, self._drafts))

    def has(self, cursor: Cursor) -> bool:
        """Tell whether a cursor names a place of this journal."""
        is_known = cursor.epoch in (self._epoch, self._interim_epoch)
        return is_known and 0 <= cursor.seq <= self.end and not self.is_lost

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

    def flush(self) -> None:
        """Write the added records, and show them to viewers."""
        if not self._drafts[0]:
            return
        drafts, self._drafts = self._drafts, [Draft()]
        self.updated_ms = now_ms()
        if not self.is_lost:
            for draft in drafts:
                self.file.put(draft, self.updated_ms)
            self._write("write to")
        for draft in drafts:
            for first, count, lines in draft.runs(self.end + 1):
                self.tail.extend(first, lines, self.updated_ms, count=count)
            self.end += len(draft)

    def recover(self) -> bool:
        """Write the records that wait for space on the disk, if there is any now; tells whether none waits any more."""
        if self.is_waiting:
            self._write("write to")
        return not self.is_waiting

    async def read(self, after: int, until: int, *, with_cursors: bool) -> JournalPart:
        """Read messages that are not in memory any more; raises OSError.

        If the file was taken away, they are left out: the rest of the journal is still there for its viewers.
        """
        epoch = self.epoch.encode() if with_cursors else None
        try:
            return await asyncio.to_thread(self.file.read, after, until, epoch)
        except FileNotFoundError:
            pass  # a file that was renamed meanwhile has another path by now
        try:
            return await asyncio.to_thread(self.file.read, after, until, epoch)
        except FileNotFoundError as error:
            self.fail(error, "read")
            return JournalPart([], until)

    def begin_sync(self) -> Callable[[], None] | None:
        """Write the added records, and give the work of a thread that syncs them, if there is any."""
        self.is_sync_due = False
        self.flush()
        self.recover()
        self.file.close()
        return self._sync if self.failure is None and self.file.take_unsynced() else None

    def fail(self, error: OSError, action: str) -> None:
        """Go on in memory alone."""
        self._forget_unwritten()
        self.failure = LogFailed(str(self.path), error.errno or errno.EIO, action)
        self.close()
        self._tell()

    def close(self) -> None:
        """Close the file until the next write."""
        self.file.close()

    def move(self, path: Path) -> None:
        """Give the file another name, in place of a file that has it."""
        if self.is_waiting:
            self.file.rename_later(path)
            return
        if path.exists():
            self._sync()  # the file of that name is lost with the rename: a power cut must not take this one too
        if not self.is_lost:
            try:
                self.path.replace(path)
            except OSError as error:
                self.fail(error, "rename")
        self.file.path = path

    def drop(self) -> None:
        """Hold nothing of it any more, neither in memory nor open."""
        self._forget_unwritten()
        self.close()
        self.tail.drop()

    def delete(self) -> None:
        """Remove the file."""
        self.drop()
        delete_files(self.path)

    def _add(self, lines: bytes, count: int | None) -> None:
        draft = self._drafts[-1]
        if draft and draft.size + len(lines) > MAX_BLOCK_BYTES:
            draft = Draft()
            self._drafts.append(draft)
        draft.add_lines(lines, count)

    def _write(self, action: str) -> None:
        try:
            self.file.write()
        except OSError as error:
            if error.errno in _FULL and self.file.unwritten_bytes <= MAX_UNWRITTEN_BYTES:
                self._wait(error, action)
            else:
                self.fail(error, action)
            return
        if self.failure is not None:
            self.failure = None
            self.tail.release(self._epoch.encode())
            self._tell()

    def _wait(self, error: OSError, action: str) -> None:
        """Go on in memory until there is space on the disk."""
        self.close()
        was_waiting = self.failure is not None
        self.failure = LogFailed(str(self.path), error.errno or errno.ENOSPC, action)
        if not was_waiting:
            self._interim_epoch = self._interim_epoch or secrets.token_hex(_EPOCH_CHARACTERS // 2)
            self.tail.hold(self._interim_epoch.encode())
            self._tell()

    def _forget_unwritten(self) -> None:
        if self.file.forget_unwritten():
            self.tail.release(self._epoch.encode())

    def _tell(self) -> None:
        if self.on_failure is not None:
            self.on_failure()

    def _sync(self) -> None:
        """Sync, in a thread; a failure counts from the next write on."""
        try:
            self.file.sync()
        except OSError as error:
            self.failure = LogFailed(str(self.path), error.errno or errno.EIO, "sync")
