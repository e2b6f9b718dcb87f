"""Session logs in files, under one home directory. `naming` has their paths, `block` their content."""

import asyncio
import errno
import logging
import os
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from dragoman.cancellation import finish_in_thread
from dragoman.errors import DragomanError, LogFailed, LogFileFailed, SessionBusy, SessionUnknown, SessionUnreadable
from dragoman.store.block import VERSION, Block, Draft, Header, Rename, encode_header, now_ms
from dragoman.store.block_log import ForkedLines, LogHead, LogPosition, LogReader, read_head, write_blocks, write_fork
from dragoman.store.disk import CREATE, READ, Disk, failing, make_directories, sync_named, write_all
from dragoman.store.file_log import FileLog, open_reader
from dragoman.store.index import Index
from dragoman.store.lock import Lock, acquire
from dragoman.store.log_summary import LogSummary, read_summary
from dragoman.store.naming import (
    find_log,
    is_session_id,
    list_unfinished,
    list_version1,
    lock_path,
    log_path,
    normalise,
    projects_path,
    session_id_of,
    version1_path,
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
"""Errors of taking a free lock: then a session can still be read, and on a full disk deleted."""

_SWEEP_INTERVAL_S = 24 * 3600.0
"""Between two looks for sessions that were never prompted; the first is when a process first uses the index."""

_REFRESH_DELAY_S = 0.1
"""Before an index that was lost is made anew, so that the answer that did without it is on its way."""

_MAX_SWEPT = 200
"""Sessions deleted at a time, which takes some 20 ms in the thread of the index; the rest waits for the next time."""

_FILE_CLOCK = getattr(time, "CLOCK_REALTIME_COARSE", time.CLOCK_REALTIME)
"""The clock that a file system takes the times of files from: a finer one would be ahead of it by some milliseconds."""

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
        self._began_ns = time.clock_gettime_ns(_FILE_CLOCK)
        self._live: dict[str, FileLog] = {}

    async def now(self) -> datetime:
        return datetime.now(UTC)

    async def create(self, header: Header, settings: bytes | None = None) -> FileLog:
        path = log_path(self._home, header.cwd, header.id)
        return self._hold(await finish_in_thread(lambda: self._create(path, header, settings), undo=_uncreate))

    async def open(self, session_id: str) -> FileLog:
        return self._hold(await finish_in_thread(lambda: self._open(session_id), undo=FileLog.abandon))

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
            live.seal_if_possible()
            end = live.end_offset

        def write(reader: LogReader, fresh: Path) -> None:
            write_fork(self._disk, reader, ForkedLines(rename, before), header, fresh)

        await finish_in_thread(lambda: self._fork(session_id, target, end, write))

    async def put(self, header: Header, blocks: AsyncIterator[list[Block]], listed: Summary | None) -> bool:
        """Take a session of another store over, all or nothing; tells whether its id was free."""
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
        """Return the size of a session's log in bytes; 0 if it is gone."""
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

    def _hold(self, log: FileLog) -> FileLog:
        self._live[log.header.id] = log
        return log

    def _create(self, path: Path, header: Header, settings: bytes | None) -> FileLog:
        now = now_ms()
        first, checksum = encode_header(header, now)
        head = LogHead(header, VERSION, LogPosition(len(first), 0, checksum))
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
        """Make the directory of a project, and a file in it."""
        make_directories(self._disk, directory)
        try:
            write()
        except FileNotFoundError:  # its last session was deleted meanwhile, and the directory with it
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

    def _open(self, session_id: str) -> FileLog:
        path, head = self._find_known(session_id)
        with failing(lock_path(self._home, session_id), "lock"):
            try:
                lock = self._lock(session_id)
            except OSError as error:
                if error.errno not in _READ_ONLY:
                    raise
                failure = LogFileFailed(str(path), error.errno, "write to")
                return self._log(path, head, None, failure=failure)
        try:
            # Looked at again: until it was locked, another process could change or delete it.
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
        failure: LogFailed | None = None,
    ) -> FileLog:
        return FileLog(
            self._disk,
            path,
            head,
            lock,
            written=written,
            failure=failure,
            on_sync=self._note,
            on_close=self._forget,
        )

    def _forget(self, log: FileLog) -> None:
        if self._live.get(log.header.id) is log:
            del self._live[log.header.id]

    def _lock(self, session_id: str, *, patient: bool = True) -> Lock:
        path = lock_path(self._home, session_id)
        make_directories(self._disk, path.parent)
        return acquire(path, session_id, patient=patient)

    def _lock_to_delete(self, session_id: str) -> Lock | None:
        """Take the lock; None on a disk so full that no lock file can be made: then there is none, and no holder."""
        try:
            return self._lock(session_id)
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            return None

    def _find_known(self, session_id: str) -> tuple[Path, LogHead]:
        found = self._find(session_id)
        if found is None:
            raise SessionUnknown(session_id)
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
            raise SessionUnreadable(str(path), f"its header says that it is session {head.header.id}")
        return head

    def _fork(self, session_id: str, target: Path, end: int | None, write: Callable[[LogReader, Path], None]) -> None:
        source, head = self._find_known(session_id)
        fresh = target.with_suffix(".jsonl.new")
        with failing(target, "create"):
            if target.exists():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
            reader = open_reader(self._disk, source, head, end)
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
                for aside in path.parent.glob(f"{path.stem}.damaged-*.jsonl"):
                    aside.unlink(missing_ok=True)
                version1_path(path).unlink(missing_ok=True)
                path.unlink(missing_ok=True)
                with suppress(FileNotFoundError):  # its other last session is deleted too, just now
                    self._disk.sync_directory(path.parent)
                with suppress(OSError):  # of a project that has other sessions
                    path.parent.rmdir()
            finally:
                if lock is not None:
                    lock.release()
        return True

    def _sweep(self) -> None:
        """Delete sessions that were never prompted for too long, and what is left of dead processes.

        That is the originals of logs that an earlier process converted, and files that never became a log.

        It is for the thread of the index.
        """
        before_ms = now_ms() - int(1000 * self._unprompted_kept_s)
        try:
            for session_id in self._index.find_unprompted(before_ms, _MAX_SWEPT):
                if self._delete_unprompted(session_id):
                    self._index.remove(session_id)
            for original in list_version1(self._home):
                if original.lstat().st_ctime_ns < self._began_ns:  # that is when it got its second name
                    original.unlink(missing_ok=True)
            for path in [*self._index.find_unusable(), *list_unfinished(self._home)]:
                self._delete_unbegun(path, before_ms)
        except (OSError, DragomanError) as error:
            _log.info("old sessions and originals could not be deleted: %s", error)

    def _delete_unprompted(self, session_id: str) -> bool:
        """Delete a session unless another process has it, or has prompted it since it was looked at."""
        path = self._find_log(session_id)
        if path is None:
            return True
        try:
            lock = self._lock(session_id, patient=False)
        except SessionBusy:
            return False
        try:
            entry = read_summary(self._disk, self._home, path.parent.name, session_id)
            if entry is None or entry.unprompted_bytes is None:
                return False
            version1_path(path).unlink(missing_ok=True)
            path.unlink(missing_ok=True)
        finally:
            lock.release()
        return True

    def _delete_unbegun(self, path: Path, before_ms: int) -> None:
        """Delete a file whose process died before the header was in it, or before it got the name of a log."""
        if path.lstat().st_mtime_ns // 1_000_000 >= before_ms:
            return
        if session_id_of(path.name) is not None:
            fd = self._disk.open(path, READ)
            try:
                if read_head(fd, path) is not None:
                    return
            except SessionUnreadable:
                return  # a header that is damaged, or of a later version: it may be somebody's session
            finally:
                os.close(fd)
        path.unlink(missing_ok=True)

    async def _note(self, log: FileLog) -> None:
        entry = LogSummary(
            log.path.parent.name, log.header, log.title, log.updated_ms, log.message_count, log.is_archived
        )
        await self._in_index(lambda: self._index.put(entry))

    async def _in_index(self, work: Callable[[], _Result]) -> _Result:
        """Work on the index in the one thread that it belongs to."""
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
        """Make the index anew, behind the answer to a list."""
        self._refreshing = None
        if self._index_thread is not None:
            self._index_thread.submit(self._index.refresh)
            self._sweep_if_due()

    def _sweep_if_due(self) -> None:
        now = time.monotonic()
        if self._index_thread is not None and (self._next_sweep is None or now >= self._next_sweep):
            self._next_sweep = now + _SWEEP_INTERVAL_S
            self._index_thread.submit(self._sweep)


def _uncreate(log: FileLog) -> None:
    with suppress(OSError):
        log.path.unlink()
    log.abandon()


def _summarise(entry: LogSummary) -> Summary:
    return summarise(entry.header, entry.title, entry.message_count, entry.updated_ms, is_archived=entry.is_archived)
