import asyncio
import json
import os
import shutil
import stat
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from dragoman.errors import LogError, SessionUnreadableError
from dragoman.store import FileStore, raise_fd_limit
from dragoman.store.block import now_ms
from dragoman.store.disk import Disk
from dragoman.store.history_file import SEALED_BYTES, SEALED_MS
from dragoman.store.naming import aside_path, lock_path, log_name, log_path, session_id_of
from tests.store.contract import StoreContract
from tests.store.list_contract import list_ids
from tests.store.making import fork, make_log, new_header, read_all, reread, turn_end, update, write_session


class TestFileStore(StoreContract):
    @pytest.fixture
    async def another_store(self, tmp_path):
        stores = []

        def make(**options):
            stores.append(FileStore(tmp_path / "home", **options))
            return stores[-1]

        yield make
        for store in stores:
            await store.close()


def count_seals(path):
    return path.read_bytes().count(b'\n\t{"seal":')


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
async def store(home):
    store = FileStore(home)
    yield store
    await store.close()


def files(home):
    return sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.is_file())


def permissions(path):
    return stat.S_IMODE(path.stat().st_mode)


async def test_a_log_is_json_lines_in_the_directory_of_its_cwd(store, home):
    header = await write_session(store, new_header("/Users/me/code"))
    path = home / "projects" / "-Users-me-code" / f"session-{header.id}.jsonl"
    first, *rest = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert first["dragoman"] == 1
    assert first["session"]["cwd"] == "/Users/me/code"
    assert [next(iter(line)) for line in rest] == ["seal", "jsonrpc", "turn", "seal"]
    assert [(line["seal"]["first"], line["seal"]["last"]) for line in rest if "seal" in line] == [(0, 0), (1, 2)]


async def test_single_updates_share_a_seal_and_are_written_at_once(store, home):
    header = new_header()
    log = await store.create(header)
    for number in range(50):
        log.append(update(b"%d" % number, header.id))
        log.flush()
        assert log.path.read_bytes().endswith(update(b"%d" % number, header.id))
    assert count_seals(log.path) == 1, "the header's"
    await log.sync()
    assert count_seals(log.path) == 2
    assert [data for _, _, data in await read_all(log)] == [b"%d" % number for number in range(50)]
    await log.close()


async def test_a_large_or_old_block_is_sealed(store, monkeypatch):
    header = new_header()
    log = await store.create(header)
    for _ in range(3):
        log.append(update(b'"%b"' % (b"x" * SEALED_BYTES), header.id))
        log.flush()
    assert count_seals(log.path) == 4
    log.append(update(b'"first"', header.id))
    log.flush()
    began = now_ms()
    monkeypatch.setattr("dragoman.store.history_file.now_ms", lambda: began + 2 * SEALED_MS)
    log.append(update(b'"last"', header.id))
    log.flush()
    assert count_seals(log.path) == 5
    await log.close()


async def test_a_log_without_a_last_seal_is_complete(store, home):
    header = new_header()
    log = await store.create(header)
    log.record("turn", b'{"event":"start"}')
    for number in range(3):
        log.append(update(b"%d" % number, header.id))
        log.flush()
    shutil.copytree(home / "projects", home.parent / "killed" / "projects")
    copied = home.parent / "killed" / log.path.relative_to(home)
    os.utime(copied, (1_700_000_000, 1_700_000_000))
    await log.close()
    later = FileStore(home.parent / "killed")
    [listed] = (await later.page()).sessions
    assert listed.updated_at == "2023-11-14T22:13:20.000Z", "lines without a seal are as old as the file"
    forked = new_header()
    await fork(later, header.id, forked)
    for session_id in (header.id, forked.id):
        records, reopened = await reread(later, session_id)
        assert [data for _, _, data in records] == [b'{"event":"start"}', b"0", b"1", b"2"]
        assert reopened.damage is None
    assert count_seals(copied) == 2
    await later.close()


async def test_reading_or_forking_a_live_log_seals_it_first(store):
    header = new_header()
    log = await store.create(header)
    log.append(update(b"1", header.id))
    log.flush()
    forked = new_header()
    await fork(store, header.id, forked)
    assert count_seals(log.path) == 2
    log.append(update(b"2", header.id))
    log.flush()
    assert [data for _, _, data in await read_all(log)] == [b"1", b"2"]
    assert count_seals(log.path) == 3
    assert (await reread(store, forked.id))[0] == [(1, "update", b"1")]
    await log.close()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
async def test_only_the_owner_can_read_files_and_folders(home, umask):
    before = os.umask(umask)
    try:
        store = FileStore(home)
        header = await write_session(store)
        await fork(store, header.id, new_header("/other"))
        log = await store.open(header.id)
        await store.page()
        found = list(home.rglob("*"))
        assert {permissions(path) for path in found if path.is_file()} == {0o600}
        assert {permissions(path) for path in [home, *found] if path.is_dir()} == {0o700}
        await log.close()
        await store.close()
    finally:
        os.umask(before)


def put_log(home, *, days_old, prompted=False):
    """Write the log of a session with a time some days ago."""
    header = new_header()
    path = log_path(home, header.cwd, header.id)
    path.parent.mkdir(parents=True, exist_ok=True)
    records = [("config", b"{}"), *([("turn", b'{"event":"start"}')] if prompted else [])]
    path.write_bytes(b"".join(make_log(header, records, time=now_ms() - days_old * 24 * 3600 * 1000)))
    return path


def set_age(path, days):
    changed = time.time() - days * 24 * 3600
    os.utime(path, (changed, changed))


async def test_deleting_the_last_session_removes_the_project_folder(store, home):
    first, second = await write_session(store), await write_session(store)
    await store.delete(first.id)
    assert len(list(home.glob("projects/*"))) == 1
    await store.delete(second.id)
    assert list(home.glob("projects/*")) == []
    await write_session(store)
    assert len(list(home.glob("projects/*/session-*.jsonl"))) == 1


class EmptyingDisk(Disk):
    """A disk that removes an empty folder at once, like another process that deletes its last session."""

    def sync_directory(self, path):
        with suppress(OSError):
            path.rmdir()
        super().sync_directory(path)


async def test_two_processes_can_delete_the_last_two_sessions_of_a_project(home):
    store = FileStore(home, disk=EmptyingDisk())
    header = await write_session(store)
    assert await store.delete(header.id)
    assert (await store.page()).sessions == []
    await store.close()


async def test_an_unprompted_session_is_deleted_after_a_week(store, home):
    kept = [put_log(home, days_old=6), put_log(home, days_old=400, prompted=True), put_log(home, days_old=30)]
    aside_path(kept[-1], 1).write_bytes(b"a conversation, damaged")
    put_log(home, days_old=8)
    for _ in range(2):
        await store.page()
    assert set(home.glob("projects/*/session-*.jsonl")) == {*kept, aside_path(kept[-1], 1)}


async def test_unfinished_files_of_a_killed_process_are_deleted_after_a_week(store, home):
    kept = put_log(home, days_old=400, prompted=True)
    whole = kept.read_bytes()
    left = []
    for days_old in (6, 8):
        for content in (b"", whole[:20], whole[: whole.index(b"\n") + 9]):
            left.append(kept.with_name(log_name(new_header().id)))
            left[-1].write_bytes(content)
        left.append(left[-1].with_suffix(".jsonl.new"))
        left[-1].write_bytes(whole)
        for path in left[-4:]:
            set_age(path, days_old)
    unreadable = kept.with_name(log_name(new_header().id))
    unreadable.write_bytes(b'{"dragoman":9}\n\n')
    set_age(unreadable, 400)
    for _ in range(2):
        await store.page()
    assert set(home.glob("projects/*/*")) == {kept, unreadable, *left[:4]}


async def test_a_session_prompted_at_the_last_moment_is_not_deleted(store, home):
    path = put_log(home, days_old=8)
    patient = FileStore(home, unprompted_kept_s=30 * 24 * 3600)
    await patient.page()  # the index now has it as never prompted
    await patient.close()
    with path.open("ab") as log:
        log.write(b'{"turn":%b}\n' % turn_end())
    for _ in range(2):
        assert len(await list_ids(store)) == 1
    assert path.exists()


async def test_the_lock_of_a_dead_process_does_not_hold_a_session(store, home):
    path = put_log(home, days_old=8)
    stale = lock_path(home, session_id_of(path.name))
    stale.parent.mkdir()
    stale.write_bytes(b"")
    for _ in range(2):
        await store.page()
    assert files(home) == ["index.db", "index.db-shm", "index.db-wal", "locks/held"]


async def test_only_logs_and_the_index_remain(store, home):
    header = await write_session(store)
    await store.page()
    await store.close()
    assert files(home) == ["index.db", "locks/held", f"projects/-work-project/session-{header.id}.jsonl"]


async def test_the_lock_names_its_holder(store, home):
    header = new_header()
    log = await store.create(header)
    held = json.loads((home / "locks" / f"session-{header.id}.lock").read_bytes())
    assert (held["pid"], held["host"]) == (os.getpid(), os.uname().nodename)
    assert held["since"]
    await log.close()


async def test_sessions_copied_by_hand_are_listed_and_can_be_opened(store, home, tmp_path):
    other = FileStore(tmp_path / "other")
    header = await write_session(other, title="From afar", messages=3)
    await other.close()
    await write_session(store)
    assert len(await list_ids(store)) == 1
    shutil.copytree(tmp_path / "other" / "projects", home / "projects", dirs_exist_ok=True)
    assert {session.title for session in (await store.page()).sessions} == {"A title", "From afar"}
    assert len((await reread(store, header.id))[0]) == 2


async def test_a_session_belongs_to_the_cwd_in_its_header(store, home):
    header = await write_session(store, new_header("/work/mine"))
    (home / "projects" / "-work-mine").rename(home / "projects" / "anything")
    assert await list_ids(store, "/work/mine") == [header.id]
    assert await store.find(header.id) == header


async def test_sessions_deleted_by_hand_are_not_listed(store, home):
    kept = await write_session(store, new_header("/a"))
    gone = await write_session(store, new_header("/a"))
    await write_session(store, new_header("/b"))
    assert len(await list_ids(store)) == 3
    log_path(home, "/a", gone.id).unlink()
    shutil.rmtree(home / "projects" / "-b")
    assert await list_ids(store) == [kept.id]


async def test_a_session_added_within_one_clock_tick_is_listed(store, home, tmp_path):
    await write_session(store, new_header("/a"))
    assert len(await list_ids(store)) == 1
    project = home / "projects" / "-a"
    changed_ns = project.stat().st_mtime_ns
    other = FileStore(tmp_path / "other")
    header = await write_session(other, new_header("/a"))
    await other.close()
    shutil.copy(log_path(tmp_path / "other", "/a", header.id), project)
    os.utime(project, ns=(changed_ns, changed_ns))
    assert len(await list_ids(store)) == 2


async def test_listing_again_opens_no_log(store, home):
    await write_session(store, new_header("/a"))
    project = home / "projects" / "-a"
    os.utime(project, (1_700_000_000, 1_700_000_000))  # long ago, so that it counts as settled
    assert len(await list_ids(store)) == 1
    for log in project.iterdir():
        log.write_bytes(b"")
    assert len(await list_ids(store)) == 1


@pytest.mark.parametrize("content", [b"", b"not a database at all", b"SQLite format 3\0" + b"x" * 5000])
async def test_a_damaged_index_is_rebuilt(store, home, content):
    header = await write_session(store, title="Still here", messages=9)
    await store.close()
    (home / "index.db").write_bytes(content)
    (session,) = (await store.page()).sessions
    assert (session.id, session.title, session.message_count) == (header.id, "Still here", 9)


async def test_an_index_removed_during_use_is_rebuilt(store, home):
    header = await write_session(store)
    assert await list_ids(store) == [header.id]
    for path in home.glob("index.db*"):
        path.unlink()
    other = FileStore(home)
    second = await write_session(other)
    assert sorted(await list_ids(store)) == sorted(await list_ids(other)) == sorted([second.id, header.id])
    await other.close()


async def test_an_index_that_cannot_be_written_is_in_memory(store, home):
    home.mkdir()
    (home / "index.db").mkdir()
    header = await write_session(store)
    assert await list_ids(store) == [header.id]
    assert await store.delete(header.id)
    assert await list_ids(store) == []


async def test_an_index_of_another_version_is_rebuilt(store, home):
    import sqlite3

    header = await write_session(store)
    await store.close()
    database = sqlite3.connect(home / "index.db")
    database.execute("PRAGMA user_version = 99")
    database.execute("DROP TABLE session")
    database.close()
    assert await list_ids(store) == [header.id]


async def test_the_title_before_a_long_unfinished_turn_is_found(store, home):
    header = await write_session(store, title="Before", messages=2)
    log = await store.open(header.id)
    await read_all(log)
    for _ in range(1000):
        log.append(update(b'{"title":"not this","text":"%b"}' % (b"x" * 300)))
    log.flush()
    (home / "index.db").unlink()
    fresh = FileStore(home)
    (session,) = (await fresh.page()).sessions
    await fresh.close()
    assert (session.title, session.message_count) == ("Before", 2)
    await log.close()


async def test_a_damaged_header_is_reported_and_not_changed(store, home):
    header = await write_session(store)
    path = log_path(home, header.cwd, header.id)
    broken = path.read_bytes().replace(b"/work", b"/wark")
    path.write_bytes(broken)
    (home / "index.db").unlink()
    for ask in (store.open, store.find):
        with pytest.raises(SessionUnreadableError, match="header is damaged; the file was not changed"):
            await ask(header.id)
    assert await list_ids(store) == []
    assert path.read_bytes() == broken


async def test_a_newer_format_is_reported(store, home):
    header = await write_session(store)
    path = log_path(home, header.cwd, header.id)
    path.write_bytes(path.read_bytes().replace(b'"dragoman":1', b'"dragoman":3'))
    with pytest.raises(SessionUnreadableError, match="it has format 3"):
        await store.open(header.id)


async def test_a_log_with_another_sessions_name_is_reported(store, home):
    header, other = await write_session(store), new_header()
    log_path(home, header.cwd, header.id).rename(log_path(home, header.cwd, other.id))
    with pytest.raises(SessionUnreadableError, match=f"belongs to session {header.id}"):
        await store.open(other.id)
    assert await list_ids(store) == []


async def test_deleting_a_session_deletes_its_damaged_originals(store, home):
    header = await write_session(store)
    path = log_path(home, header.cwd, header.id)
    path.write_bytes(path.read_bytes().replace(b'"n":1', b'"n":2'))
    _, log = await reread(store, header.id)
    assert Path(log.damage.kept_as).exists()
    await store.delete(header.id)
    assert not path.parent.exists()


async def test_symbolic_links_are_not_opened_as_logs(store, home, tmp_path):
    header = await write_session(store)
    path = log_path(home, header.cwd, header.id)
    path.rename(tmp_path / "elsewhere.jsonl")
    path.symlink_to(tmp_path / "elsewhere.jsonl")
    with pytest.raises(LogError):
        await store.open(header.id)


async def test_idle_sessions_hold_no_descriptors(store):
    def opened():
        return len(os.listdir("/dev/fd"))

    await write_session(store)
    await store.page()
    before = opened()
    logs = [await store.create(new_header()) for _ in range(10)]
    for log in logs:
        log.record("turn", turn_end())
        await log.sync()
    assert opened() - before == 1, "only the file of all locks is open"
    for log in logs:
        await log.close()
    assert opened() == before


def test_the_open_file_limit_is_raised_to_the_maximum():
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
        assert raise_fd_limit() > 256
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == raise_fd_limit()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.skipif(sys.platform != "linux", reason="open descriptors are counted in /proc")
async def test_cancelled_reading_leaves_no_open_descriptor(store):
    payload = b'"%b"' % (b"x" * 100_000)
    header = await write_session(store, payloads=[payload] * 50)
    log = await store.open(header.id)
    before = len(os.listdir("/proc/self/fd"))
    for ticks in range(60):
        reading = asyncio.create_task(read_all(log))
        for _ in range(ticks):
            await asyncio.sleep(0)
        reading.cancel()
        await asyncio.wait([reading])
    async with asyncio.timeout(10):
        while len(os.listdir("/proc/self/fd")) > before:
            await asyncio.to_thread(int)
    assert len(await read_all(log)) == 51
    await log.close()


async def test_importing_the_store_loads_no_heavy_module():
    import asyncio

    code = "import sys, asyncio, dragoman.store; print({'sqlite3', 'hashlib', 'resource'} & set(sys.modules))"
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    assert (await child.communicate())[0] == b"set()\n"
