"""The store of session logs in files, in one home directory.

`naming.py` describes their paths, `block.py` their content, and `history_file.py` how they are written.
"""

import asyncio
import errno
import logging
import os
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from dragoman.cancellation import finish_in_thread
from dragoman.errors import (
    DragomanError,
    LogError,
    LogFileError,
    SessionBusyError,
    SessionNotFoundError,
    SessionUnreadableError,
)
from dragoman.store.block import Block, Draft, Header, Rename, encode_header, now_ms
from dragoman.store.block_log import BlockReader, ForkedLines, LogHead, LogPosition, read_head, write_blocks, write_fork
from dragoman.store.disk import CREATE, READ, Disk, failing, make_directories, sync_named, write_all
from dragoman.store.history import History, HistoryState, ListedFacts
from dragoman.store.history_file import HistoryFile, delete_asides
from dragoman.store.index import Index
from dragoman.store.lock import Lock, acquire
from dragoman.store.log_summary import LogSummary, read_summary
from dragoman.store.naming import (
    find_log,
    is_session_id,
    list_unfinished,
    lock_path,
    log_path,
    normalise,
    projects_path,
    session_id_of,
)
from dragoman.store.store import (
    PAGE_SESSIONS,
    UNPROMPTED_KEPT_S,
    ArchiveFilter,
    Page,
    Summary,
    decode_cursor,
    encode_cursor,
    summarise,
)

_Result = TypeVar("_Result")

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM, *_NO_ROOM)
"""Errors when locking a free session. It can still be read, and on a full disk it can be deleted."""

_SWEEP_INTERVAL_S = 24 * 3600.0
"""The time between two searches for sessions that were never prompted. The first use of the index starts one."""

_REFRESH_DELAY_S = 0.1
"""The delay before a lost index is rebuilt, so that the list that was made without it is sent first."""

_MAX_SWEPT = 200
"""The most sessions that are deleted at a time, which takes about 20 ms in the thread of the index."""

_log = logging.getLogger("dragoman.store")


class FileStore:
    """Session logs in files. See `Store`."""

    def __init__(self, home: Path, *, disk: Disk | None = None, unprompted_kept_s: float = UNPROMPTED_KEPT_S) -> None:
        self._home = home
        self._disk = disk or Disk()
        self._unprompted_kept_s = unprompted_kept_s
        self._index = Index(self._disk, home)
        self._index_thread: Executor | None = None
        self._next_sweep: float | None = None
        self._refreshing: asyncio.TimerHandle | None = None
        self._live: dict[str, History] = {}

    async def now(self) -> datetime:
        return datetime.now(UTC)

    async def create(self, header: Header, settings: bytes | None = None) -> History:
        path = log_path(self._home, header.cwd, header.id)
        return self._hold(await finish_in_thread(lambda: self._create(path, header, settings), undo=_uncreate))

    async def open(self, session_id: str) -> History:
        return self._hold(await finish_in_thread(lambda: self._open(session_id), undo=_abandon))

    async def find(self, session_id: str) -> Header | None:
        found = await asyncio.to_thread(self._find, session_id)
        return found and found[1].header

    async def page(
        self, cwd: str | None = None, cursor: str | None = None, *, archived: ArchiveFilter = "exclude"
    ) -> Page:
        place = None if cwd is None else normalise(cwd)
        after = None if cursor is None else decode_cursor(cursor, place, archived)
        with failing(projects_path(self._home), "list"):
            found = await self._in_index(lambda: self._index.page(place, after, PAGE_SESSIONS + 1, archived))
        shown, more = found[:PAGE_SESSIONS], found[PAGE_SESSIONS:]
        last = shown[-1] if more else None
        next_cursor = last and encode_cursor(last.updated_ms, last.header.id, place, archived)
        return Page([_summarise(entry) for entry in shown], next_cursor)

    async def fork(self, session_id: str, header: Header, rename: Rename, before: int | None = None) -> None:
        target = log_path(self._home, header.cwd, header.id)
        end: int | None = None
        live = self._live.get(session_id)
        if live is not None:
            end = _cut(live)

        def write(reader: BlockReader, fresh: Path) -> None:
            write_fork(self._disk, reader, ForkedLines(rename, before), header, fresh)

        await finish_in_thread(lambda: self._fork(session_id, target, end, write))

    async def put(self, header: Header, blocks: AsyncIterator[list[Block]], listed: Summary | None) -> bool:
        """Add a session of another store, completely or not at all. Return whether its id was free."""
        target = log_path(self._home, header.cwd, header.id)
        if await asyncio.to_thread(self._find_log, header.id) is not None:
            return False
        fresh = target.with_suffix(".jsonl.new")
        with failing(target, "create"):
            await asyncio.to_thread(make_directories, self._disk, target.parent)
            await write_blocks(self._disk, header, blocks, fresh)
            fresh.rename(target)
            self._disk.sync_directory(target.parent)
        if listed is not None:
            updated_ms = int(datetime.fromisoformat(listed.updated_at).timestamp() * 1000)
            entry = LogSummary(
                target.parent.name, header, listed.title, updated_ms, listed.message_count, listed.is_archived
            )
            await self._in_index(lambda: self._index.put(entry))
        return True

    async def delete(self, session_id: str) -> bool:
        existed = await finish_in_thread(lambda: self._delete(session_id))
        await self._in_index(lambda: self._index.remove(session_id))
        return existed

    async def measure(self, session_id: str) -> int:
        """Return the size of a session's log in bytes, or 0 if it does not exist."""
        path = await asyncio.to_thread(self._find_log, session_id)
        with suppress(FileNotFoundError):
            return path.stat().st_size if path else 0
        return 0

    async def close(self) -> None:
        closed = await asyncio.gather(*(log.close() for log in list(self._live.values())), return_exceptions=True)
        if self._refreshing is not None:
            self._refreshing.cancel()
        thread, self._index_thread = self._index_thread, None
        if thread is not None:
            await asyncio.get_running_loop().run_in_executor(thread, self._index.close)
            thread.shutdown(wait=False)
        for failure in closed:
            if failure is not None:
                raise failure

    def _hold(self, log: History) -> History:
        self._live[log.header.id] = log
        return log

    def _create(self, path: Path, header: Header, settings: bytes | None) -> History:
        now = now_ms()
        first, checksum = encode_header(header, now)
        head = LogHead(header, LogPosition(len(first), 0, checksum))
        draft = Draft()
        if settings is not None:
            draft.add_record("config", settings)
            block, checksum = draft.seal(1, now, checksum)
            first += block
        with failing(path, "create"):
            lock = self._lock(header.id)
            try:
                self._write_into(path.parent, lambda: self._write_new(path, first))
            except BaseException:
                lock.release()
                raise
        return self._log(path, head, lock, written=LogPosition(len(first), len(draft), checksum))

    def _write_into(self, directory: Path, write: Callable[[], None]) -> None:
        """Create the directory of a project and call `write`, which creates a file in it."""
        make_directories(self._disk, directory)
        try:
            write()
        except FileNotFoundError:  # another process has just deleted its last session and the directory
            make_directories(self._disk, directory)
            write()

    def _write_new(self, path: Path, data: bytes) -> None:
        fd = self._disk.open(path, CREATE)
        try:
            write_all(self._disk, fd, data)
            sync_named(self._disk, fd, path.parent)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(fd)

    def _open(self, session_id: str) -> History:
        path, head = self._find_known(session_id)
        with failing(lock_path(self._home, session_id), "lock"):
            try:
                lock = self._lock(session_id)
            except OSError as error:
                if error.errno not in _READ_ONLY:
                    raise
                failure = LogFileError(str(path), error.errno, "write to")
                return self._log(path, head, None, failure=failure)
        try:
            # Read it again, because another process could change or delete it before it was locked.
            path, head = self._find_known(session_id)
        except BaseException:
            lock.release()
            raise
        return self._log(path, head, lock)

    def _log(
        self,
        path: Path,
        head: LogHead,
        lock: Lock | None,
        *,
        written: LogPosition | None = None,
        failure: LogError | None = None,
    ) -> History:
        file = HistoryFile(
            self._disk,
            path,
            head.start,
            end=written,
            lock=lock,
            on_list=partial(self._add_to_index, path.parent.name, head.header),
            on_close=self._forget,
        )
        state = HistoryState.UNREAD if written is None else HistoryState.OPEN
        return History(head.header, file, state=state, end=0 if written is None else written.last, failure=failure)

    def _forget(self, log: History) -> None:
        if self._live.get(log.header.id) is log:
            del self._live[log.header.id]

    def _lock(self, session_id: str, *, patient: bool = True) -> Lock:
        path = lock_path(self._home, session_id)
        make_directories(self._disk, path.parent)
        return acquire(path, session_id, patient=patient)

    def _lock_to_delete(self, session_id: str) -> Lock | None:
        """Acquire the lock of a session, or return None if the disk is too full for a lock file.

        In that case no other process can hold the lock.
        """
        try:
            return self._lock(session_id)
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            return None

    def _find_known(self, session_id: str) -> tuple[Path, LogHead]:
        found = self._find(session_id)
        if found is None:
            raise SessionNotFoundError(session_id)
        return found

    def _find(self, session_id: str) -> tuple[Path, LogHead] | None:
        path = self._find_log(session_id)
        head = path and self._read_head(path, session_id)
        return (path, head) if path and head else None

    def _find_log(self, session_id: str) -> Path | None:
        with failing(projects_path(self._home), "search"):
            return find_log(self._home, session_id) if is_session_id(session_id) else None

    def _read_head(self, path: Path, session_id: str) -> LogHead | None:
        with failing(path, "read"):
            try:
                fd = self._disk.open(path, READ)
            except FileNotFoundError:
                return None
            try:
                head = read_head(fd, path)
            finally:
                os.close(fd)
        if head is not None and head.header.id != session_id:
            raise SessionUnreadableError(str(path), f"its header belongs to session {head.header.id}")
        return head

    def _fork(self, session_id: str, target: Path, end: int | None, write: Callable[[BlockReader, Path], None]) -> None:
        source, head = self._find_known(session_id)
        fresh = target.with_suffix(".jsonl.new")
        with failing(target, "create"):
            if target.exists():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
            reader = BlockReader(self._disk, source, head.start, end)
            try:
                self._write_into(target.parent, lambda: write(reader, fresh))
            finally:
                reader.close()
            fresh.rename(target)
            self._disk.sync_directory(target.parent)

    def _delete(self, session_id: str) -> bool:
        path = self._find_log(session_id)
        if path is None:
            return False
        with failing(path, "delete"):
            lock = self._lock_to_delete(session_id)
            try:
                delete_asides(path)
                path.unlink(missing_ok=True)
                with suppress(FileNotFoundError):  # another process has just deleted the directory
                    self._disk.sync_directory(path.parent)
                with suppress(OSError):  # the project has other sessions
                    path.parent.rmdir()
            finally:
                if lock is not None:
                    lock.release()
        return True

    def _sweep(self) -> None:
        """Delete sessions that were unprompted for too long, and files that never became a log.

        It runs in the thread of the index.
        """
        before_ms = now_ms() - int(1000 * self._unprompted_kept_s)
        try:
            for session_id in self._index.find_unprompted(before_ms, _MAX_SWEPT):
                if self._delete_unprompted(session_id):
                    self._index.remove(session_id)
            for path in [*self._index.find_unusable(), *list_unfinished(self._home)]:
                self._delete_unbegun(path, before_ms)
        except (OSError, DragomanError) as error:
            _log.info("old sessions could not be deleted: %s", error)

    def _delete_unprompted(self, session_id: str) -> bool:
        """Delete a session if it is still unprompted and no process holds it. Return whether it is gone."""
        path = self._find_log(session_id)
        if path is None:
            return True
        try:
            lock = self._lock(session_id, patient=False)
        except SessionBusyError:
            return False
        try:
            entry = read_summary(self._disk, self._home, path.parent.name, session_id)
            if entry is None or entry.unprompted_bytes is None:
                return False
            path.unlink(missing_ok=True)
        finally:
            lock.release()
        return True

    def _delete_unbegun(self, path: Path, before_ms: int) -> None:
        """Delete a file if its process died before writing the header, or before renaming it to a log."""
        if path.lstat().st_mtime_ns // 1_000_000 >= before_ms:
            return
        if session_id_of(path.name) is not None:
            fd = self._disk.open(path, READ)
            try:
                if read_head(fd, path) is not None:
                    return
            except SessionUnreadableError:
                return  # the header is damaged or of a later version, so this may be a session
            finally:
                os.close(fd)
        path.unlink(missing_ok=True)

    async def _add_to_index(self, project: str, header: Header, facts: ListedFacts, updated_ms: int) -> None:
        entry = LogSummary(project, header, facts.title, updated_ms, facts.message_count, facts.is_archived)
        await self._in_index(lambda: self._index.put(entry))

    async def _in_index(self, work: Callable[[], _Result]) -> _Result:
        """Run `work` in the thread of the index, and return its result."""
        if self._index_thread is None:
            from concurrent.futures import ThreadPoolExecutor

            self._index_thread = ThreadPoolExecutor(1, thread_name_prefix="session-index")
        loop, thread = asyncio.get_running_loop(), self._index_thread
        result = await loop.run_in_executor(thread, work)
        if self._index.is_behind:
            if self._refreshing is None:
                self._refreshing = loop.call_later(_REFRESH_DELAY_S, self._refresh)
        else:
            self._sweep_if_due()
        return result

    def _refresh(self) -> None:
        """Rebuild the index after the list that was made without it."""
        self._refreshing = None
        if self._index_thread is not None:
            self._index_thread.submit(self._index.refresh)
            self._sweep_if_due()

    def _sweep_if_due(self) -> None:
        now = time.monotonic()
        if self._index_thread is not None and (self._next_sweep is None or now >= self._next_sweep):
            self._next_sweep = now + _SWEEP_INTERVAL_S
            self._index_thread.submit(self._sweep)


def _file_of(log: History) -> HistoryFile:
    if not isinstance(log.backend, HistoryFile):
        raise TypeError(f"{log.place} is not a file")
    return log.backend


def _abandon(log: History) -> None:
    _file_of(log).abandon()


def _uncreate(log: History) -> None:
    with suppress(OSError):
        _file_of(log).path.unlink()
    _abandon(log)


def _cut(log: History) -> int | None:
    """Write and seal the added lines, unless the log has failed. Return the size of its file, or None if unknown."""
    if log.failure is None:
        log.flush()
        log.backend.cut()
    return None if log.state is HistoryState.UNREAD else _file_of(log).size


def _summarise(entry: LogSummary) -> Summary:
    return summarise(entry.header, entry.title, entry.message_count, entry.updated_ms, is_archived=entry.is_archived)
