"""The journals of one agent on the disk: `<home>/bridge/<agent>/<hash of the session id>.jsonl`.

Session ids are the agent's, and may be any string: the header of each journal says whose it is.
"""

import asyncio
import hashlib
import os
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from dragoman.bridge.delivery.journal import EarlierRun, Journal, delete_files, make_header, renew_header
from dragoman.bridge.delivery.journal_file import INDEX_BYTES, JournalFile, JournalPart
from dragoman.bridge.delivery.runs import TailBudget
from dragoman.bridge.envelope import rename_session
from dragoman.errors import SessionUnreadable
from dragoman.store import UNPROMPTED_KEPT_S, Damage, version1
from dragoman.store.block import VERSION, Header, now_ms
from dragoman.store.block_log import LogHead, LogPosition, read_head, write_sound
from dragoman.store.disk import READ, Disk, make_directories
from dragoman.store.file_log import open_reader
from dragoman.store.log_end import read_log_end
from dragoman.store.sealed_log import keep_aside
from dragoman.store.version1 import convert

_HASH_CHARACTERS = 40

_MAX_UNPROMPTED_BYTES = 1 << 20
"""A journal of settings and commands alone has some kilobytes."""

_USER = b'"user_message_chunk"'


class StoredJournal(msgspec.Struct, frozen=True):
    """A journal on the disk that nobody has opened in this run."""

    path: Path
    head: LogHead
    title: str | None
    updated_ms: int
    prompted: bool

    @property
    def header(self) -> Header:
        """The session that it belongs to."""
        return self.head.header


class PromptCounter:
    """Counts the user's messages among the notifications of a session: chunks in a row are one."""

    __slots__ = ("_within", "value")

    def __init__(self) -> None:
        self.value = 0
        self._within = False

    def see(self, lines: bytes) -> None:
        """Count the next notifications."""
        if _USER not in lines:
            self._within = False
            return
        for line in lines[:-1].split(b"\n"):
            is_user = _USER in line
            self.value += is_user and not self._within
            self._within = is_user


class ReplayedJournal:
    """A journal of the agent's replay, of a session that has a journal already.

    It is kept apart until the replay is complete. The older journal has what the agent may have forgotten, and every
    cursor into it holds; the agent has what was said while the session was open elsewhere. The one with more of the
    user's messages stays.
    """

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self._prompts = PromptCounter()

    def add(self, lines: bytes, count: int | None = None) -> None:
        """Add replayed notifications."""
        self._prompts.see(lines)
        self.journal.add(lines, count)

    def has_more_than(self, journal: Journal) -> bool:
        """Tell whether the session went on elsewhere since that journal was closed."""
        return not self.journal.is_lost and self._prompts.value > journal.earlier.prompts


class JournalStore:
    """Makes journals, and finds those of earlier runs."""

    def __init__(self, disk: Disk, directory: Path, budget: TailBudget) -> None:
        self.stored: dict[str, StoredJournal] = {}
        """Journals that nobody has opened in this run, by session."""
        self._disk = disk
        self._directory = directory
        self._budget = budget

    async def scan(self) -> None:
        """Look at the journals of earlier runs; raises OSError if the directory cannot be made."""
        self.stored = await asyncio.to_thread(self._scan)

    def create(self, session_id: str, cwd: str, directories: list[str]) -> Journal:
        """Begin a journal, which takes the place of an older one of that session once `settle` is called."""
        path = self._path(session_id).with_suffix(".new")
        return Journal.create(self._disk, path, make_header(session_id, cwd, directories), self._budget)

    def settle(self, journal: Journal) -> None:
        """Let a new journal take the place of an older one."""
        self.stored.pop(journal.header.id, None)
        journal.move(self._path(journal.header.id))

    async def reopen(self, session_id: str) -> Journal | None:
        """Go on with a journal of an earlier run; None if there is none that can be read. Raises OSError."""
        stored = self.stored.get(session_id)
        if stored is None:
            return None
        try:
            journal = await asyncio.to_thread(_reopen, self._disk, stored, self._budget)
        except SessionUnreadable:
            return None
        self.stored.pop(session_id, None)
        return journal

    async def title_of(self, journal: Journal) -> str | None:
        """Read the title at the end of a journal."""
        try:
            stored = await asyncio.to_thread(_look_at, self._disk, journal.path)
        except (OSError, SessionUnreadable):
            return None
        return stored.title if stored else None

    async def copy_for(self, journal: Journal, session_id: str) -> bytes:
        """Give all messages of a journal as if they were of another session; unreadable ones are left out."""
        try:
            return await asyncio.to_thread(_copy_lines, journal.file, session_id)
        except OSError:
            return b""

    def delete(self, session_id: str) -> None:
        """Delete the journal of a session that is not open."""
        stored = self.stored.pop(session_id, None)
        if stored is not None:
            delete_files(stored.path)

    def _path(self, session_id: str) -> Path:
        name = hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARACTERS]
        return self._directory / f"{name}.jsonl"

    def _scan(self) -> dict[str, StoredJournal]:
        make_directories(self._disk, self._directory)
        found: dict[str, StoredJournal] = {}
        oldest_ms = now_ms() - int(1000 * UNPROMPTED_KEPT_S)
        for path in self._directory.glob("*.jsonl"):
            with suppress(OSError, SessionUnreadable):
                stored = _look_at(self._disk, path)
                if stored is None or self._path(stored.header.id) != path:
                    continue
                if stored.prompted or stored.updated_ms >= oldest_ms:
                    found[stored.header.id] = stored
                else:
                    path.unlink()
        for pattern in ("*.new", "*.version1.jsonl"):
            for left in self._directory.glob(pattern):
                with suppress(OSError):
                    left.unlink()
        return found


# The rest is for threads.


def _copy_lines(file: JournalFile, session_id: str) -> bytes:
    """Read all messages, and have them name another session; raises OSError."""
    lines: list[bytes] = []
    part = JournalPart([], 0)
    end = file.durable_end
    while part.reached < end:
        part = file.read(part.reached, end, None)
        lines += [rename_session(message, session_id) + b"\n" for run in part.runs for message in run.messages()]
    return b"".join(lines)


def _look_at(disk: Disk, path: Path) -> StoredJournal | None:
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
        return StoredJournal(path, head, end.title, end.time or int(status.st_mtime * 1000), prompted)
    finally:
        os.close(fd)


def _has_conversation(fd: int, size: int) -> bool:
    """Tell whether a journal without a turn has turns that an agent replayed."""
    return size > _MAX_UNPROMPTED_BYTES or b'_message_chunk"' in os.pread(fd, size, 0)


class _FoundBlocks(msgspec.Struct):
    """What a journal of an earlier run has in it, read from its beginning to its sound end."""

    positions: list[LogPosition]
    end: LogPosition
    earlier: EarlierRun
    damage: Damage | None
    is_sound: bool
    """Whether it ends with a seal; else lines that were shown may be missing."""


def _reopen(disk: Disk, stored: StoredJournal, budget: TailBudget) -> Journal:
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
    journal = Journal(file, head.header, budget)
    journal.updated_ms = stored.updated_ms
    journal.earlier = found.earlier
    if failure is not None:
        journal.fail(failure, "mend")
    return journal


def _read_all(disk: Disk, path: Path, head: LogHead) -> _FoundBlocks:
    """Read all blocks once: for their positions, the last settings, the user's messages and the sound end."""
    positions = [head.start]
    config: bytes | None = None
    prompts = PromptCounter()
    reader = open_reader(disk, path, head, None)
    try:
        while True:
            position = reader.position
            blocks = reader.read()
            if not blocks:
                break
            for block in blocks:
                for _, _, lines in block.runs():
                    prompts.see(lines)
                config = next((bytes(each.data) for each in reversed(block.records()) if each.kind == "config"), config)
            if head.version == VERSION and position.offset - positions[-1].offset >= INDEX_BYTES:
                positions.append(position)
        end, unsealed, damage = reader.position, reader.unsealed, reader.damage
        if unsealed is not None:
            end = LogPosition(end.offset + unsealed.end, unsealed.last, 0)  # not to be added to before it is mended
        earlier = EarlierRun(config, prompts.value)
        return _FoundBlocks(positions, end, earlier, damage, is_sound=damage is None and unsealed is None)
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
