"""Journals: what is in them, what survives, and what happens when they cannot be written."""

import errno
import json
import os

import pytest

from dragoman.bridge import Bridge, Settings
from dragoman.bridge.delivery import file_journal
from dragoman.bridge.problem import BridgeBusy
from dragoman.store.disk import Disk
from tests.bridge.viewers import LOADING, OPTIONS, agent, bridge_of, go_on_elsewhere, join, serve
from tests.waiting import until


class FullDisk(Disk):
    """A disk that takes nothing more once it is full."""

    full = False

    def write(self, fd, data):
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(fd, data)


class CountingDisk(Disk):
    """Counts what is asked of it."""

    def __init__(self):
        self.writes = self.syncs = 0

    def write(self, fd, data):
        self.writes += 1
        return super().write(fd, data)

    def sync(self, fd):
        self.syncs += 1


def records(path):
    lines = path.read_bytes().split(b"\n")[1:-1]
    return [json.loads(line) for line in lines if not line.startswith(b"\t")]


async def test_a_journal_has_every_notification_as_it_came_and_the_turns_and_the_permissions(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        session = await one.new("/work/here")
        prompt = one.start_prompt(session, {"say": "x"}, {"ask": OPTIONS}, {"stop": "max_tokens"})
        one.choose(await one.asked())
        await one.answer(prompt)
        path = served.registry.sessions[session].journal.path
        seen = [line for line in one.lines if b"session/update" in line]
    header = json.loads(path.read_bytes().splitlines()[0])
    assert header["session"]["id"] == session
    assert header["session"]["cwd"] == "/work/here"
    kinds = [next(iter(record)) for record in records(path)]
    asking = ["jsonrpc", "permission", "permission", "jsonrpc"]
    assert kinds == ["config", "jsonrpc", "turn", *asking, "jsonrpc", "turn"]
    assert records(path)[-2]["params"]["update"]["_meta"] == {"dragoman/turn": {"stopReason": "max_tokens"}}
    for line in seen:
        assert b"\n" + line + b"\n" in path.read_bytes()
    last = records(path)[-1]["turn"]
    assert (last["event"], last["stopReason"]) == ("end", "max_tokens")
    settled = records(path)[5]["permission"]
    assert (settled["event"], settled["by"], settled["toolCallId"]) == ("settled", "viewer", "c1")
    assert path.stat().st_mode & 0o777 == 0o600


async def test_what_a_session_was_opened_with_is_in_no_file(tmp_path):
    server = {"name": "m", "command": "x", "args": ["--key", "hunter2"], "env": [{"name": "K", "value": "hunter2"}]}
    async with serve(tmp_path) as served:
        one = await join(served)
        await one.prompt(await one.new(mcpServers=[server]), {"say": "x"})
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert b"hunter2" not in path.read_bytes()


async def test_a_flood_is_written_in_few_writes_and_synced_at_the_end_of_the_turn(tmp_path):
    disk = CountingDisk()
    async with serve(tmp_path, disk=disk) as served:
        one = await join(served)
        session = await one.new()
        before = disk.writes
        lines = [{"line": _chunk(session, number)} for number in range(2_000)]
        await one.prompt(session, {"line": "\n".join(step["line"] for step in lines)})
        assert len(one.said()) == 2_000
        assert disk.writes - before < 200
        await until(lambda: disk.syncs == 1)


async def test_a_full_disk_stops_no_turn_viewers_are_told_and_all_is_written_once_there_is_space(tmp_path):
    disk = FullDisk()
    async with serve(tmp_path, disk=disk, tail_bytes=100) as served:
        one, two = await join(served), await join(served, extensions=True)
        session = await one.new()
        await two.load(session)
        await one.prompt(session, {"say": "before"})
        await two.until(lambda message: two.said() == ["before"])
        cursor = [message for message in two.seen if message.get("method") == "session/update"][-1]
        disk.full = True
        await one.prompt(session, {"flood": 50})
        assert one.said() == ["before", *map(str, range(50))]
        news = await two.announced(session, lambda news: "error" in news)
        assert "free some space" in news["error"]["data"]
        error = (await one.prompt(session, {"say": "never"}))["error"]
        assert "cannot be written down" in error["data"]
        assert "free some space" in error["data"]
        three = await join(served, extensions=True)
        await three.load(session, after=place_of(cursor))
        assert three.said() == list(map(str, range(50)))
        interim = place_of([message for message in three.seen if message.get("method") == "session/update"][-3])
        other = await one.new()
        assert "free some space" in (await one.prompt(other, {"say": "never"}))["error"]["data"]
        disk.full = False
        for name in (session, other):
            assert "result" in await one.prompt(name, {"say": "after"})
        two.forget()
        await two.announced(session, lambda news: "error" not in news)
        four = await join(served, extensions=True)
        await four.load(session, after=interim)
        assert four.said() == ["48", "49", "after"]
        paths = [served.registry.sessions[name].journal.path for name in (session, other)]
    async with serve(tmp_path) as served:
        back = await join(served, extensions=True)
        await back.load(session, after=place_of(cursor))
        assert back.said() == [*map(str, range(50)), "after"]
        await back.load(session, after=interim)
        assert any(params.get("reset") for params in back.told("_dragoman/session"))
        assert all(b'"after"' in path.read_bytes() for path in paths)


async def test_a_journal_that_finds_no_space_takes_the_place_of_an_older_one_only_once_it_is_there(tmp_path):
    disk, store = FullDisk(), tmp_path / "store"
    store.mkdir()
    spec = agent(capabilities=LOADING, store=str(store))
    async with serve(tmp_path, spec) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"say": "kept"})
        path = served.registry.sessions[session].journal.path
    before = path.read_bytes()
    go_on_elsewhere(store, session, turns=2)
    async with serve(tmp_path, spec, disk=disk) as served:
        two = await join(served)
        disk.full = True
        await two.load(session)
        assert "error" in await two.prompt(session, {"say": "never"})
        assert path.read_bytes() == before
        disk.full = False
        await two.prompt(session, {"say": "new"})
        assert two.said() == ["kept", "answer 0", "answer 1", "new"]
        assert served.registry.sessions[session].journal.path == path
    assert path.read_bytes().count(b'"new"') == 1
    assert path.read_bytes() != before


async def test_a_disk_that_stays_full_loses_only_what_is_too_much_to_hold(tmp_path, monkeypatch):
    monkeypatch.setattr(file_journal, "MAX_UNWRITTEN_BYTES", 10_000)
    disk = FullDisk()
    async with serve(tmp_path, disk=disk) as served:
        one = await join(served)
        session = await one.new()
        disk.full = True
        await one.prompt(session, {"large": 20_000}, {"say": "on"})
        assert one.said()[1:] == ["on"]
        assert served.registry.sessions[session].journal.is_lost


def place_of(message):
    return message["params"]["_meta"]["dragoman"]["cursor"]


@pytest.mark.parametrize("cut", [b"torn", b"damaged"])
async def test_a_journal_of_which_something_was_lost_fits_no_cursor_from_before(tmp_path, cut):
    async with serve(tmp_path) as served:
        one = await join(served, extensions=True)
        session = await one.new()
        await one.prompt(session, {"say": "kept"}, {"say": "lost"})
        path = served.registry.sessions[session].journal.path
        told = {
            message["params"]["update"]["content"]["text"]: place_of(message)
            for message in one.seen[-6:]
            if message.get("method") == "session/update"
        }
    data = path.read_bytes()
    at = data.index(b'"lost"')
    path.write_bytes(data[:at] if cut == b"torn" else data[:at] + b"#" + data[at + 1 :])
    for _ in range(2):
        async with serve(tmp_path) as served:
            two = await join(served, extensions=True)
            await two.load(session, after=told["kept"])
            assert any(params.get("reset") for params in two.told("_dragoman/session"))
            assert "lost" not in two.said()


async def test_a_journal_fits_no_cursor_from_before_the_machine_was_started_again(tmp_path, monkeypatch):
    async with serve(tmp_path) as served:
        one = await join(served, extensions=True)
        session = await one.new()
        await one.prompt(session, {"say": "kept"})
        cursor = place_of([message for message in one.seen if message.get("method") == "session/update"][-1])
    for boot, is_reset in ((file_journal.boot_id(), False), (b"another", True)):
        monkeypatch.setattr(file_journal, "boot_id", lambda boot=boot: boot)
        async with serve(tmp_path) as served:
            two = await join(served, extensions=True)
            await two.load(session, after=cursor)
            assert any(params.get("reset") for params in two.told("_dragoman/session")) == is_reset
            assert two.said() == (["kept"] if is_reset else [])


async def test_a_journal_that_a_crash_has_torn_is_mended_and_read(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"flood": 3})
        path = served.registry.sessions[session].journal.path
    with path.open("ab") as file:
        file.write(b'{"jsonrpc":"2.0","method":"session/up')
    async with serve(tmp_path) as served:
        two = await join(served)
        await two.load(session)
        assert two.said() == ["0", "1", "2"]


async def test_files_that_are_no_journals_are_left_alone(tmp_path):
    folder = tmp_path / "bridge" / "one"
    folder.mkdir(parents=True)
    (folder / "x.jsonl").write_bytes(b"no header\n")
    (folder / "empty.jsonl").touch()
    async with serve(tmp_path) as served:
        one = await join(served)
        assert (await one.ask("session/list"))["result"] == {"sessions": []}
    assert (folder / "x.jsonl").exists()


async def test_session_ids_may_be_anything(tmp_path):
    store = tmp_path / "store"
    (store / "a").mkdir(parents=True)
    (store / "a" / "b").touch()
    async with serve(tmp_path / "home", agent(capabilities=LOADING, store=str(store))) as served:
        one = await join(served)
        odd = "a/../a/b"
        assert "result" in await one.load(odd)
        path = served.registry.sessions[odd].journal.path
        assert path.parent == tmp_path / "home" / "bridge" / "one"
        assert path.exists()


async def test_one_bridge_at_a_time_has_a_home(tmp_path):
    async with bridge_of(tmp_path):
        settings = Settings(agents=(agent(),), home=tmp_path, cwd="/")
        with pytest.raises(BridgeBusy, match=f"in use by the bridge of process {os.getpid()}"):
            async with Bridge(settings):
                pass
    async with bridge_of(tmp_path):
        pass


async def test_a_fork_begins_with_the_history_of_its_parent(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"flood": 3})
        fork = (await one.ask("session/fork", {"sessionId": session, "cwd": "/work"}))["result"]["sessionId"]
        await one.prompt(fork, {"say": "more"})
        assert one.said(fork) == ["more"]
        two = await join(served)
        await two.load(fork)
        assert two.said(fork) == ["0", "1", "2", "more"]
        assert two.said(session) == []


async def test_all_tails_together_stay_in_bounds(tmp_path):
    async with serve(tmp_path, all_tails_bytes=45_000, tail_bytes=30_000) as served:
        one = await join(served)
        sessions = [await one.new() for _ in range(4)]
        for session in sessions:
            await one.prompt(session, {"flood": 100})
        kept = [served.registry.sessions[session].journal.tail.start == 0 for session in sessions]
        assert kept == [False, False, True, True]
        two = await join(served)
        for session in sessions:
            await two.load(session)
            assert two.said(session) == [str(number) for number in range(100)]


async def test_sessions_that_are_not_at_work_hold_no_files_open(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        await one.new()
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(100):
            await one.prompt(await one.new(), {"say": "x"})
        await until(lambda: len(os.listdir("/proc/self/fd")) <= before)


def _chunk(session, number):
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": str(number)}}
    params = {"sessionId": session, "update": update}
    return json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params})
