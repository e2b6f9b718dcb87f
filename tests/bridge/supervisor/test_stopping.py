"""An agent that is being stopped or takes its time to come back, somebody who needs it just then, and the very end."""

import asyncio
import threading

import pytest

from dragoman.bridge.registry import SessionPhase
from dragoman.bridge.supervisor import process, supervisor
from dragoman.store.disk import Disk
from tests.bridge.viewers import LOADING, RESUMING, RecordedViewer, agent, bridge_of, join, serve
from tests.waiting import until


async def test_a_prompt_that_comes_while_an_idle_agent_is_being_stopped_waits_for_the_next(tmp_path):
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


async def test_what_a_slow_agent_replays_after_all_is_not_history_twice(tmp_path):
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
        await until(lambda: served.registry.sessions[session].life.phase is SessionPhase.LIVE)
        await one.prompt(session, {"say": "twice"})
        two = await join(served)
        await two.load(session)
        assert two.said() == ["once", "twice"]


async def test_a_bridge_that_is_closed_while_its_agent_starts_does_not_wait_for_it(tmp_path, monkeypatch):
    monkeypatch.setattr(supervisor, "END_TIMEOUT_S", 3600)
    async with serve(tmp_path) as served:
        RecordedViewer(served).request("initialize", {"protocolVersion": 1})
        await until(lambda: served.supervisor.status.state == "starting")


async def test_all_agents_are_told_to_end_before_any_of_them_has(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "LAST_GRACE_S", 3600)
    monkeypatch.setattr(supervisor, "CLOSE_S", 3600)
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
async def test_an_agent_that_does_not_end_by_itself_is_ended(tmp_path, ignores_sigterm):
    spec = agent(lingers=str(tmp_path / "never"), ignores_sigterm=ignores_sigterm)
    async with serve(tmp_path, spec, stop_timeout_s=3600.0) as served:
        one = await join(served)
        await one.new()
    assert served.supervisor.status.state == "stopped"


async def test_an_agent_that_was_being_stopped_at_leisure_is_ended_with_the_bridge(tmp_path):
    spec = agent(capabilities=RESUMING, lingers=str(tmp_path / "never"))
    async with serve(tmp_path, spec, idle_stop_s=0.05, stop_timeout_s=3600.0) as served:
        one = await join(served)
        await one.viewer.close()
        await until((tmp_path / "never.asked").exists)


class MeetingDisk(Disk):
    """Syncs nothing before several syncs wait at the same time, once it was told so."""

    def __init__(self, parties):
        self.barrier = threading.Barrier(parties)
        self.is_meeting = False

    def sync(self, fd):
        if self.is_meeting:
            self.barrier.wait(20)
        super().sync(fd)


class StuckDisk(Disk):
    """Does not come back from a sync, once it was told so."""

    def __init__(self):
        self.is_stuck = False
        self.gate = threading.Event()

    def sync(self, fd):
        if self.is_stuck:
            self.gate.wait(60)
        super().sync(fd)


async def test_journals_reach_the_disk_side_by_side_at_the_end(tmp_path):
    disk = MeetingDisk(parties=8)
    async with serve(tmp_path, disk=disk) as served:
        one = await join(served)
        for session in [await one.new() for _ in range(16)]:
            served.registry.sessions[session].journal.add(b'{"jsonrpc":"2.0","method":"late"}\n')
        disk.is_meeting = True
    assert not disk.barrier.broken


async def test_a_disk_that_does_not_answer_does_not_hold_up_the_end(tmp_path, caplog):
    disk = StuckDisk()
    async with serve(tmp_path, disk=disk) as served:
        one = await join(served)
        session = await one.new()
        served.registry.sessions[session].journal.add(b'{"jsonrpc":"2.0","method":"late"}\n')
        disk.is_stuck = True
    assert "1 journals were written and not synced" in caplog.text
    assert b'"late"' in served.registry.sessions[session].journal.path.read_bytes()
    disk.gate.set()
