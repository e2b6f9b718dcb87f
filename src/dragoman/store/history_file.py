"""The file of one history: appending, reading from any line, syncing and repairing.

An idle history holds no open file, only its lock. The first write after opening or syncing opens the file, and the next
sync closes it.

Each write consists of whole lines. A block is the lines of several writes. If a model streams slowly, each update is a
separate write. A seal after each of them would make the log larger by half, and its replay much slower. So a block is
sealed when it is large, when it is `seal_ms` old and lines are added, at each sync, and before the history is read. The
process may die before that. Then the file ends with whole lines without a seal. The next process to open the file keeps
and seals them, as after a write that was cut short.
"""

import asyncio
import errno
import os
from bisect import bisect_right
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from zlib import crc32

import msgspec

from dragoman.cancellation import finish_in_thread
from dragoman.errors import LogError, LogFileError
from dragoman.store.block import Block, Draft, Header, encode_header, now_ms, seal_line
from dragoman.store.block_log import BlockReader, Damage, LogPosition, SealedWriter, mend_torn, write_sound
from dragoman.store.disk import APPEND, Disk
from dragoman.store.history import History, ListedFacts, ReadEnd, renew_header
from dragoman.store.lock import Lock
from dragoman.store.log_end import LogEnd
from dragoman.store.naming import has_aside, link_damaged

SEALED_BYTES = 64 * 1024
"""The size at which a block is sealed. A seal is a few hundred times smaller."""

SEALED_MS = 1000
"""The age at which the next lines end a block. So the time in a seal is that of all its lines, within a second."""

MAX_UNWRITTEN_BYTES = 64 * 1024 * 1024
"""The most bytes that wait in memory for space on the disk: the rest of a long turn. Until then no new turn starts."""

INDEX_BYTES = 256 * 1024
"""The distance between two positions of a file that are kept in memory."""

_FULL = (errno.ENOSPC, errno.EDQUOT)


class FileOptions(msgspec.Struct, frozen=True):
    """The differences between the session log of an agent and the history of a bridge."""

    seal_ms: int = SEALED_MS
    """The age at which a block is sealed. With 0 each write is a block, and has the time to the millisecond."""
    waits_for_space: bool = False
    """Whether lines wait in memory while the disk is full. Otherwise the history fails."""
    renews_header: bool = False
    """Whether a repaired file gets a new header, because cursors may point to lost lines."""


class _OpenBlock:
    """The lines since the last seal."""

    def __init__(self, checksum: int) -> None:
        self.size = 0
        self.count = 0
        self.places: list[tuple[int, int]] = []
        self.checksum = checksum
        self.begun_ms = 0

    def add(self, draft: Draft, lines: bytes, time_ms: int) -> None:
        if not self.count:
            self.begun_ms = time_ms
        self.places += [(self.size + offset, length) for offset, length in draft.places]
        self.checksum = crc32(lines, self.checksum)
        self.size += len(lines)
        self.count += len(draft)


class _FoundEnd(msgspec.Struct):
    """The end of a file, which was found by reading it."""

    position: LogPosition
    unsealed: Block | None
    damage: Damage | None
    facts: LogEnd


class HistoryFile:
    """The file of one history. See `HistoryBackend`."""

    history: History

    def __init__(
        self,
        disk: Disk,
        path: Path,
        start: LogPosition,
        *,
        end: LogPosition | None = None,
        lock: Lock | None = None,
        options: FileOptions | None = None,
        on_list: Callable[[ListedFacts, int], Awaitable[None]] | None = None,
        on_close: Callable[[History], None] | None = None,
    ) -> None:
        """Create the backend. `start` is the place after the header.

        `end` is the end of a new file. Without it the file must be read first.
        """
        self.written_ms = now_ms()
        """The time of the last write."""
        self.start = start
        """The place after the header."""
        self._disk = disk
        self._options = options or FileOptions()
        self._lock = lock
        self._on_list = on_list
        self._on_close = on_close
        self._is_read = end is not None
        self._end = end or start
        """The end of the last sealed block, written or waiting."""
        self._writer = SealedWriter(disk, path, size=self._end.offset)
        self._block = _OpenBlock(self._end.checksum)
        self._positions = [start]
        self._reached = start
        """The end of the last read."""
        self._found: _FoundEnd | None = None
        self._unwritten: list[bytes] = []
        """Pieces of the file that wait to be written."""
        self._unwritten_bytes = 0
        self._next_path: Path | None = None
        self._unsynced = False
        self._is_named = lock is not None
        """Whether its name in the directory survives a power cut."""
        self._listed: tuple[str | None, int, bool, int] | None = None

    @classmethod
    def begin(cls, disk: Disk, path: Path, header: Header, options: FileOptions) -> "HistoryFile":
        """Return the file of a new history. The first write creates it."""
        block, checksum = encode_header(header, now_ms())
        start = LogPosition(len(block), 0, checksum)
        file = cls(disk, path, start, end=start, options=options)
        file._writer.size = 0
        file._put(block)
        return file

    @property
    def place(self) -> str:
        return str(self.path)

    @property
    def path(self) -> Path:
        return self._writer.path

    @property
    def size(self) -> int:
        """The number of bytes that are written."""
        return self._writer.size

    @property
    def is_idle(self) -> bool:
        return True

    def now_ms(self) -> int:
        return now_ms()

    def write(self, drafts: list[Draft], time_ms: int) -> None:
        for draft in drafts:
            self._put(self._add(draft, time_ms))
        if drafts:
            self.written_ms = time_ms
        if self._unwritten:
            self._write_out("write to")
            self.history.show(drafts, time_ms)

    def cut(self) -> None:
        if self._block.count:
            self._put(self._seal(now_ms()))
            self._write_out("write to")

    async def read(self, after: int) -> list[Block]:
        try:
            return await asyncio.to_thread(self._read, after)
        except FileNotFoundError:  # the file may just have been renamed, so try its new path
            return await asyncio.to_thread(self._read, after)

    async def finish_reading(self) -> ReadEnd:
        return await finish_in_thread(self._finish_reading)

    def begin_sync(self) -> Callable[[], None] | None:
        fd = self._writer.detach()
        if self._unsynced:
            self._unsynced = False
            return lambda: self._sync(fd)
        if fd >= 0:
            os.close(fd)
        return None

    async def list_facts(self, facts: ListedFacts) -> None:
        listed = facts.title, facts.message_count, facts.is_archived, self.written_ms
        if facts.is_prompted and listed != self._listed and self._on_list is not None:
            await self._on_list(facts, self.written_ms)
            self._listed = listed

    def rest(self) -> None:
        self._writer.close()

    def forget(self) -> None:
        self._unwritten.clear()
        self._unwritten_bytes = 0
        self.rest()

    async def close(self) -> None:
        try:
            if self._lock is not None:  # removing the lock file can take as long as a sync
                await finish_in_thread(self._lock.release)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close the file immediately, without writing the rest."""
        self.forget()
        if self._lock is not None:
            self._lock.release()
        if self._on_close is not None:
            self._on_close(self.history)

    def delete(self) -> None:
        delete_beside(self.path)

    def create(self) -> None:
        """Write the header of a new file. If that fails, the history waits for space or fails."""
        self._write_out("create")
        self.rest()

    def move(self, path: Path) -> None:
        """Rename the file, and replace an existing file with that name.

        If lines wait for space, this is done after they are written. Until then the existing file is kept, because it
        is worth more than an empty one.
        """
        if self._unwritten:
            self._next_path = path
            return
        if not self.history.is_lost:
            try:
                self.path.replace(path)
            except OSError as error:
                self.history.fail(self._failure(error, "rename"))
        self._writer.path = path

    def _add(self, draft: Draft, time_ms: int) -> bytes:
        """Add lines to the block. Return the bytes that they add to the file."""
        block, lines = self._block, draft.lines
        block.add(draft, lines, time_ms)
        if block.size < SEALED_BYTES and time_ms - block.begun_ms < self._options.seal_ms:
            return lines
        return lines + self._seal(time_ms)

    def _seal(self, time_ms: int) -> bytes:
        """End the block. Return its seal."""
        block, end = self._block, self._end
        if end.offset - self._positions[-1].offset >= INDEX_BYTES:
            self._positions.append(end)
        last = end.last + block.count
        line, checksum = seal_line(end.last + 1, last, time_ms, block.places, block.checksum)
        self._end = LogPosition(end.offset + block.size + len(line), last, checksum)
        self._block = _OpenBlock(checksum)
        return line

    def _put(self, data: bytes) -> None:
        self._unwritten.append(data)
        self._unwritten_bytes += len(data)

    def _write_out(self, action: str) -> None:
        """Write all waiting bytes. Raises LogError if lines are refused after a failure."""
        try:
            if self._unwritten and not self.size:
                self.path.unlink(missing_ok=True)  # a leftover of an earlier attempt
            self._write_pieces()
            if self._next_path is not None:
                self.path.replace(self._next_path)
                self._writer.path, self._next_path = self._next_path, None
        except OSError as error:
            # Only a full disk is worth waiting for, and only up to the limit of memory.
            failure = self._failure(error, action)
            is_full = error.errno in _FULL and self._unwritten_bytes <= MAX_UNWRITTEN_BYTES
            if not self._options.waits_for_space or not is_full:
                self.history.fail(failure)
                self.history.raise_failure()
                return
            self.rest()
            self.history.wait(failure)
        else:
            if self.history.is_waiting:
                self.history.written()

    def _write_pieces(self) -> None:
        written = 0
        try:
            for piece in self._unwritten:
                self._writer.write(piece)
                self._unwritten_bytes -= len(piece)
                self._unsynced = True
                written += 1
        finally:
            del self._unwritten[:written]

    def _failure(self, error: OSError, action: str) -> LogError:
        return LogFileError(str(self.path), error.errno or errno.EIO, action)

    # The methods below run in threads.

    def _read(self, after: int) -> list[Block]:
        """Return the next blocks after a line. Raises OSError."""
        start = self._positions[bisect_right(self._positions, after, key=lambda position: position.last) - 1]
        # Continue at the end of the last read if it is nearer than the last remembered position. Several threads read.
        reached = self._reached
        if start.last <= reached.last <= after:
            start = reached
        reader = BlockReader(self._disk, self.path, start, self.size if self._is_read else None)
        try:
            blocks = reader.read()
            while blocks and blocks[-1].last <= after:
                blocks = reader.read()
            if not blocks:
                facts = reader.read_end(self.start.offset) if not self._is_read else LogEnd()
                self._found = _FoundEnd(reader.position, reader.unsealed, reader.damage, facts)
            elif not self._is_read and reader.position.offset - self._positions[-1].offset >= INDEX_BYTES:
                self._positions.append(reader.position)
            self._reached = reader.position
        finally:
            reader.close()
        return [block for block in blocks if block.last > after]

    def _finish_reading(self) -> ReadEnd:
        """Set the end of the file to the end that was found, and repair it. Return it."""
        found, history = self._found, self.history
        if found is None:
            raise RuntimeError("a file is read to its end first")
        damage = found.damage
        if self._is_read:
            return ReadEnd(self._end.last, damage=damage)
        self._is_read = True
        self._end = found.position
        self._writer.size = self._end.offset + (0 if found.unsealed is None else found.unsealed.end)
        last = self._end.last if found.unsealed is None else found.unsealed.last
        if history.failure is None and (damage is not None or found.unsealed is not None):
            try:
                damage = self._mend(found)
            except OSError as error:
                history.record_failure(self._failure(error, "mend"))  # the lines can still be read
        self._block = _OpenBlock(self._end.checksum)
        end = found.facts
        self.written_ms = end.time or self.written_ms
        is_prompted = end.prompted or has_aside(self.path)
        facts = ListedFacts(end.title, end.message_count, is_prompted=is_prompted, is_archived=end.is_archived)
        return ReadEnd(last, facts, damage)

    def _mend(self, found: _FoundEnd) -> Damage | None:
        """Seal the whole lines at the end, or copy the sound part to a new file. Return the damage."""
        damage = found.damage
        if not self._options.renews_header and (damage is None or damage.torn):
            self._end = mend_torn(self._disk, self.path, self._end, found.unsealed)
            self._writer.size = self._end.offset
            return damage
        fresh, history = self.path.with_suffix(".jsonl.new"), self.history
        with suppress(FileNotFoundError):
            fresh.unlink()
        header = renew_header(history.header) if self._options.renews_header else history.header
        reader = BlockReader(self._disk, self.path, self.start)
        try:
            start, end = write_sound(self._disk, reader, header, fresh)
        finally:
            reader.close()
        if damage is not None and not damage.torn:
            damage = msgspec.structs.replace(damage, kept_as=str(link_damaged(self.path)))
        fresh.replace(self.path)
        self._disk.sync_directory(self.path.parent)
        history.renew(header)
        self.start = self._reached = start
        self._end, self._positions = end, [start]
        self._writer.size = end.offset
        return damage

    def _sync(self, fd: int) -> None:
        """Sync and close the file. The thread itself stores a failure, because the caller may be gone by then."""
        try:
            if fd < 0:
                with suppress(FileNotFoundError):  # it was just deleted, and the next write reports that
                    fd = self._disk.open(self.path, APPEND)
            if fd < 0:
                return
            try:
                self._disk.sync(fd)
                if os.fstat(fd).st_nlink == 0:
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            finally:
                os.close(fd)
            if not self._is_named:
                self._disk.sync_directory(self.path.parent)
                self._is_named = True
        except OSError as error:
            self.history.record_failure(self._failure(error, "sync"))


def delete_files(path: Path) -> None:
    """Delete the file of a history and the copies of its damaged originals."""
    with suppress(OSError):
        path.unlink()
    delete_asides(path)


def delete_beside(path: Path) -> None:
    """Delete the file of a history now, and the copies of its damaged originals in a thread."""
    with suppress(OSError):
        path.unlink()
    asyncio.get_running_loop().run_in_executor(None, delete_asides, path)


def delete_asides(path: Path) -> None:
    """Delete the copies of the damaged originals of a file."""
    for each in path.parent.glob(f"{path.stem}.damaged-*.jsonl"):
        with suppress(OSError):
            each.unlink()
