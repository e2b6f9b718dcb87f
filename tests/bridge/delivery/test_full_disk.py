"""A bridge whose home is on a real full disk."""

import os

import pytest

from dragoman.bridge import AgentSpec
from tests.bridge.own_agent import own_agent, plain_prompt
from tests.bridge.viewers import LOADING, agent, join, serve
from tests.waiting import until

FULL = pytest.mark.parametrize("files", [False, True], ids=["no byte", "no file"])


def descriptors():
    return set(os.listdir("/proc/self/fd"))


@FULL
async def test_updates_during_a_full_disk_are_written_later(tiny_disk, tmp_path, files):
    gate, store = tmp_path / "gate", tmp_path / "store"
    store.mkdir()
    spec = agent(capabilities=LOADING, store=str(store))
    async with serve(tiny_disk.path, spec) as served:
        one = await join(served, extensions=True)
        session = await one.new()
        before = descriptors()
        turn = one.start_prompt(session, {"say": "before"}, {"until": str(gate)}, {"large": 9000}, {"say": "after"})
        await one.until(lambda _: "before" in one.said(session))
        tiny_disk.fill(files=files)
        gate.touch()
        assert (await one.answer(turn))["result"]["stopReason"] == "end_turn"
        assert one.said(session)[-1] == "after"
        refused = (await one.prompt(session, {"say": "never"}))["error"]
        assert "free some space on that disk and send this again" in refused["data"]
        fresh = await one.new()
        assert "free some space" in (await one.prompt(fresh, {"say": "never"}))["error"]["data"]
        tiny_disk.free()
        for each in (session, fresh):
            assert (await one.prompt(each, {"say": "again"}))["result"]["stopReason"] == "end_turn"
        await until(lambda: descriptors() <= before)  # the sync after a turn closes its journal
    async with serve(tiny_disk.path, spec) as served:
        two = await join(served)
        await two.load(session)
        assert two.said(session) == ["before", "x" * 9000, "after", "again"]
        await two.load(fresh)
        assert two.said(fresh) == ["again"]


@FULL
async def test_session_can_be_deleted_on_a_full_disk(tiny_disk, files):
    async with serve(tiny_disk.path) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"say": "hi"})
        path = served.sessions.by_id[session].history.path
        tiny_disk.fill(files=files)
        assert "result" in await one.ask("session/delete", {"sessionId": session})
        assert not path.exists()


@FULL
async def test_bridge_starts_and_reads_journals_on_a_full_disk(tiny_disk, files):
    async with serve(tiny_disk.path) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"say": "hi"})
    tiny_disk.fill(files=files)
    async with serve(tiny_disk.path) as served:
        two = await join(served)
        await two.load(session)
        assert two.said(session) == ["hi"]


@FULL
async def test_our_agent_and_bridge_continue_once_there_is_space(tiny_disk, tmp_path, files):
    spec = own_agent(tmp_path)
    spec = AgentSpec(spec.name, spec.command, env={"DRAGOMAN_HOME": str(tiny_disk.path)})
    async with serve(tiny_disk.path, spec) as served:
        one = await join(served)
        session = await one.new(str(tmp_path))
        assert "result" in await plain_prompt(one, session, "first")
        await one.ask("session/list", {})
        tiny_disk.fill(files=files)
        for _ in range(2):
            assert "free some space" in str((await plain_prompt(one, session, "x" * 9000))["error"])
        assert "free some space" in str(
            (await one.ask("session/new", {"cwd": str(tmp_path), "mcpServers": []}))["error"]
        )
        tiny_disk.free()
        assert (await plain_prompt(one, session, "/help"))["result"]["stopReason"] == "end_turn"
        assert await one.new(str(tmp_path))
