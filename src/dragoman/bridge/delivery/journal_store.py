"""The journals of one agent on the disk: `<home>/bridge/<agent>/<hash of the session id>.jsonl`.

Session ids are the agent's, and may be any string: the header of each journal says whose it is.
"""

import asyncio
import hashlib
import os
from contextlib import suppress
from pathlib import Path

import msgspec

from dragoman.bridge.delivery.journal import EarlierRun, Journal, make_header, renew_header
from dragoman.bridge.delivery.journal_file import INDEX_BYTES, JournalBlock, JournalFile, RecordOffset
from dragoman.bridge.delivery.tail import TailBudget
from dragoman.bridge.envelope import rename_session
from dragoman.errors import SessionUnreadable
from dragoman.store import UNPROMPTED_KEPT_S
from dragoman.store.block import Header, now_ms
from dragoman.store.disk import READ, Disk, make_directories
from dragoman.store.record import encode_header
from dragoman.store.sealed_log import Reader, copy_file, mend_torn, read_header, set_aside
from dragoman.store.version1 import read_log_end

_HASH_CHARACTERS = 40

_MAX_UNPROMPTED_BYTES = 1 << 20
"""A journal of settings and commands alone has some kilobytes."""

_USER = b'"user_message_chunk"'


class StoredJournal(msgspec.Struct, frozen=True):
    """A journal on the disk that nobody has opened in this run."""

    path: Path
    header: Header
    title: str | None
    updated_ms: int
    prompted: bool


class PromptCounter:
    """Counts the user's messages among the notifications of a session: chunks in a row are one."""

    __slots__ = ("_within", "value")

    def __init__(self) -> None:
        self.value = 0
        self._within = False

    def see(self, line: bytes) -> None:
        """Count the next notification."""
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

    def add(self, line: bytes) -> None:
        """Add a replayed notification."""
        self._prompts.see(line)
        self.journal.add(line)

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

    async def copy_for(self, journal: Journal, session_id: str) -> list[bytes]:
        """Give all messages of a journal as if they were of another session; unreadable ones are left out."""
        try:
            return await asyncio.to_thread(_copy_lines, journal.file, session_id)
        except OSError:
            return []

    def delete(self, session_id: str) -> None:
        """Delete the journal of a session that is not open."""
        stored = self.stored.pop(session_id, None)
        if stored is not None:
            with suppress(OSError):
                stored.path.unlink()

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
        for left in self._directory.glob("*.new"):
            with suppress(OSError):
                left.unlink()
        return found


# The rest is for threads.


def _copy_lines(file: JournalFile, session_id: str) -> list[bytes]:
    """Read all messages, and have them name another session; raises OSError."""
    lines: list[bytes] = []
    block = JournalBlock([], [], 0)
    end = file.durable_end
    while block.reached < end:
        block = file.read_block(block.reached, end, None)
        lines += [rename_session(event.data, session_id) for event in block.events]
    return lines


def _look_at(disk: Disk, path: Path) -> StoredJournal | None:
    """Read the header and the end of a journal; None if it is none. Raises SessionUnreadable and OSError."""
    fd = disk.open(path, READ)
    try:
        found = read_header(fd, path)
        if found is None:
            return None
        header, start = found
        status = os.fstat(fd)
        end = read_log_end(fd, start, status.st_size)
        prompted = end.prompted or _has_conversation(fd, status.st_size)
        return StoredJournal(path, header, end.title, end.time or int(status.st_mtime * 1000), prompted)
    finally:
        os.close(fd)


def _has_conversation(fd: int, size: int) -> bool:
    """Tell whether a journal without a turn has turns that an agent replayed."""
    return size > _MAX_UNPROMPTED_BYTES or b'_message_chunk"' in os.pread(fd, size, 0)


def _reopen(disk: Disk, stored: StoredJournal, budget: TailBudget) -> Journal:
    """Open a journal of an earlier run to add to it, and mend it if a crash has torn it; raises OSError."""
    fd = disk.open(stored.path, READ)
    try:
        found = read_header(fd, stored.path)
    finally:
        os.close(fd)
    start = found[1] if found else 0
    offsets = [RecordOffset(0, start)]
    config: bytes | None = None
    prompts = PromptCounter()
    reader = Reader(disk, stored.path, start, None)
    try:
        # All records are read once: for their offsets, the last settings, the user's messages and the sound end.
        while True:
            seq, offset = reader.seq, reader.trusted
            records = reader.read()
            if not records:
                break
            for record in records:
                if record.kind == "message":
                    prompts.see(bytes(record.data))
                elif record.kind == "config":
                    config = bytes(record.data)
            if offset - offsets[-1].offset >= INDEX_BYTES:
                offsets.append(RecordOffset(seq, offset))
    finally:
        reader.close()
    journal = _open_sound(disk, stored, budget, offsets, reader)
    journal.updated_ms = stored.updated_ms
    journal.earlier = EarlierRun(config, prompts.value)
    return journal


def _open_sound(
    disk: Disk, stored: StoredJournal, budget: TailBudget, offsets: list[RecordOffset], reader: Reader
) -> Journal:
    """Make the journal of a file that was read to its sound end; a damaged one is mended first."""
    file = JournalFile(disk, stored.path, offsets=offsets, end=reader.seq, size=reader.trusted)
    if reader.damage is None:
        return Journal(file, stored.header, budget)
    try:
        header, size = _mend(disk, stored, offsets[0].offset, reader)
    except OSError as error:
        journal = Journal(file, stored.header, budget)
        journal.fail(error, "mend")
        return journal
    grown = len(encode_header(header)) - offsets[0].offset
    moved = [RecordOffset(place.seq, place.offset + grown) for place in offsets]
    return Journal(JournalFile(disk, stored.path, offsets=moved, end=reader.seq, size=size), header, budget)


def _mend(disk: Disk, stored: StoredJournal, start: int, reader: Reader) -> tuple[Header, int]:
    """Keep the sound records under a new header, because cursors may point at lost ones; raises OSError."""
    header = renew_header(stored.header)
    line = encode_header(header)
    fresh = stored.path.with_suffix(".new")
    with suppress(FileNotFoundError):
        fresh.unlink()
    copy_file(disk, stored.path, fresh, start, reader.trusted, before=line)
    size = len(line) + reader.trusted - start
    if reader.damage is not None and reader.damage.torn:
        size = mend_torn(disk, fresh, size, reader.unsealed)
    else:
        set_aside(disk, stored.path, reader.trusted)
    fresh.replace(stored.path)
    disk.sync_directory(stored.path.parent)
    return header, size
