"""A really full or read-only disk. The error is clear, nothing is left behind, and all works again with space."""

import os

import pytest

from dragoman.errors import LogError, SessionBusyError, SessionNotFoundError
from dragoman.store import FileStore
from dragoman.store.lock import acquire
from tests.store.contract import list_ids
from tests.store.making import fork, new_header, read_all, reread, turn_end, update, write_session

FULL = pytest.mark.parametrize("files", [False, True], ids=["no byte", "no file"])
NO_SPACE = "No space left on device; free some space on that disk, then try again"


def descriptors():
    return set(os.listdir("/proc/self/fd"))


async def titles(store):
    return {session.title for session in (await store.page()).sessions}


@pytest.fixture
async def store(tiny_disk):
    store = FileStore(tiny_disk.path)
    await store.page()  # creates and sweeps the index before the disk is full
    yield store
    await store.close()


async def test_writing_to_a_full_disk_is_a_clear_failure(store):
    log = await store.create(new_header())
    acknowledged = 0
    with pytest.raises(LogError, match=NO_SPACE):
        while True:
            log.append(update(b'"%b"' % (b"x" * 5000)))
            log.flush()
            acknowledged += 1
    assert len(await read_all(log)) == acknowledged > 5
    await log.close()
    records, log = await reread(store, log.header.id)
    assert (len(records), log.damage) == (acknowledged, None)


def test_a_lock_holds_without_the_name_of_its_holder(tiny_disk):
    tiny_disk.path.mkdir()
    path = tiny_disk.path / "session.lock"
    tiny_disk.fill()
    before = descriptors()
    lock = acquire(path, "x")
    assert path.read_bytes() == b""
    with pytest.raises(SessionBusyError, match="in use by another process") as caught:
        acquire(path, "x")
    assert caught.value.pid is None
    lock.release()
    assert descriptors() == before
    tiny_disk.free()
    lock = acquire(path, "x")
    with pytest.raises(SessionBusyError, match=f"process {os.getpid()}"):
        acquire(path, "x")
    lock.release()


@FULL
async def test_a_session_on_a_full_disk_can_be_opened_and_written_later(store, tiny_disk, files):
    header = await write_session(store)
    tiny_disk.fill(files=files)
    before = descriptors()
    for _ in range(3):
        log = await store.open(header.id)
        assert len(await read_all(log)) == 2
        with pytest.raises(LogError, match=NO_SPACE):
            log.append(update(b'"%b"' % (b"x" * 5000)))
            log.flush()
        assert log.failure is not None
        await log.close()
    assert descriptors() == before
    tiny_disk.free()
    log = await store.open(header.id)
    await read_all(log)
    log.append(update(b'"again"'))
    await log.close()
    assert (await reread(store, header.id))[0][-1] == (3, "update", b'"again"')


@FULL
async def test_failed_creation_on_a_full_disk_leaves_nothing(store, tiny_disk, files):
    await write_session(store)
    tiny_disk.fill(files=files)
    before, there = descriptors(), set(tiny_disk.path.rglob("session-*"))
    header = new_header("/elsewhere")
    for _ in range(3):
        with pytest.raises(LogError, match=rf"cannot create .*{header.id}.*: {NO_SPACE}"):
            await store.create(header)
    assert (descriptors(), set(tiny_disk.path.rglob("session-*"))) == (before, there)
    tiny_disk.free()
    await (await store.create(header)).close()


@FULL
async def test_a_failed_fork_leaves_nothing(store, tiny_disk, files):
    header = await write_session(store, payloads=[b'"%b"' % (b"x" * 9000)])
    tiny_disk.fill(files=files)
    before, there = descriptors(), set(tiny_disk.path.rglob("session-*"))
    forked = new_header(forked_from=header.id)
    with pytest.raises(LogError, match=NO_SPACE):
        await fork(store, header.id, forked)
    assert (descriptors(), set(tiny_disk.path.rglob("session-*"))) == (before, there)
    tiny_disk.free()
    await fork(store, header.id, forked)
    assert len((await reread(store, forked.id))[0]) == 2


@FULL
async def test_session_can_be_deleted_on_a_full_disk(store, tiny_disk, files):
    gone, held = await write_session(store), await write_session(store)
    log = await store.open(held.id)
    tiny_disk.fill(files=files)
    assert await store.delete(gone.id) is True
    assert await list_ids(store) == [held.id]
    with pytest.raises(SessionNotFoundError):
        await store.open(gone.id)
    with pytest.raises(SessionBusyError):
        await store.delete(held.id)
    await log.close()
    assert await store.delete(held.id) is True


@FULL
async def test_lists_are_complete_on_a_full_disk(store, tiny_disk, files):
    await write_session(store, title="Before")
    assert len(await list_ids(store)) == 1
    header = await write_session(store, title="Moved")
    tiny_disk.fill(files=files)
    fresh = FileStore(tiny_disk.path)
    for lister in (store, fresh, store, fresh):
        assert await titles(lister) == {"Before", "Moved"}
    tiny_disk.free()
    for lister in (store, fresh):
        assert len(await list_ids(lister)) == 2
    log = await store.open(header.id)
    await read_all(log)
    log.record("turn", turn_end("Renamed"))
    log.facts.title = "Renamed"
    await log.close()
    assert await titles(fresh) == {"Before", "Renamed"}
    await fresh.close()


async def test_a_read_only_home_can_be_read(store, tiny_disk):
    header, torn = await write_session(store), new_header()
    log = await store.create(torn)
    log.record("turn", turn_end())
    log.append(update(b"{}"))
    await store.close()
    os.truncate(log.path, log.path.stat().st_size - 3)
    tiny_disk.set_read_only()
    before = descriptors()
    reader = FileStore(tiny_disk.path)
    assert set(await list_ids(reader)) == {torn.id, header.id}
    assert await reader.find(header.id) == header
    log = await reader.open(header.id)
    assert len(await read_all(log)) == 2
    with pytest.raises(LogError, match=r"cannot write to .*: Read-only file system; check"):
        log.append(update(b"{}"))
    await log.close()
    records, log = await reread(reader, torn.id)
    assert (len(records), log.damage.torn) == (2, True)
    for refused in (reader.delete(header.id), fork(reader, header.id, new_header())):
        with pytest.raises(LogError, match="Read-only file system; check"):
            await refused
    with pytest.raises(LogError, match=r"cannot create .*: Read-only file system; .*DRAGOMAN_HOME"):
        await reader.create(new_header())
    await reader.close()
    assert descriptors() == before
    tiny_disk.set_read_only(read_only=False)
    assert await store.delete(header.id) is True


async def test_a_read_only_home_without_an_index_is_listed(store, tiny_disk):
    header = await write_session(store)
    await store.close()
    for index in tiny_disk.path.glob("index.db*"):
        index.unlink()
    tiny_disk.set_read_only()
    reader = FileStore(tiny_disk.path)
    assert await list_ids(reader) == [header.id]
    await reader.close()
