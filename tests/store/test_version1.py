"""Logs of version 1, as an earlier dragoman has written them: read, listed, forked, and converted once."""

import asyncio
import errno
import json
import shutil
from pathlib import Path

import pytest

from dragoman.errors import LogFailed
from dragoman.store import FileStore
from dragoman.store.disk import Disk
from dragoman.store.naming import log_path, version1_path
from tests.store.contract import list_ids, sessions_in_lines
from tests.store.making import fork, new_header, read_all, reread, update

DATA = Path(__file__).parent / "data" / "version1"
IDS = {
    name: f"00000000-0000-4000-8000-00000000000{n}" for n, name in enumerate(("plain", "torn", "damaged", "fork"), 1)
}
KINDS = ["config", "turn", "update", "model", "update", "update", "permission", "title", "update", "turn"]


class FullDisk(Disk):
    """A disk on which nothing can be written, with locks that can be taken."""

    def write(self, fd, data):
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
async def store(home):
    store = FileStore(home)
    yield store
    await store.close()


def put(home, name):
    path = log_path(home, "/work/project", IDS[name])
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(DATA / f"{name}.jsonl", path)
    return path


def payloads(name):
    """Give the lines of a fixture as they are read back."""
    lines = (DATA / f"{name}.jsonl").read_bytes().split(b"\n")[1:-1]
    for line in lines:
        record = json.loads(line)
        kind = list(record)[2]
        yield record["seq"], kind, record[kind]


def parsed(records):
    return [(seq, kind, json.loads(data)) for seq, kind, data in records]


@pytest.mark.parametrize("name", ["plain", "fork"])
async def test_a_log_is_read_as_it_was_written(store, home, name):
    put(home, name)
    records, log = await reread(store, IDS[name])
    assert [kind for _, kind, _ in records] == KINDS
    assert parsed(records) == list(payloads(name))
    assert (log.damage, log.title, log.message_count) == (None, "A title", 2)
    assert log.header.forked_from == (IDS["plain"] if name == "fork" else None)


async def test_it_is_converted_when_it_was_read_and_goes_on_in_the_present_version(store, home):
    path = put(home, "plain")
    before, _ = await reread(store, IDS["plain"])
    assert path.read_bytes().startswith(b'{"dragoman":2,')
    assert version1_path(path).read_bytes() == (DATA / "plain.jsonl").read_bytes()
    log = await store.open(IDS["plain"])
    assert await read_all(log) == before
    log.append(update(b'"next"', IDS["plain"]))
    await log.close()
    assert (await reread(store, IDS["plain"]))[0] == [*before, (11, "update", b'"next"')]
    assert await sessions_in_lines(store, IDS["plain"]) == {IDS["plain"]}


async def test_something_can_be_appended_right_after_the_first_reading(store, home):
    put(home, "plain")
    log = await store.open(IDS["plain"])
    before = await read_all(log)
    log.append(update(b'"next"'))
    await log.sync()
    assert await read_all(log) == [*before, (11, "update", b'"next"')]
    await log.close()
    records, log = await reread(store, IDS["plain"])
    assert (len(records), log.damage) == (11, None)


async def test_lists_show_it_before_and_after_it_was_converted(store, home):
    put(home, "plain")
    [shown] = (await store.page()).sessions
    assert (shown.title, shown.message_count, shown.additional_directories) == ("A title", 2, ["/more"])
    await reread(store, IDS["plain"])
    other = FileStore(home)
    (home / "index.db").unlink()
    assert (await other.page()).sessions == [shown]
    await other.close()


async def test_a_torn_log_keeps_its_whole_records_and_says_so_once(store, home):
    put(home, "torn")
    records, log = await reread(store, IDS["torn"])
    assert [kind for _, kind, _ in records] == KINDS[:-1]
    assert log.damage.torn
    records, log = await reread(store, IDS["torn"])
    assert ([kind for _, kind, _ in records], log.damage) == (KINDS[:-1], None)


async def test_a_damaged_log_keeps_what_is_certain_and_its_original(store, home):
    put(home, "damaged")
    records, log = await reread(store, IDS["damaged"])
    assert [kind for _, kind, _ in records] == KINDS[:6]
    assert not log.damage.torn
    assert Path(log.damage.kept_as).read_bytes() == (DATA / "damaged.jsonl").read_bytes()
    records, log = await reread(store, IDS["damaged"])
    assert (len(records), log.damage) == (6, None)
    assert await list_ids(store) == [IDS["damaged"]]


@pytest.mark.parametrize("name", ["plain", "torn", "damaged"])
async def test_a_fork_of_it_is_of_the_present_version_and_leaves_it_alone(store, home, name):
    path = put(home, name)
    forked = new_header(forked_from=IDS[name])
    await fork(store, IDS[name], forked)
    assert path.read_bytes() == (DATA / f"{name}.jsonl").read_bytes()
    assert log_path(home, forked.cwd, forked.id).read_bytes().startswith(b'{"dragoman":2,')
    records, log = await reread(store, forked.id)
    assert [kind for _, kind, _ in records] == KINDS[: {"plain": 10, "torn": 9, "damaged": 6}[name]]
    assert (log.damage is None) == (name == "plain")
    assert await sessions_in_lines(store, forked.id) == {forked.id}


async def test_it_is_read_and_not_changed_where_nothing_can_be_written(home):
    path = put(home, "plain")
    store = FileStore(home, disk=FullDisk())
    log = await store.open(IDS["plain"])
    for _ in range(2):
        assert [kind for _, kind, _ in await read_all(log)] == KINDS
    with pytest.raises(LogFailed, match="No space left"):
        log.append(update(b"1"))
    await log.close()
    await store.close()
    assert [path.name] == [file.name for file in path.parent.iterdir()]
    assert path.read_bytes() == (DATA / "plain.jsonl").read_bytes()


async def test_a_log_that_was_given_up_half_read_is_not_converted(store, home):
    path = put(home, "plain")
    await (await store.open(IDS["plain"])).close()
    assert path.read_bytes() == (DATA / "plain.jsonl").read_bytes()


async def test_a_conversion_that_was_cut_short_is_made_again(store, home):
    path = put(home, "plain")
    path.with_suffix(".jsonl.new").write_bytes(b'{"dragoman":2,')
    version1_path(path).hardlink_to(path)
    records, _ = await reread(store, IDS["plain"])
    assert len(records) == len(KINDS)
    assert {file.name for file in path.parent.iterdir()} == {path.name, version1_path(path).name}


async def test_the_original_is_kept_until_the_next_start(store, home):
    path = put(home, "plain")
    await reread(store, IDS["plain"])
    for _ in range(2):  # once the second is answered, all that is done behind the first is done
        await store.page()
    assert version1_path(path).exists()
    async with asyncio.timeout(30):
        while version1_path(path).exists():  # the clock of a file system is coarse: the next start can be the same time
            after = FileStore(home)
            for _ in range(2):
                await after.page()
            await after.close()


async def test_the_original_is_deleted_with_its_session(store, home):
    path = put(home, "plain")
    await reread(store, IDS["plain"])
    await store.delete(IDS["plain"])
    assert not path.parent.exists()
