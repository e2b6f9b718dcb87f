"""Journals: what is in them, what survives, and what happens when they cannot be written."""

import errno
import json
import os

import pytest

from dragoman.gateway import Gateway, Settings
from dragoman.gateway.problem import GatewayBusy
from dragoman.store.disk import Disk
from tests.gateway.hub.seeing import LOADING, OPTIONS, agent, eventually, gateway_of, hub_of, seer


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
    return [json.loads(line) for line in path.read_bytes().splitlines()[1:]]


async def test_a_journal_has_every_notification_as_it_came_and_the_turns_and_the_permissions(tmp_path):
    async with hub_of(tmp_path) as hub:
        one = await seer(hub)
        session = await one.new("/work/here")
        prompt = one.start_prompt(session, {"say": "x"}, {"ask": OPTIONS}, {"stop": "max_tokens"})
        one.choose(await one.asked())
        await one.answer(prompt)
        path = hub.sessions[session].journal.path
        seen = [line for line in one.lines if b"session/update" in line]
    header = json.loads(path.read_bytes().splitlines()[0])
    assert header["session"]["id"] == session
    assert header["session"]["cwd"] == "/work/here"
    kinds = [next(key for key in record if key not in ("seq", "time", "crc")) for record in records(path)]
    assert kinds == ["message", "turn", "message", "permission", "permission", "message", "turn"]
    for line in seen:
        assert b'"message":' + line in path.read_bytes()
    last = records(path)[-1]["turn"]
    assert (last["event"], last["stopReason"]) == ("end", "max_tokens")
    settled = records(path)[4]["permission"]
    assert (settled["event"], settled["by"], settled["toolCallId"]) == ("settled", "viewer", "c1")
    assert path.stat().st_mode & 0o777 == 0o600


async def test_what_a_session_was_opened_with_is_in_no_file(tmp_path):
    server = {"name": "m", "command": "x", "args": ["--key", "hunter2"], "env": [{"name": "K", "value": "hunter2"}]}
    async with hub_of(tmp_path) as hub:
        one = await seer(hub)
        await one.prompt(await one.new(mcpServers=[server]), {"say": "x"})
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert b"hunter2" not in path.read_bytes()


async def test_a_flood_is_written_in_few_writes_and_synced_at_the_end_of_the_turn(tmp_path):
    disk = CountingDisk()
    async with hub_of(tmp_path, disk=disk) as hub:
        one = await seer(hub)
        session = await one.new()
        before = disk.writes
        lines = [{"line": _chunk(session, number)} for number in range(2_000)]
        await one.prompt(session, {"line": "\n".join(step["line"] for step in lines)})
        assert len(one.said()) == 2_000
        assert disk.writes - before < 200
        await eventually(lambda: disk.syncs == 1)


async def test_a_full_disk_stops_no_session_and_viewers_are_told(tmp_path):
    disk = FullDisk()
    async with hub_of(tmp_path, disk=disk) as hub:
        one, two = await seer(hub), await seer(hub, marked=True)
        session = await one.new()
        await two.load(session)
        await one.prompt(session, {"say": "before"})
        await two.until(lambda message: two.said() == ["before"])
        cursor = [message for message in two.seen if message.get("method") == "session/update"][-1]
        disk.full = True
        await one.prompt(session, {"say": "after"})
        assert one.said() == ["before", "after"]
        news = await two.news(session, lambda news: "error" in news)
        assert "free some space" in news["error"]["data"]
        three = await seer(hub, marked=True)
        await three.load(session, after=cursor["params"]["_meta"]["dragoman"]["cursor"])
        assert any(params.get("reset") for params in three.told("_dragoman/session"))
        assert three.said() == ["before", "after"]
        assert await one.new() != session


async def test_a_journal_that_a_crash_has_torn_is_mended_and_read(tmp_path):
    async with hub_of(tmp_path) as hub:
        one = await seer(hub)
        session = await one.new()
        await one.prompt(session, {"flood": 3})
        path = hub.sessions[session].journal.path
    with path.open("ab") as file:
        file.write(b'{"seq":6,"time":5,"message":{"jsonrpc"')
    async with hub_of(tmp_path) as hub:
        two = await seer(hub)
        await two.load(session)
        assert two.said() == ["0", "1", "2"]


async def test_files_that_are_no_journals_are_left_alone(tmp_path):
    folder = tmp_path / "gateway" / "one"
    folder.mkdir(parents=True)
    (folder / "x.jsonl").write_bytes(b"no header\n")
    (folder / "empty.jsonl").touch()
    async with hub_of(tmp_path) as hub:
        one = await seer(hub)
        assert (await one.ask("session/list"))["result"] == {"sessions": []}
    assert (folder / "x.jsonl").exists()


async def test_session_ids_may_be_anything(tmp_path):
    store = tmp_path / "store"
    (store / "a").mkdir(parents=True)
    (store / "a" / "b").touch()
    async with hub_of(tmp_path / "home", agent(capabilities=LOADING, store=str(store))) as hub:
        one = await seer(hub)
        odd = "a/../a/b"
        assert "result" in await one.load(odd)
        path = hub.sessions[odd].journal.path
        assert path.parent == tmp_path / "home" / "gateway" / "one"
        assert path.exists()


async def test_a_failed_load_leaves_the_older_journal_alone(tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    spec = agent(capabilities=LOADING, store=str(store))
    async with hub_of(tmp_path / "home", spec) as hub:
        one = await seer(hub)
        session = await one.new()
        await one.prompt(session, {"say": "kept"})
        path = hub.sessions[session].journal.path
    before = path.read_bytes()
    (store / session).unlink()
    async with hub_of(tmp_path / "home", spec) as hub:
        two = await seer(hub)
        assert "error" in await two.load(session)
        assert path.read_bytes() == before
        assert [entry["sessionId"] for entry in (await two.ask("session/list"))["result"]["sessions"]] == [session]


async def test_one_gateway_at_a_time_has_a_home(tmp_path):
    async with gateway_of(tmp_path):
        settings = Settings(agents=(agent(),), home=tmp_path, cwd="/")
        with pytest.raises(GatewayBusy, match=f"in use by the gateway of process {os.getpid()}"):
            async with Gateway(settings):
                pass
    async with gateway_of(tmp_path):
        pass


async def test_a_fork_begins_with_the_history_of_its_parent(tmp_path):
    async with hub_of(tmp_path) as hub:
        one = await seer(hub)
        session = await one.new()
        await one.prompt(session, {"flood": 3})
        fork = (await one.ask("session/fork", {"sessionId": session, "cwd": "/work"}))["result"]["sessionId"]
        await one.prompt(fork, {"say": "more"})
        assert one.said(fork) == ["more"]
        two = await seer(hub)
        await two.load(fork)
        assert two.said(fork) == ["0", "1", "2", "more"]
        assert two.said(session) == []


async def test_all_tails_together_stay_in_bounds(tmp_path):
    async with hub_of(tmp_path, all_tails_bytes=70_000, tail_bytes=40_000) as hub:
        one = await seer(hub)
        sessions = [await one.new() for _ in range(4)]
        for session in sessions:
            await one.prompt(session, {"flood": 100})
        kept = [hub.sessions[session].journal.tail.start == 0 for session in sessions]
        assert kept == [False, False, True, True]
        two = await seer(hub)
        for session in sessions:
            await two.load(session)
            assert two.said(session) == [str(number) for number in range(100)]


async def test_sessions_that_are_not_at_work_hold_no_files_open(tmp_path):
    async with hub_of(tmp_path) as hub:
        one = await seer(hub)
        await one.new()
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(100):
            await one.prompt(await one.new(), {"say": "x"})
        await eventually(lambda: len(os.listdir("/proc/self/fd")) <= before)


def _chunk(session, number):
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": str(number)}}
    params = {"sessionId": session, "update": update}
    return json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params})
