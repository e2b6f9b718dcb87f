"""Neither the disk nor the decoding of many lines blocks the event loop."""

import os
import threading

from dragoman.bridge.delivery import history_store
from dragoman.bridge.router import inspection
from dragoman.store.disk import Disk
from tests.bridge.viewers import LOADING, agent, join, serve
from tests.waiting import until


class WatchedDisk(Disk):
    """Records the thread of each sync."""

    def __init__(self):
        self.threads = []

    def sync(self, fd):
        self.threads.append(threading.current_thread())
        super().sync(fd)


async def test_reused_session_id_syncs_in_a_thread(tmp_path):
    spec = agent(session_id="same")
    async with serve(tmp_path, spec) as served:
        await (await join(served)).new()
    disk = WatchedDisk()
    async with serve(tmp_path, spec, disk=disk) as served:
        one = await join(served)
        assert served.delivery.histories.stored
        assert await one.new() == "same"
        assert disk.threads, "the journal replaced another before it was on the disk"
        assert await one.new() == "same"
        await one.prompt("same", {"say": "hi"})
        path = served.sessions.by_id["same"].history.path
        assert threading.current_thread() not in disk.threads
    assert path.suffix == ".jsonl"
    async with serve(tmp_path, spec) as served:
        two = await join(served)
        await two.load("same")
        assert two.said() == ["hi"]


async def test_journals_are_searched_in_a_thread(tmp_path, monkeypatch):
    threads = []

    def watch(name):
        original = getattr(os, name)

        def noted(path="."):
            if str(path).startswith(str(tmp_path)):
                threads.append(threading.current_thread())
            return original(path)

        monkeypatch.setattr(os, name, noted)

    watch("scandir")
    watch("listdir")
    for _ in range(2):
        async with serve(tmp_path, agent(capabilities=LOADING, store=str(tmp_path))) as served:
            one = await join(served)
            scanned = len(threads)
            assert scanned
            await one.ask("session/delete", {"sessionId": await one.new()})
            await until(lambda scanned=scanned: len(threads) > scanned)
    assert threading.current_thread() not in threads


async def test_forked_history_is_read_in_a_thread(tmp_path, monkeypatch):
    threads = []

    def noted(line, session_id, rename=history_store.rename_session):
        threads.append(threading.current_thread())
        return rename(line, session_id)

    monkeypatch.setattr(history_store, "rename_session", noted)
    async with serve(tmp_path) as served:
        one, two = await join(served), await join(served)
        session = await one.new()
        await one.prompt(session, {"flood": 100})
        fork = (await one.ask("session/fork", {"sessionId": session, "cwd": "/work"}))["result"]["sessionId"]
        await two.load(fork)
        assert two.said() == [str(number) for number in range(100)]
    assert len(threads) > 100
    assert threading.current_thread() not in threads


async def test_recorded_lines_are_decoded_in_a_thread(tmp_path, monkeypatch):
    threads = []

    def noted(line, hide=inspection.hide_secrets):
        threads.append(threading.current_thread())
        return hide(line)

    monkeypatch.setattr(inspection, "hide_secrets", noted)
    async with serve(tmp_path) as served:
        one = await join(served, extensions=True)
        await one.prompt(await one.new(), {"say": "x"})
        entries = (await one.ask("_dragoman/inspect", {"on": True}))["result"]["entries"]
    assert len(threads) == len(entries) > 3
    assert threading.current_thread() not in threads
