import asyncio
import os

import pytest

from dragoman.store import FileStore
from dragoman.store.disk import Disk
from dragoman.store.index import MANY_UNKNOWN
from dragoman.store.naming import log_path
from dragoman.store.store import PAGE_SESSIONS
from tests.store.making import make_log, new_header, turn_end


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
async def store(home):
    store = FileStore(home)
    yield store
    await store.close()


class CountingDisk(Disk):
    def __init__(self):
        self.opened = 0

    def open(self, path, flags):
        self.opened += path.suffix == ".jsonl"
        return super().open(path, flags)


class Crowd:
    """Many sessions without an index. The times of their files have another order than the sessions."""

    def __init__(self, home):
        self.prompted = []
        for number in range(MANY_UNKNOWN + 200):
            header = new_header(f"/work/project-{number % 7}")
            written = 1_700_000_000_000 + 1000 * (number * 7919 % 5003)
            is_prompted = number % 5 > 0
            lines = [("turn", turn_end())] if is_prompted else [("config", b"{}")]
            path = log_path(home, header.cwd, header.id)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"".join(make_log(header, lines, time=written)))
            changed = written / 1000 + (1 if number % 3 else 3600)  # some were copied later
            os.utime(path, (changed, changed))
            if is_prompted:
                self.prompted.append((written, header.id, header.cwd))
        self.prompted.sort(reverse=True)

    def ids(self, cwd=None):
        return [session_id for _, session_id, place in self.prompted if cwd in (None, place)]


async def walk(store, cwd=None, first=None):
    page = first or await store.page(cwd)
    ids = [summary.id for summary in page.sessions]
    while page.next_cursor is not None:
        page = await store.page(cwd, page.next_cursor)
        ids += [summary.id for summary in page.sessions]
    return ids


async def test_a_list_without_an_index_is_complete_and_ordered(store, home):
    crowd = Crowd(home)
    first = await store.page()
    assert [summary.id for summary in first.sessions] == crowd.ids()[: len(first.sessions)]
    assert await walk(store, first=first) == crowd.ids(), "its cursor fits the index that is made behind it"
    assert await walk(store) == crowd.ids()


async def test_a_directory_list_without_an_index_has_only_its_sessions(store, home):
    crowd = Crowd(home)
    assert await walk(store, "/work/project-3") == crowd.ids("/work/project-3")


async def test_the_first_list_reads_few_logs_before_the_index_is_rebuilt(home):
    crowd = Crowd(home)
    disk = CountingDisk()
    store = FileStore(home, disk=disk)
    try:
        assert [summary.id for summary in (await store.page()).sessions] == crowd.ids()[:PAGE_SESSIONS]
        assert disk.opened < MANY_UNKNOWN
        async with asyncio.timeout(30):
            while disk.opened < MANY_UNKNOWN + 200:
                await asyncio.to_thread(int)
        await store.page(cursor=(await store.page()).next_cursor)
        opened = disk.opened
        assert await walk(store) == crowd.ids()
        assert disk.opened == opened, "the index has them all"
    finally:
        await store.close()
