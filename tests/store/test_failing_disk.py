"""Disks that fill up, break or go away. The error is clear, the log stays readable, and other sessions continue."""

import asyncio
import errno
import os
import shutil
import subprocess
import sys

import pytest

from dragoman.errors import LogError
from dragoman.store import FileStore
from dragoman.store.disk import Disk
from tests.store.making import fork, new_header, read_all, reread, turn_end, update, write_session
from tests.table import each_row
from tests.waiting import until

ERRORS = [errno.ENOSPC, errno.EIO, errno.EDQUOT]


class FailingDisk(Disk):
    """A disk whose calls fail from the nth call. A failing write leaves half of its bytes behind."""

    def __init__(self, call=None, *, nth=1, error=errno.EIO, keeps_torn=False):
        self.call = call
        self.left = nth
        self.error = error
        self.keeps_torn = keeps_torn
        self.made = 0

    def write(self, fd, data):
        try:
            self._count("write")
        except OSError:
            os.write(fd, bytes(data)[: len(data) // 2])
            raise
        return super().write(fd, data)

    def sync(self, fd):
        self._count("sync")

    def sync_directory(self, path):
        self._count("sync_directory")

    def open(self, path, flags):
        self._count("open")
        return super().open(path, flags)

    def truncate(self, fd, size):
        if self.keeps_torn:
            raise OSError(self.error, os.strerror(self.error))
        super().truncate(fd, size)

    def _count(self, call):
        if call != self.call:
            return
        self.made += 1
        if self.made >= self.left:
            raise OSError(self.error, os.strerror(self.error))


async def stream(store, header):
    """Write until a failure. Return the acknowledged lines, the log if it was created, and the failure."""
    acknowledged, log = [], None
    try:
        log = await store.create(header)
        for number in range(1, 7):
            log.append(update(b'{"n":%d}' % number))
            log.flush()
            acknowledged.append((number, "update", b'{"n":%d}' % number))
            if number % 2 == 0:
                await log.sync()
        await log.close()
    except LogError as failure:
        return acknowledged, log, failure
    return acknowledged, log, None


@each_row("keeps_torn", [False, True])
@each_row("error", ERRORS)
@each_row("call", ["write", "sync", "sync_directory", "open"])
async def test_acknowledged_lines_survive_any_failing_call(tmp_path, call, error, keeps_torn):
    for nth in range(1, 20):
        home = tmp_path / str(nth)
        disk = FailingDisk(call, nth=nth, error=error, keeps_torn=keeps_torn)
        store, header = FileStore(home, disk=disk), new_header()
        acknowledged, log, failure = await stream(store, header)
        if failure is None:
            break
        assert failure.errno == error
        assert os.strerror(error) in str(failure)
        if log is not None:
            assert header.id in failure.path
            await check_read_only(log, disk, acknowledged)
            await check_continues(home, header, acknowledged, torn_allowed=keeps_torn)
        await store.close()
    else:
        raise AssertionError("every nth call failed: the test never got through")
    assert nth > 3


async def check_read_only(log, disk, acknowledged):
    for attempt in (lambda: log.append(update(b"{}")), log.flush):
        with pytest.raises(LogError):
            attempt()
    with pytest.raises(LogError):
        await log.sync()
    disk.call = None
    assert await read_all(log) == acknowledged
    await log.close()


async def check_continues(home, header, acknowledged, *, torn_allowed):
    sound = FileStore(home)
    log = await sound.open(header.id)
    assert await read_all(log) == acknowledged
    assert log.damage is None or (torn_allowed and log.damage.torn)
    log.append(update(b'"again"'))
    await log.close()
    records, log = await reread(sound, header.id)
    assert (records, log.damage) == ([*acknowledged, (len(acknowledged) + 1, "update", b'"again"')], None)
    await sound.close()


async def test_failed_creation_leaves_nothing_and_can_be_repeated(tmp_path):
    for call in ("write", "sync", "open"):
        home = tmp_path / call
        disk = FailingDisk(call, error=errno.ENOSPC)
        store, header = FileStore(home, disk=disk), new_header()
        with pytest.raises(LogError, match=r"cannot create .*: No space left on device; free some space"):
            await store.create(header)
        disk.call = None
        assert await store.find(header.id) is None
        await (await store.create(header)).close()
        await store.close()


async def test_other_sessions_still_work_after_one_fails(tmp_path):
    disk = FailingDisk()
    store = FileStore(tmp_path, disk=disk)
    failed, sound = await store.create(new_header()), await store.create(new_header())
    failed.append(update(b"1"))
    disk.call = "write"
    with pytest.raises(LogError):
        failed.flush()
    disk.call = None
    sound.append(update(b"1"))
    await sound.sync()
    assert len(await read_all(sound)) == 1
    await store.close()


async def test_a_store_closes_all_logs_even_if_one_fails(tmp_path):
    disk = FailingDisk()
    store = FileStore(tmp_path, disk=disk)
    logs = [await store.create(new_header()) for _ in range(3)]
    for log in logs:
        log.append(update(b"1"))
    disk.call, disk.left = "write", 1
    with pytest.raises(LogError):
        await store.close()
    disk.call = None
    for log in logs:
        await (await store.open(log.header.id)).close()
    await store.close()


@pytest.mark.parametrize("size", [1, 2, 7])
async def test_short_writes_are_continued(tmp_path, size):
    class ShortDisk(Disk):
        def write(self, fd, data):
            return super().write(fd, bytes(data)[:size])

    store = FileStore(tmp_path, disk=ShortDisk())
    header = await write_session(store, payloads=[b'{"n":1}', b'{"n":2}'])
    records, log = await reread(store, header.id)
    assert ([data for _, _, data in records], log.damage) == ([b'{"n":1}', b'{"n":2}', turn_end()], None)
    forked = new_header()
    await fork(store, header.id, forked)
    assert (await reread(store, forked.id))[0] == records
    await store.close()


async def test_a_disk_full_between_short_writes_leaves_no_partial_record(tmp_path):
    class FillingDisk(Disk):
        room = 10_000

        def write(self, fd, data):
            if self.room == 0:
                raise OSError(errno.ENOSPC, "full")
            taken = super().write(fd, bytes(data)[: self.room])
            self.room -= taken
            return taken

    disk = FillingDisk()
    store, header = FileStore(tmp_path, disk=disk), new_header()
    log = await store.create(header)
    log.append(update(b"1"))
    log.flush()
    disk.room = 20
    log.append(update(b'"%b"' % (b"x" * 100)))
    with pytest.raises(LogError):
        log.flush()
    await log.close()
    records, log = await reread(FileStore(tmp_path), header.id)
    assert (records, log.damage) == ([(1, "update", b"1")], None)


@pytest.mark.parametrize("remove", ["file", "directory"])
@pytest.mark.parametrize("moment", ["idle", "writing"])
async def test_removing_the_log_of_an_open_session_is_noticed(tmp_path, remove, moment):
    store = FileStore(tmp_path)
    log = await store.create(new_header())
    if moment == "writing":
        log.append(update(b"1"))
        log.flush()
    shutil.rmtree(log.path.parent) if remove == "directory" else log.path.unlink()
    log.append(update(b"2"))
    with pytest.raises(LogError, match="was removed while the session was open") as caught:
        await log.sync()
    assert caught.value.errno == errno.ENOENT
    await log.close()
    await store.close()


async def test_a_log_changed_by_another_program_is_not_written_to(tmp_path):
    store = FileStore(tmp_path)
    log = await store.create(new_header())
    with log.path.open("ab") as other:
        other.write(b"hello\n")
    log.append(update(b"2"))
    with pytest.raises(LogError, match="another program has changed it"):
        log.flush()
    await log.close()
    await store.close()


async def test_a_torn_log_on_a_read_only_disk_can_be_read(tmp_path):
    sound = FileStore(tmp_path)
    header = await write_session(sound, payloads=[b"1", b"2"])
    await sound.close()
    log_file = next(tmp_path.glob("projects/*/*.jsonl"))
    os.truncate(log_file, log_file.stat().st_size - 3)
    store = FileStore(tmp_path, disk=FailingDisk(keeps_torn=True, error=errno.EROFS))
    log = await store.open(header.id)
    for _ in range(2):
        assert len(await read_all(log)) == 3
    assert log.damage.torn
    with pytest.raises(LogError, match=r"cannot mend .*: Read-only file system; check that this user may"):
        log.append(update(b"{}"))
    await store.close()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
async def test_the_error_explains_a_lost_permission(tmp_path):
    store = FileStore(tmp_path)
    log = await store.create(new_header())
    log.path.chmod(0o400)
    log.append(update(b"1"))
    with pytest.raises(LogError, match="check that this user may read and write it"):
        log.flush()
    await store.close()


async def test_a_failed_sync_is_remembered_after_cancellation(tmp_path):
    disk = FailingDisk("sync", nth=2)
    store = FileStore(tmp_path, disk=disk)
    log = await store.create(new_header())
    log.append(update(b"1"))
    syncing = asyncio.create_task(log.sync())
    await asyncio.sleep(0)
    syncing.cancel()
    await asyncio.wait([syncing])
    async with asyncio.timeout(30):
        await until(lambda: disk.made >= 2)
    with pytest.raises(LogError):
        while True:
            log.flush()
            await asyncio.sleep(0)
    await store.close()


LIMITED = """
import asyncio, resource, sys
from pathlib import Path
from dragoman.errors import LogError
from dragoman.store import FileStore
from tests.store.making import new_header, read_all, update

async def main():
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
    store = FileStore(Path(sys.argv[1]))
    log = await store.create(new_header())
    acknowledged = 0
    try:
        while True:
            log.append(update(b'"%b"' % (b"x" * 500)))
            log.flush()
            acknowledged += 1
    except LogError as failure:
        print(failure.errno, acknowledged, len(await read_all(log)), log.header.id)

asyncio.run(main())
"""


async def test_a_file_size_limit_is_a_clear_failure(tmp_path):
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", LIMITED, str(tmp_path)], capture_output=True, text=True, check=True
    )
    error, acknowledged, read, session_id = done.stdout.split()
    assert int(error) == errno.EFBIG
    assert 5 < int(acknowledged) == int(read)
    records, log = await reread(FileStore(tmp_path), session_id)
    assert (len(records), log.damage) == (int(acknowledged), None)


NO_BYTE = """
import asyncio, os, resource, sys
from pathlib import Path
from dragoman.errors import LogError
from dragoman.store import FileStore
from tests.store.making import new_header, read_all, update, write_session

def descriptors():
    return os.listdir("/dev/fd")

async def main():
    store = FileStore(Path(sys.argv[1]))
    header, fresh = await write_session(store), new_header()
    await store.page()
    before = descriptors()
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    for _ in range(3):
        log = await store.open(header.id)
        assert len(await read_all(log)) == 2
        log.append(update(b"1"))
        for failing in (log.sync(), store.create(fresh)):
            try:
                await failing
            except LogError as failure:
                assert "raise the limit on file sizes (ulimit -f), then try again" in str(failure), failure
            else:
                raise AssertionError("it was written")
        await log.close()
    assert descriptors() == before
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    await (await store.create(fresh)).close()
    log = await store.open(header.id)
    await read_all(log)
    log.append(update(b"1"))
    await log.close()
    await store.close()
    print("fine")

asyncio.run(main())
"""


async def test_a_zero_file_size_limit_holds_nothing_and_is_recoverable(tmp_path):
    command = [sys.executable, "-c", NO_BYTE, str(tmp_path)]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("fine\n", "")
