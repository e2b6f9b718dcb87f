"""The journals of one agent on the disk: `<home>/bridge/<agent>/<hash of the session id>.jsonl`.

Session ids are the agent's, and may be any string: the header of each journal says whose it is.
"""

import asyncio
import hashlib
import os
import re
from collections.abc import AsyncGenerator
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from dragoman.bridge.delivery.file_journal import FileJournal, delete_files
from dragoman.bridge.delivery.journal import EarlierRun, Journal, make_header, renew_header
from dragoman.bridge.delivery.journal_file import INDEX_BYTES, JournalFile, JournalPart
from dragoman.bridge.delivery.journal_store import EarlierBlocks
from dragoman.bridge.delivery.runs import MessageRun, TailBudget
from dragoman.bridge.delivery.stored_journals import GroupOf, StoredJournal, StoredJournals, one_group
from dragoman.bridge.envelope import rename_session
from dragoman.bridge.translation import Version
from dragoman.errors import SessionUnreadable
from dragoman.store import UNPROMPTED_KEPT_S, Damage, version1
from dragoman.store.block import VERSION, now_ms
from dragoman.store.block_log import LogHead, LogPosition, read_head, write_sound
from dragoman.store.disk import READ, Disk, make_directories
from dragoman.store.file_log import open_reader
from dragoman.store.log_end import read_log_end
from dragoman.store.sealed_log import keep_aside
from dragoman.store.version1 import convert

_HASH_CHARACTERS = 40

_MAX_UNPROMPTED_BYTES = 1 << 20
"""A journal of settings and commands alone has some kilobytes."""


class StoredFile(StoredJournal, frozen=True, kw_only=True):
    """The file of a journal that nobody has opened in this run."""

    path: Path
    head: LogHead


class FileJournalStore:
    """Makes journals in files, and finds those of earlier runs. See `JournalStore`."""

    def __init__(self, disk: Disk, directory: Path, budget: TailBudget) -> None:
        self.stored = StoredJournals()
        """Journals that nobody has opened in this run, by session."""
        self.is_shared = False
        self.group_of: GroupOf = one_group
        self._disk = disk
        self._directory = directory
        self._budget = budget

    async def scan(self) -> None:
        """Look at the journals of earlier runs; raises OSError if the directory cannot be made."""
        self.stored = StoredJournals(await asyncio.to_thread(self._scan), self.group_of)

    def create(self, session_id: str, cwd: str, directories: list[str]) -> FileJournal:
        path = self.path_of(session_id).with_suffix(".new")
        return FileJournal.create(self._disk, path, make_header(session_id, cwd, directories), self._budget)

    def settle(self, journal: Journal) -> None:
        self.stored.pop(journal.header.id, None)
        _in_file(journal).move(self.path_of(journal.header.id))

    async def reopen(self, session_id: str) -> FileJournal | None:
        stored = self.stored.get(session_id)
        if not isinstance(stored, StoredFile):
            return None
        try:
            journal = await asyncio.to_thread(_reopen, self._disk, stored, self._budget)
        except SessionUnreadable:
            return None
        self.stored.pop(session_id, None)
        return journal

    async def title_of(self, journal: Journal) -> str | None:
        try:
            stored = await asyncio.to_thread(_look_at, self._disk, _in_file(journal).path)
        except (OSError, SessionUnreadable):
            return None
        return stored.title if stored else None

    async def copy_for(self, journal: Journal, session_id: str) -> list[tuple[Version, bytes]]:
        try:
            return await asyncio.to_thread(_copy_lines, _in_file(journal), session_id)
        except OSError:
            return []

    async def read_stored(self, session_id: str) -> AsyncGenerator[list[MessageRun]]:
        stored = self.stored.get(session_id)
        if not isinstance(stored, StoredFile):
            return
        reader = await asyncio.to_thread(open_reader, self._disk, stored.path, stored.head, None)
        try:
            while blocks := await asyncio.to_thread(reader.read):
                yield [
                    MessageRun(lines, first, block.time, count=n)
                    for block in blocks
                    for first, n, lines in block.runs()
                ]
        finally:
            reader.close()

    def delete(self, session_id: str) -> None:
        stored = self.stored.pop(session_id, None)
        if isinstance(stored, StoredFile):
            delete_files(stored.path)

    def path_of(self, session_id: str) -> Path:
        """Return the place of the journal of a session."""
        return self._directory / journal_name(session_id)

    def _scan(self) -> list[StoredJournal]:
        make_directories(self._disk, self._directory)
        found: list[StoredJournal] = []
        oldest_ms = now_ms() - int(1000 * UNPROMPTED_KEPT_S)
        for path in self._directory.glob("*.jsonl"):
            with suppress(OSError, SessionUnreadable):
                stored = _look_at(self._disk, path)
                if stored is None or self.path_of(stored.header.id) != path:
                    continue
                if stored.prompted or stored.updated_ms >= oldest_ms:
                    found.append(stored)
                else:
                    path.unlink()
        for pattern in ("*.new", "*.version1.jsonl"):
            for left in self._directory.glob(pattern):
                with suppress(OSError):
                    left.unlink()
        return found


def journal_name(session_id: str) -> str:
    """Return the name of the file of a session's journal."""
    return hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARACTERS] + ".jsonl"


def find_stored(directory: Path) -> list[StoredJournal]:
    """Return the journals of a directory, and change nothing there: a bridge may have it."""
    found: list[StoredJournal] = []
    disk = Disk()
    for path in directory.glob("*.jsonl"):
        with suppress(OSError, SessionUnreadable):
            stored = _look_at(disk, path)
            if stored is not None and journal_name(stored.header.id) == path.name:
                found.append(stored)
    return found


def _in_file(journal: Journal) -> FileJournal:
    if not isinstance(journal, FileJournal):
        raise TypeError(f"{journal.place} is no journal in a file")
    return journal


# The rest is for threads.


def _copy_lines(journal: FileJournal, session_id: str) -> list[tuple[Version, bytes]]:
    """Read all messages, and have them name another session; raises OSError."""
    pieces: list[tuple[Version, bytes]] = []
    part = JournalPart([], 0)
    end = journal.file.durable_end
    while part.reached < end:
        part = journal.file.read(part.reached, end, None)
        for run in part.runs:
            lines = b"".join([rename_session(message, session_id) + b"\n" for message in run.messages()])
            pieces.append((journal.version_at(run.first), lines))
    return pieces


def _look_at(disk: Disk, path: Path) -> StoredFile | None:
    """Read the header and the end of a journal; None if it is none. Raises SessionUnreadable and OSError."""
    fd = disk.open(path, READ)
    try:
        head = read_head(fd, path)
        if head is None:
            return None
        status = os.fstat(fd)
        read_end = read_log_end if head.version == VERSION else version1.read_log_end
        end = read_end(fd, head.start.offset, status.st_size)
        prompted = end.prompted or _has_conversation(fd, status.st_size)
        updated_ms = end.conversation_time or end.time or int(status.st_mtime * 1000)
        return StoredFile(
            header=head.header, title=end.title, updated_ms=updated_ms, prompted=prompted, path=path, head=head
        )
    finally:
        os.close(fd)


def _has_conversation(fd: int, size: int) -> bool:
    """Tell whether a journal without a turn has turns that an agent replayed."""
    return size > _MAX_UNPROMPTED_BYTES or re.search(rb'_message(_chunk)?"', os.pread(fd, size, 0)) is not None


class _FoundBlocks(msgspec.Struct):
    """What a journal of an earlier run has in it, read from its beginning to its sound end."""

    positions: list[LogPosition]
    end: LogPosition
    earlier: EarlierRun
    damage: Damage | None
    is_sound: bool
    """Whether it ends with a seal; else lines that were shown may be missing."""


def _reopen(disk: Disk, stored: StoredFile, budget: TailBudget) -> FileJournal:
    """Open a journal of an earlier run to add to it, and mend it if a crash has torn it; raises OSError."""
    head = stored.head
    found = _read_all(disk, stored.path, head)
    failure: OSError | None = None
    if head.version != VERSION or not found.is_sound:
        try:
            head = _write_anew(disk, stored.path, head, found)
            found = _read_all(disk, stored.path, head)
        except OSError as error:
            failure = error
    older = partial(open_reader, disk, stored.path, head, None) if head.version != VERSION else None
    file = JournalFile(disk, stored.path, positions=found.positions, end=found.end, open_reader=older)
    journal = FileJournal(file, head.header, budget)
    journal.updated_ms = stored.updated_ms
    journal.keep_earlier(found.earlier)
    if failure is not None:
        journal.fail(failure, "mend")
    return journal


def _read_all(disk: Disk, path: Path, head: LogHead) -> _FoundBlocks:
    """Read all blocks once: for their positions, the last settings, the user's messages and the sound end."""
    positions = [head.start]
    earlier = EarlierBlocks()
    reader = open_reader(disk, path, head, None)
    try:
        while True:
            position = reader.position
            blocks = reader.read()
            if not blocks:
                break
            for block in blocks:
                earlier.see(block)
            if head.version == VERSION and position.offset - positions[-1].offset >= INDEX_BYTES:
                positions.append(position)
        end, unsealed, damage = reader.position, reader.unsealed, reader.damage
        if unsealed is not None:
            end = LogPosition(end.offset + unsealed.end, unsealed.last, 0)  # not to be added to before it is mended
        return _FoundBlocks(positions, end, earlier.result(), damage, is_sound=damage is None and unsealed is None)
    finally:
        reader.close()


def _write_anew(disk: Disk, path: Path, head: LogHead, found: _FoundBlocks) -> LogHead:
    """Put a sound journal of the present version in the place of one that is not; raises OSError.

    It has another header if something was lost, because cursors may point at that.
    """
    header = head.header if found.is_sound else renew_header(head.header)
    if head.version != VERSION:
        return convert(disk, path, head, found.damage, header=header)[0]
    fresh = path.with_suffix(".new")
    with suppress(FileNotFoundError):
        fresh.unlink()
    reader = open_reader(disk, path, head, None)
    try:
        start, _ = write_sound(disk, reader, header, fresh)
    finally:
        reader.close()
    if found.damage is not None and not found.damage.torn:
        keep_aside(path)
    fresh.replace(path)
    disk.sync_directory(path.parent)
    return LogHead(header, VERSION, start)
