"""A journal in a file.

While the disk is full the journal goes on in memory, and all of that is written once there is space again: until then
cursors have an epoch of their own, because they would mean something else if the bridge ended. A journal that cannot be
written for another reason goes on in memory alone: a viewer at its end notices nothing, but no cursor into it is
promised to hold.

Viewers are told of records before those are safe from a power cut. Records that were lost that way may leave no trace,
and their numbers are given anew. So the epoch changes with every start of the machine, and when part of a journal was
cut off: then its header gets another time.
"""

import asyncio
import errno
import secrets
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

from dragoman.bridge.delivery.journal import EPOCH_CHARACTERS, Cursor, Journal, make_epoch
from dragoman.bridge.delivery.journal_file import JournalFile, JournalPart
from dragoman.bridge.delivery.runs import TailBudget
from dragoman.errors import LogFileFailed
from dragoman.store.block import Draft, Header, encode_header, now_ms
from dragoman.store.block_log import LogPosition
from dragoman.store.disk import Disk
from dragoman.store.naming import version1_path

MAX_UNWRITTEN_BYTES = 64 * 1024 * 1024
"""Kept in memory for a full disk: the rest of a long turn, because no other begins meanwhile."""

_FULL = (errno.ENOSPC, errno.EDQUOT)

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@cache
def boot_id() -> bytes:
    """Name this run of the machine; empty where the system does not tell."""
    try:
        return _BOOT_ID.read_bytes()
    except OSError:
        return b""


def delete_files(path: Path) -> None:
    """Remove the file of a journal, the original of one that was converted, and copies of one that was damaged."""
    for each in (path, version1_path(path), *path.parent.glob(f"{path.stem}.damaged-*.jsonl")):
        with suppress(OSError):
            each.unlink()


class FileJournal(Journal):
    """One session's journal in its file."""

    def __init__(self, file: JournalFile, header: Header, budget: TailBudget) -> None:
        super().__init__(header, budget, make_epoch(header, boot_id()), file.durable_end)
        self.file = file
        self._interim_epoch: str | None = None
        """The epoch while the disk is full."""

    @classmethod
    def create(cls, disk: Disk, path: Path, header: Header, budget: TailBudget) -> "FileJournal":
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
    def place(self) -> str:
        return str(self.path)

    @property
    def epoch(self) -> str:
        return self._lasting_epoch if self._interim_epoch is None or not self.is_waiting else self._interim_epoch

    @property
    def is_waiting(self) -> bool:
        return self.file.is_waiting

    def has(self, cursor: Cursor) -> bool:
        is_known = cursor.epoch in (self._lasting_epoch, self._interim_epoch)
        return is_known and 0 <= cursor.seq <= self.end and not self.is_lost

    def flush(self) -> None:
        if not self._drafts[0]:
            return
        drafts, self._drafts = self._drafts, [Draft()]
        time_ms = now_ms()
        self._note_written(time_ms)
        if not self.is_lost:
            for draft in drafts:
                self.file.put(draft, time_ms)
            self._write("write to")
        self._show(drafts, time_ms)

    def recover(self) -> bool:
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
        self.is_sync_due = False
        self.flush()
        self.recover()
        self.file.close()
        return self._sync if self.failure is None and self.file.take_unsynced() else None

    def fail(self, error: OSError, action: str) -> None:
        """Go on in memory alone."""
        self._forget_unwritten()
        self.failure = LogFileFailed(str(self.path), error.errno or errno.EIO, action)
        self.close()
        self._tell()

    def close(self) -> None:
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
        self._forget_unwritten()
        self.close()
        self.tail.drop()

    def delete(self) -> None:
        self.drop()
        delete_files(self.path)

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
            self.tail.release(self._lasting_epoch.encode())
            self._tell()

    def _wait(self, error: OSError, action: str) -> None:
        """Go on in memory until there is space on the disk."""
        self.close()
        was_waiting = self.failure is not None
        self.failure = LogFileFailed(str(self.path), error.errno or errno.ENOSPC, action)
        if not was_waiting:
            self._interim_epoch = self._interim_epoch or secrets.token_hex(EPOCH_CHARACTERS // 2)
            self.tail.hold(self._interim_epoch.encode())
            self._tell()

    def _forget_unwritten(self) -> None:
        if self.file.forget_unwritten():
            self.tail.release(self._lasting_epoch.encode())

    def _sync(self) -> None:
        """Sync, in a thread; a failure counts from the next write on."""
        try:
            self.file.sync()
        except OSError as error:
            self.failure = LogFileFailed(str(self.path), error.errno or errno.EIO, "sync")
