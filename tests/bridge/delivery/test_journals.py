"""Journals: their content, what survives, and failed writes."""

import errno
import json
import os

import pytest

from dragoman.bridge import Bridge, BridgeSettings
from dragoman.bridge.delivery import file_histories
from dragoman.bridge.problem import BridgeBusyError
from dragoman.store.disk import Disk
from tests.bridge.viewers import LOADING, OPTIONS, agent, bridge_of, go_on_elsewhere, join, serve
from tests.waiting import until


class FullDisk(Disk):
    """A disk that rejects all writes once it is full."""

    full = False

    def write(self, fd, data):
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(fd, data)


class CountingDisk(Disk):
    """Counts its operations."""

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


async def test_journal_has_original_notifications_turns_and_permissions(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        session = await one.new("/work/here")
        prompt = one.start_prompt(session, {"say": "x"}, {"ask": OPTIONS}, {"stop": "max_tokens"})
        one.choose(await one.asked())
        await one.answer(prompt)
        path = served.sessions.by_id[session].history.path
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


async def test_setup_params_are_in_no_file(tmp_path):
    server = {"name": "m", "command": "x", "args": ["--key", "hunter2"], "env": [{"name": "K", "value": "hunter2"}]}
    async with serve(tmp_path) as served:
        one = await join(served)
        await one.prompt(await one.new(mcpServers=[server]), {"say": "x"})
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert b"hunter2" not in path.read_bytes()


async def test_many_updates_need_few_writes_and_one_sync_per_turn(tmp_path):
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


async def test_full_disk_warns_viewers_and_delays_writes_only(tmp_path):
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
        assert "cannot be saved" in error["data"]
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
        paths = [served.sessions.by_id[name].history.path for name in (session, other)]
    async with serve(tmp_path) as served:
        back = await join(served, extensions=True)
        await back.load(session, after=place_of(cursor))
        assert back.said() == [*map(str, range(50)), "after"]
        await back.load(session, after=interim)
        assert any(params.get("reset") for params in back.params_of("_dragoman/session"))
        assert all(b'"after"' in path.read_bytes() for path in paths)


async def test_new_journal_replaces_the_old_one_only_once_written(tmp_path):
    disk, store = FullDisk(), tmp_path / "store"
    store.mkdir()
    spec = agent(capabilities=LOADING, store=str(store))
    async with serve(tmp_path, spec) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"say": "kept"})
        path = served.sessions.by_id[session].history.path
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
        assert served.sessions.by_id[session].history.path == path
    assert path.read_bytes().count(b'"new"') == 1
    assert path.read_bytes() != before


async def test_full_disk_loses_only_updates_beyond_the_buffer(tmp_path, monkeypatch):
    monkeypatch.setattr("dragoman.store.history_file.MAX_UNWRITTEN_BYTES", 10_000)
    disk = FullDisk()
    async with serve(tmp_path, disk=disk) as served:
        one = await join(served)
        session = await one.new()
        disk.full = True
        await one.prompt(session, {"large": 20_000}, {"say": "on"})
        assert one.said()[1:] == ["on"]
        assert served.sessions.by_id[session].history.is_lost


def place_of(message):
    return message["params"]["_meta"]["dragoman"]["cursor"]


@pytest.mark.parametrize("cut", [b"torn", b"damaged"])
async def test_lost_records_invalidate_earlier_cursors(tmp_path, cut):
    async with serve(tmp_path) as served:
        one = await join(served, extensions=True)
        session = await one.new()
        await one.prompt(session, {"say": "kept"}, {"say": "lost"})
        path = served.sessions.by_id[session].history.path
        cursors = {
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
            await two.load(session, after=cursors["kept"])
            assert any(params.get("reset") for params in two.params_of("_dragoman/session"))
            assert "lost" not in two.said()


async def test_machine_restart_invalidates_earlier_cursors(tmp_path, monkeypatch):
    async with serve(tmp_path) as served:
        one = await join(served, extensions=True)
        session = await one.new()
        await one.prompt(session, {"say": "kept"})
        cursor = place_of([message for message in one.seen if message.get("method") == "session/update"][-1])
    for boot, is_reset in ((file_histories.boot_id(), False), (b"another", True)):
        monkeypatch.setattr(file_histories, "boot_id", lambda boot=boot: boot)
        async with serve(tmp_path) as served:
            two = await join(served, extensions=True)
            await two.load(session, after=cursor)
            assert any(params.get("reset") for params in two.params_of("_dragoman/session")) == is_reset
            assert two.said() == (["kept"] if is_reset else [])


async def test_torn_journal_is_repaired_and_read(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"flood": 3})
        path = served.sessions.by_id[session].history.path
    with path.open("ab") as file:
        file.write(b'{"jsonrpc":"2.0","method":"session/up')
    async with serve(tmp_path) as served:
        two = await join(served)
        await two.load(session)
        assert two.said() == ["0", "1", "2"]


async def test_foreign_files_are_left_unchanged(tmp_path):
    folder = tmp_path / "bridge" / "one"
    folder.mkdir(parents=True)
    (folder / "x.jsonl").write_bytes(b"no header\n")
    (folder / "empty.jsonl").touch()
    async with serve(tmp_path) as served:
        one = await join(served)
        assert (await one.ask("session/list"))["result"] == {"sessions": []}
    assert (folder / "x.jsonl").exists()


async def test_session_id_may_be_any_string(tmp_path):
    store = tmp_path / "store"
    (store / "a").mkdir(parents=True)
    (store / "a" / "b").touch()
    async with serve(tmp_path / "home", agent(capabilities=LOADING, store=str(store))) as served:
        one = await join(served)
        odd = "a/../a/b"
        assert "result" in await one.load(odd)
        path = served.sessions.by_id[odd].history.path
        assert path.parent == tmp_path / "home" / "bridge" / "one"
        assert path.exists()


async def test_home_belongs_to_one_bridge_at_a_time(tmp_path):
    async with bridge_of(tmp_path):
        settings = BridgeSettings(agents=(agent(),), home=tmp_path, cwd="/")
        with pytest.raises(BridgeBusyError, match=f"in use by the bridge of process {os.getpid()}"):
            async with Bridge(settings):
                pass
    async with bridge_of(tmp_path):
        pass


async def test_fork_starts_with_the_history_of_its_parent(tmp_path):
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


async def test_all_tails_together_stay_within_the_limit(tmp_path):
    async with serve(tmp_path, all_tails_bytes=45_000, tail_bytes=30_000) as served:
        one = await join(served)
        sessions = [await one.new() for _ in range(4)]
        for session in sessions:
            await one.prompt(session, {"flood": 100})
        kept = [served.sessions.by_id[session].history.tail.start == 0 for session in sessions]
        assert kept == [False, False, True, True]
        two = await join(served)
        for session in sessions:
            await two.load(session)
            assert two.said(session) == [str(number) for number in range(100)]


async def test_idle_sessions_have_no_open_files(tmp_path):
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
