"""Journals that are due go to the disk together, and none is forgotten."""

import asyncio
import os
import threading

from dragoman.bridge.delivery.delivery import JournalSync
from dragoman.bridge.delivery.file_journal import FileJournal
from dragoman.bridge.delivery.journal import make_header
from dragoman.bridge.delivery.runs import TailBudget
from dragoman.store.disk import Disk


class WatchedDisk(Disk):
    """Notes how many bytes each synced file had, and where that was done."""

    def __init__(self):
        self.sizes = []
        self.threads = set()

    def sync(self, fd):
        super().sync(fd)
        self.sizes.append(os.fstat(fd).st_size)
        self.threads.add(threading.get_ident())


def make_journal(disk, path):
    return FileJournal.create(disk, path, make_header(path.stem, "/", []), TailBudget(1 << 20, 1 << 20))


async def settle(tasks):
    while tasks:
        await tasks.pop()


async def test_all_journals_that_are_due_go_in_one_trip(tmp_path):
    disk, tasks = WatchedDisk(), []
    sync = JournalSync(lambda work: tasks.append(asyncio.ensure_future(work)))
    journals = [make_journal(disk, tmp_path / f"{number}.jsonl") for number in range(50)]
    for journal in journals:
        journal.add(b'{"jsonrpc":"2.0"}\n')
        sync.want(journal)
        sync.want(journal)
    assert len(tasks) == 1
    await settle(tasks)
    assert disk.sizes == [journal.file.size for journal in journals]
    assert len(disk.threads) == 1
    assert threading.get_ident() not in disk.threads


async def test_what_comes_later_goes_in_a_later_trip_and_what_is_synced_stays(tmp_path):
    disk, tasks = WatchedDisk(), []
    sync = JournalSync(lambda work: tasks.append(asyncio.ensure_future(work)))
    journal = make_journal(disk, tmp_path / "one.jsonl")
    for number in range(3):
        journal.add(b'{"jsonrpc":"2.0"}\n')
        sync.want(journal)
        await settle(tasks)
        assert len(disk.sizes) == number + 1
        assert disk.sizes[-1] == journal.file.size
    sync.want(journal)
    await settle(tasks)
    assert len(disk.sizes) == 3
    journal.close()
