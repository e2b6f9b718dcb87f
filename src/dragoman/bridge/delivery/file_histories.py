"""The histories of one agent on the disk: `<home>/bridge/<agent>/<hash of the session id>.jsonl`.

Session ids come from the agent and may be any string, so the header of each history has the id.
"""

import asyncio
import hashlib
import os
import re
from collections.abc import AsyncGenerator
from contextlib import suppress
from functools import cache
from pathlib import Path

from dragoman.bridge.delivery.earlier_run import EarlierRun, read_earlier
from dragoman.bridge.delivery.history_index import HistoryIndex
from dragoman.bridge.delivery.history_store import copy_messages
from dragoman.bridge.delivery.message_index import IndexedFile, MessageIndex
from dragoman.bridge.delivery.stored_histories import GroupOf, StoredHistories, StoredHistory, one_group
from dragoman.bridge.translation import Version
from dragoman.errors import SessionUnreadableError
from dragoman.store import UNPROMPTED_KEPT_S
from dragoman.store.block import Header, now_ms
from dragoman.store.block_log import BlockReader, LogHead, read_head
from dragoman.store.disk import READ, Disk, make_directories
from dragoman.store.history import AfterFailure, History, HistoryState, make_header
from dragoman.store.history_file import FileOptions, HistoryFile, delete_beside
from dragoman.store.log_end import read_log_end
from dragoman.store.runs import MessageRun, TailBudget

OPTIONS = FileOptions(seal_ms=0, waits_for_space=True, renews_header=True)

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

_HASH_CHARACTERS = 40

_MAX_UNPROMPTED_BYTES = 1 << 20
"""Limit above which a history must have a conversation. Settings and commands need only some kilobytes."""


class FileHistoryStore:
    """Creates histories in files, and finds the histories of earlier runs. See `HistoryStore`."""

    def __init__(self, disk: Disk, directory: Path, budget: TailBudget) -> None:
        self.stored = StoredHistories()
        """Histories that are not open, by session."""
        self.is_shared = False
        self.group_of: GroupOf = one_group
        self._index = HistoryIndex(MessageIndex(disk, directory / "search.db"), self._find_indexed)
        self.index: HistoryIndex | None = self._index
        self._disk = disk
        self._directory = directory
        self._budget = budget

    def can_keep(self, session_id: str) -> bool:
        del session_id
        return True

    async def scan(self) -> None:
        """List the histories of earlier runs. Raises OSError if the directory cannot be created."""
        self.stored = StoredHistories(await asyncio.to_thread(self._scan), self.group_of)

    def create(self, session_id: str, cwd: str, directories: list[str]) -> History:
        path = self.path_of(session_id).with_suffix(".new")
        header = make_header(session_id, cwd, directories)
        file = HistoryFile.begin(self._disk, path, header, OPTIONS)
        history = self._history(header, file, HistoryState.OPEN)
        file.create()
        return history

    def settle(self, history: History) -> None:
        self.stored.pop(history.header.id, None)
        _file_of(history).move(self.path_of(history.header.id))

    async def reopen(self, session_id: str) -> tuple[History, EarlierRun] | None:
        stored = self.stored.get(session_id)
        if stored is None:
            return None
        path = self.path_of(session_id)
        head = await asyncio.to_thread(read_head_of, self._disk, path)
        file = HistoryFile(self._disk, path, head.start, options=OPTIONS)
        history = self._history(head.header, file, HistoryState.UNREAD)
        earlier = await read_earlier(history)
        history.updated_ms = stored.updated_ms
        self.stored.pop(session_id, None)
        return history, earlier

    async def claim(self, history: History) -> None:
        del history

    def follow(self, history: History, other: History) -> None:
        del history, other

    def put_away(self, history: History, stored: StoredHistory) -> None:
        history.drop()
        self.stored[stored.id] = stored
        self._index.changed(stored.id)

    async def copy_for(self, history: History, session_id: str) -> list[tuple[Version, bytes]]:
        return await copy_messages(history, session_id)

    async def read_stored(self, session_id: str) -> AsyncGenerator[list[MessageRun]]:
        if session_id not in self.stored:
            return
        path = self.path_of(session_id)
        head = await asyncio.to_thread(read_head_of, self._disk, path)
        reader = await asyncio.to_thread(BlockReader, self._disk, path, head.start)
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
        if self.stored.pop(session_id, None) is not None:
            delete_beside(self.path_of(session_id))
        self._index.removed(session_id)

    def path_of(self, session_id: str) -> Path:
        """Return the path of a session's history."""
        return self._directory / journal_name(session_id)

    def _find_indexed(self, session_id: str) -> IndexedFile | None:
        return IndexedFile(session_id, str(self.path_of(session_id))) if session_id in self.stored else None

    def _history(self, header: Header, file: HistoryFile, state: HistoryState) -> History:
        after = AfterFailure.SHOW
        return History(header, file, state=state, run=boot_id(), budget=self._budget, after_failure=after)

    def _scan(self) -> list[StoredHistory]:
        make_directories(self._disk, self._directory)
        found: list[StoredHistory] = []
        oldest_ms = now_ms() - int(1000 * UNPROMPTED_KEPT_S)
        for path in self._directory.glob("*.jsonl"):
            with suppress(OSError, SessionUnreadableError):
                stored = _look_at(self._disk, path)
                if stored is None or self.path_of(stored.id) != path:
                    continue
                if stored.prompted or stored.updated_ms >= oldest_ms:
                    found.append(stored)
                else:
                    path.unlink()
        for left in self._directory.glob("*.new"):
            with suppress(OSError):
                left.unlink()
        return found


@cache
def boot_id() -> bytes:
    """Return an id of this run of the machine, or empty bytes if the system has none."""
    try:
        return _BOOT_ID.read_bytes()
    except OSError:
        return b""


def journal_name(session_id: str) -> str:
    """Return the name of the file of a session's history."""
    return hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARACTERS] + ".jsonl"


def find_stored(directory: Path) -> list[StoredHistory]:
    """Return the histories of a directory. Change nothing there, because a bridge may use it."""
    found: list[StoredHistory] = []
    disk = Disk()
    for path in directory.glob("*.jsonl"):
        with suppress(OSError, SessionUnreadableError):
            stored = _look_at(disk, path)
            if stored is not None and journal_name(stored.id) == path.name:
                found.append(stored)
    return found


def _file_of(history: History) -> HistoryFile:
    if not isinstance(history.backend, HistoryFile):
        raise TypeError(f"{history.place} is not a file")
    return history.backend


# The rest is for threads.


def read_head_of(disk: Disk, path: Path) -> LogHead:
    """Read the header of a history. Raises SessionUnreadableError, OSError."""
    fd = disk.open(path, READ)
    try:
        head = read_head(fd, path)
    finally:
        os.close(fd)
    if head is None:
        raise SessionUnreadableError(str(path), "it has no header")
    return head


def _look_at(disk: Disk, path: Path) -> StoredHistory | None:
    """Read the header and the end of a history, or None for another file. Raises SessionUnreadableError, OSError."""
    fd = disk.open(path, READ)
    try:
        head = read_head(fd, path)
        if head is None:
            return None
        status = os.fstat(fd)
        end = read_log_end(fd, head.start.offset, status.st_size)
        prompted = end.prompted or _has_conversation(fd, status.st_size)
        updated_ms = end.conversation_time or end.time or int(status.st_mtime * 1000)
        header = head.header
        return StoredHistory(id=header.id, cwd=header.cwd, title=end.title, updated_ms=updated_ms, prompted=prompted)
    finally:
        os.close(fd)


def _has_conversation(fd: int, size: int) -> bool:
    """Return whether a history without a turn record has messages that an agent replayed."""
    return size > _MAX_UNPROMPTED_BYTES or re.search(rb'_message(_chunk)?"', os.pread(fd, size, 0)) is not None
