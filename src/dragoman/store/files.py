"""Session logs in files, under one home directory. Where they are is said in `naming`, what is in them in `record`."""

import asyncio
import errno
import os
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from dragoman.errors import SessionUnknown, SessionUnreadable
from dragoman.store.cursor import decode_cursor, encode_cursor
from dragoman.store.disk import CREATE, READ, Disk, failing, make_directories, write_all
from dragoman.store.index import Index
from dragoman.store.lock import Lock, acquire
from dragoman.store.log import FileLog
from dragoman.store.naming import is_session_id, lock_path, log_path, normalise, projects_path
from dragoman.store.project import Entry, find_log
from dragoman.store.reader import read_header
from dragoman.store.record import Header, encode_header
from dragoman.store.repair import copy_file
from dragoman.store.store import PAGE_SESSIONS, Page, Summary
from dragoman.store.thread import finish

_Result = TypeVar("_Result")


class FileStore:
    """Session logs in files. See `Store`."""

    def __init__(self, home: Path, *, disk: Disk | None = None) -> None:
        self._home = home
        self._disk = disk or Disk()
        self._index = Index(self._disk, home)
        self._index_thread: Executor | None = None
        self._live: dict[str, FileLog] = {}

    async def create(self, header: Header) -> FileLog:
        path = log_path(self._home, header.cwd, header.id)
        return self._hold(await finish(lambda: self._create(path, header), undo=_uncreate))

    async def open(self, session_id: str) -> FileLog:
        return self._hold(await finish(lambda: self._open(session_id), undo=FileLog.abandon))

    async def find(self, session_id: str) -> Header | None:
        found = await asyncio.to_thread(self._find, session_id)
        return found and found[1]

    async def page(self, cwd: str | None = None, cursor: str | None = None) -> Page:
        place = None if cwd is None else normalise(cwd)
        after = None if cursor is None else decode_cursor(cursor, place)
        with failing(projects_path(self._home), "list"):
            found = await self._in_index(lambda: self._index.page(place, after, PAGE_SESSIONS + 1))
        shown, more = found[:PAGE_SESSIONS], found[PAGE_SESSIONS:]
        last = shown[-1] if more else None
        next_cursor = last and encode_cursor(last.updated_ms, last.header.id, place)
        return Page([_summarise(entry) for entry in shown], next_cursor)

    async def fork(self, session_id: str, header: Header) -> None:
        target = log_path(self._home, header.cwd, header.id)
        end: int | None = None
        live = self._live.get(session_id)
        if live is not None:
            live.flush_if_possible()
            end = live.records_span[1]
        await finish(lambda: self._fork(session_id, header, target, end))

    async def delete(self, session_id: str) -> bool:
        existed = await finish(lambda: self._delete(session_id))
        await self._in_index(lambda: self._index.remove(session_id))
        return existed

    async def close(self) -> None:
        closed = await asyncio.gather(*(log.close() for log in list(self._live.values())), return_exceptions=True)
        if self._index_thread is not None:
            await self._in_index(self._index.close)
            self._index_thread.shutdown(wait=False)
            self._index_thread = None
        for failure in closed:
            if failure is not None:
                raise failure

    def _hold(self, log: FileLog) -> FileLog:
        self._live[log.header.id] = log
        return log

    def _create(self, path: Path, header: Header) -> FileLog:
        line = encode_header(header)
        with failing(path, "create"):
            lock = self._lock(header.id)
            try:
                make_directories(self._disk, path.parent)
                self._write_new(path, line)
            except BaseException:
                lock.release()
                raise
        return self._log(path, header, lock, start=len(line), is_new=True)

    def _write_new(self, path: Path, line: bytes) -> None:
        fd = self._disk.open(path, CREATE)
        try:
            write_all(self._disk, fd, line)
            self._disk.sync(fd)
            self._disk.sync_directory(path.parent)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(fd)

    def _open(self, session_id: str) -> FileLog:
        path, *_ = self._find_known(session_id)
        with failing(lock_path(self._home, session_id), "lock"):
            lock = self._lock(session_id)
        try:
            # Looked at again: until it was locked, another process could change or delete it.
            found = self._read_header(path, session_id)
        except BaseException:
            lock.release()
            raise
        if found is None:
            lock.release()
            raise SessionUnknown(session_id)
        return self._log(path, found[0], lock, start=found[1], is_new=False)

    def _log(self, path: Path, header: Header, lock: Lock, *, start: int, is_new: bool) -> FileLog:
        return FileLog(
            self._disk,
            path,
            header,
            lock,
            start=start,
            is_new=is_new,
            on_sync=self._note,
            on_close=self._forget,
        )

    def _forget(self, log: FileLog) -> None:
        if self._live.get(log.header.id) is log:
            del self._live[log.header.id]

    def _lock(self, session_id: str) -> Lock:
        path = lock_path(self._home, session_id)
        make_directories(self._disk, path.parent)
        return acquire(path, session_id)

    def _find_known(self, session_id: str) -> tuple[Path, Header, int]:
        found = self._find(session_id)
        if found is None:
            raise SessionUnknown(session_id)
        return found

    def _find(self, session_id: str) -> tuple[Path, Header, int] | None:
        path = self._find_log(session_id)
        found = path and self._read_header(path, session_id)
        return (path, *found) if path and found else None

    def _find_log(self, session_id: str) -> Path | None:
        with failing(projects_path(self._home), "search"):
            return find_log(self._home, session_id) if is_session_id(session_id) else None

    def _read_header(self, path: Path, session_id: str) -> tuple[Header, int] | None:
        with failing(path, "read"):
            try:
                fd = self._disk.open(path, READ)
            except FileNotFoundError:
                return None
            try:
                found = read_header(fd, path)
            finally:
                os.close(fd)
        if found is not None and found[0].id != session_id:
            raise SessionUnreadable(str(path), f"its header says that it is session {found[0].id}")
        return found

    def _fork(self, session_id: str, header: Header, target: Path, end: int | None) -> None:
        source, _, start = self._find_known(session_id)
        fresh = target.with_suffix(".jsonl.new")
        with failing(target, "create"):
            make_directories(self._disk, target.parent)
            if target.exists():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
            copy_file(self._disk, source, fresh, start, end, before=encode_header(header))
            fresh.rename(target)
            self._disk.sync_directory(target.parent)

    def _delete(self, session_id: str) -> bool:
        path = self._find_log(session_id)
        if path is None:
            return False
        with failing(path, "delete"):
            lock = self._lock(session_id)
            try:
                for aside in path.parent.glob(f"{path.stem}.damaged-*.jsonl"):
                    aside.unlink(missing_ok=True)
                path.unlink(missing_ok=True)
                self._disk.sync_directory(path.parent)
            finally:
                lock.release()
        return True

    async def _note(self, log: FileLog) -> None:
        entry = Entry(log.path.parent.name, log.header, log.title, log.updated_ms, log.message_count)
        await self._in_index(lambda: self._index.put(entry))

    async def _in_index(self, work: Callable[[], _Result]) -> _Result:
        """Work on the index in the one thread that it belongs to."""
        if self._index_thread is None:
            from concurrent.futures import ThreadPoolExecutor

            self._index_thread = ThreadPoolExecutor(1, thread_name_prefix="session-index")
        return await asyncio.get_running_loop().run_in_executor(self._index_thread, work)


def _uncreate(log: FileLog) -> None:
    with suppress(OSError):
        log.path.unlink()
    log.abandon()


def _summarise(entry: Entry) -> Summary:
    header = entry.header
    updated_at = datetime.fromtimestamp(entry.updated_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return Summary(
        id=header.id,
        cwd=header.cwd,
        additional_directories=header.additional_directories,
        title=entry.title,
        updated_at=updated_at.replace("+00:00", "Z"),
        message_count=entry.message_count,
    )
