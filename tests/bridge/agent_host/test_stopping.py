"""Requests during a stop or a slow restart of the agent, and the stop of the bridge."""

import asyncio
import threading

import pytest

from dragoman.bridge import agent_host, agent_link
from dragoman.bridge.sessions import SessionPhase
from dragoman.store.disk import Disk
from tests.bridge.viewers import LOADING, RESUMING, RecordedViewer, agent, bridge_of, join, serve
from tests.waiting import until


async def test_prompt_during_an_idle_stop_waits_for_the_next_agent(tmp_path):
    store, end = tmp_path / "store", tmp_path / "end"
    store.mkdir()
    spec = agent(capabilities=RESUMING, store=str(store), lingers=str(end))
    async with serve(tmp_path, spec, idle_stop_s=0.05, stop_timeout_s=20.0) as served:
        one = await join(served)
        session = await one.new()
        await one.viewer.close()
        await until((tmp_path / "end.asked").exists)
        two = await join(served)
        prompt = two.start_prompt(session, {"say": "on"})
        end.touch()
        answer = await two.answer(prompt)
        assert answer["result"]["stopReason"] == "end_turn"
        assert two.said() == ["on"]


async def test_late_replay_does_not_duplicate_history(tmp_path):
    store, gate = tmp_path / "store", tmp_path / "gate"
    store.mkdir()
    spec = agent(capabilities=LOADING, store=str(store), load_waits=str(gate))
    async with serve(tmp_path, spec, backoff_min_s=0.01, open_timeout_s=0.05) as served:
        one = await join(served, extensions=True)
        session = await one.new()
        await one.prompt(session, {"say": "once"})
        await one.prompt(session, {"exit": 1})
        for _ in range(2):
            refused = await one.prompt(session, {"say": "never"})
            assert "has not answered session/load" in refused["error"]["message"]
        gate.touch()
        await until(lambda: served.sessions.by_id[session].phase is SessionPhase.LIVE)
        await one.prompt(session, {"say": "twice"})
        two = await join(served)
        await two.load(session)
        assert two.said() == ["once", "twice"]


async def test_bridge_close_does_not_wait_for_a_starting_agent(tmp_path, monkeypatch):
    monkeypatch.setattr(agent_host, "END_TIMEOUT_S", 3600)
    async with serve(tmp_path) as served:
        RecordedViewer(served).request("initialize", {"protocolVersion": 1})
        await until(lambda: served.host.status.state == "starting")


async def test_all_agents_are_stopped_in_parallel(tmp_path, monkeypatch):
    monkeypatch.setattr(agent_link, "LAST_GRACE_S", 3600)
    monkeypatch.setattr(agent_host, "CLOSE_S", 3600)
    ends = [tmp_path / f"end{number}" for number in range(5)]
    asked = [end.with_name(f"{end.name}.asked") for end in ends]

    async def let_them_end():
        await until(lambda: all(one.exists() for one in asked))
        for end in ends:
            end.touch()

    specs = [agent(f"agent-{number}", lingers=str(end)) for number, end in enumerate(ends)]
    async with asyncio.TaskGroup() as tasks, bridge_of(tmp_path, *specs, stop_timeout_s=3600.0) as bridge:
        for spec in specs:
            await join(bridge.agent(spec.name))
        watching = tasks.create_task(let_them_end())
    assert watching.done()


@pytest.mark.parametrize("ignores_sigterm", [False, True])
async def test_agent_that_ignores_the_stop_is_killed(tmp_path, ignores_sigterm):
    spec = agent(lingers=str(tmp_path / "never"), ignores_sigterm=ignores_sigterm)
    async with serve(tmp_path, spec, stop_timeout_s=3600.0) as served:
        one = await join(served)
        await one.new()
    assert served.host.status.state == "stopped"


async def test_bridge_close_speeds_up_a_slow_agent_stop(tmp_path):
    spec = agent(capabilities=RESUMING, lingers=str(tmp_path / "never"))
    async with serve(tmp_path, spec, idle_stop_s=0.05, stop_timeout_s=3600.0) as served:
        one = await join(served)
        await one.viewer.close()
        await until((tmp_path / "never.asked").exists)


class MeetingDisk(Disk):
    """A disk that, once enabled, finishes no sync until several wait at the same time."""

    def __init__(self, parties):
        self.barrier = threading.Barrier(parties)
        self.is_meeting = False

    def sync(self, fd):
        if self.is_meeting:
            self.barrier.wait(20)
        super().sync(fd)


class StuckDisk(Disk):
    """A disk that, once enabled, never finishes a sync."""

    def __init__(self):
        self.is_stuck = False
        self.gate = threading.Event()

    def sync(self, fd):
        if self.is_stuck:
            self.gate.wait(60)
        super().sync(fd)


async def test_journals_are_synced_in_parallel_on_close(tmp_path):
    disk = MeetingDisk(parties=8)
    async with serve(tmp_path, disk=disk) as served:
        one = await join(served)
        for session in [await one.new() for _ in range(16)]:
            served.sessions.by_id[session].history.append(b'{"jsonrpc":"2.0","method":"late"}\n')
        disk.is_meeting = True
    assert not disk.barrier.broken


async def test_hanging_disk_does_not_block_close(tmp_path, caplog):
    disk = StuckDisk()
    async with serve(tmp_path, disk=disk) as served:
        one = await join(served)
        session = await one.new()
        served.sessions.by_id[session].history.append(b'{"jsonrpc":"2.0","method":"late"}\n')
        disk.is_stuck = True
    assert "1 journals were written and not synced" in caplog.text
    assert b'"late"' in served.sessions.by_id[session].history.path.read_bytes()
    disk.gate.set()
