"""Due journals are synced together, and none is forgotten."""

import asyncio
import os
import threading

from dragoman.bridge.delivery import FileHistoryStore, TailBudget
from dragoman.bridge.viewers.delivery import HistorySync
from dragoman.store.disk import Disk


class WatchedDisk(Disk):
    """Records the size of each synced file, and the thread of the sync."""

    def __init__(self):
        self.sizes = []
        self.threads = set()

    def sync(self, fd):
        super().sync(fd)
        self.sizes.append(os.fstat(fd).st_size)
        self.threads.add(threading.get_ident())


def make_history(disk, path):
    return FileHistoryStore(disk, path.parent, TailBudget(1 << 20, 1 << 20)).create(path.stem, "/", [])


async def settle(tasks):
    while tasks:
        await tasks.pop()


async def test_due_journals_are_synced_in_one_batch(tmp_path):
    disk, tasks = WatchedDisk(), []
    sync = HistorySync(lambda work: tasks.append(asyncio.ensure_future(work)))
    histories = [make_history(disk, tmp_path / f"{number}.jsonl") for number in range(50)]
    for history in histories:
        history.append(b'{"jsonrpc":"2.0"}\n')
        sync.want(history)
        sync.want(history)
    assert len(tasks) == 1
    await settle(tasks)
    assert disk.sizes == [history.path.stat().st_size for history in histories]
    assert len(disk.threads) == 1
    assert threading.get_ident() not in disk.threads


async def test_later_writes_are_synced_in_a_later_batch(tmp_path):
    disk, tasks = WatchedDisk(), []
    sync = HistorySync(lambda work: tasks.append(asyncio.ensure_future(work)))
    history = make_history(disk, tmp_path / "one.jsonl")
    for number in range(3):
        history.append(b'{"jsonrpc":"2.0"}\n')
        sync.want(history)
        await settle(tasks)
        assert len(disk.sizes) == number + 1
        assert disk.sizes[-1] == history.path.stat().st_size
    sync.want(history)
    await settle(tasks)
    assert len(disk.sizes) == 3
    history.rest()
