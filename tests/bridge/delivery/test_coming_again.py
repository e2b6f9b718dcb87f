"""A viewer that returns to a session, or opens a fork, misses nothing."""

import asyncio
import json

from tests.bridge.viewers import PATIENCE_S, GatedDisk, agent, events_of, join, serve, steps_text
from tests.waiting import until


def chunks_of(viewer):
    return [(update["sessionUpdate"], update["content"]["text"]) for update in viewer.updates()]


async def test_second_load_by_a_viewer_shows_its_own_prompts(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"say": "yes"})
        one.forget()
        await one.load(session)
        said = steps_text({"say": "yes"})
        assert chunks_of(one) == [("user_message_chunk", said), ("agent_message_chunk", "yes")]


async def test_resume_at_the_current_position_misses_nothing(tmp_path):
    async with serve(tmp_path) as served:
        one, two = await join(served), await join(served)
        session = await one.new()
        await two.load(session)
        await one.prompt(session, {"flood": 50})
        await two.load(session, method="session/resume")
        assert two.said() == [str(number) for number in range(50)]


async def test_early_updates_of_a_fork_reach_its_viewer(tmp_path):
    async with serve(tmp_path, agent(early=True, late=True)) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"say": "of the parent"})
        answer = await one.ask("session/fork", {"sessionId": session, "cwd": "/work", "mcpServers": []})
        fork = answer["result"]["sessionId"]
        await one.prompt(fork, {"say": "of the fork"})
        assert one.said(fork) == ["early", "late", "of the fork"]


async def test_history_part_is_read_once(tmp_path):
    disk = GatedDisk()
    async with serve(tmp_path, disk=disk, tail_bytes=1_000) as served:
        one, two = await join(served), await join(served, extensions=True)
        session = await one.new()
        await one.prompt(session, {"flood": 200})
        disk.shut()
        loading = asyncio.ensure_future(two.load(session))
        await until(lambda: disk.waited == 1)
        for _ in range(5):
            await one.prompt(session)  # each prompt wakes the stream of the other viewer
        waited = disk.waited
        disk.open_gate()
        await loading
        await two.until(lambda _: len(two.said()) == 200)
        assert waited == 1


async def test_second_load_during_a_history_read_misses_nothing(tmp_path):
    disk = GatedDisk()
    async with serve(tmp_path, disk=disk, tail_bytes=1_000) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"flood": 200})
        two = await join(served)
        middle = f"{served.sessions.by_id[session].history.epoch}.100"
        disk.shut()
        two.request("session/load", {"sessionId": session, "cwd": "/work", "_meta": {"dragoman": {"after": middle}}})
        taking = asyncio.ensure_future(two.more())
        await until(lambda: disk.waited == 1)
        again = two.request("session/load", {"sessionId": session, "cwd": "/work", "mcpServers": []})
        disk.let_one_through()
        await until(lambda: taking.done() or disk.waited > 1)
        disk.open_gate()
        await taking
        await two.answer(again)
        assert two.said()[-200:] == [str(number) for number in range(200)]


def line(number, method, params):
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()


async def begin_to_load(served):
    """Start to load a session over HTTP. Return the viewer, the wait for its answer, and the session's stream."""
    one = await join(served)
    session = await one.new()
    await one.prompt(session, {"say": "before"})
    viewer = served.open_viewer()
    await viewer.greet(line(0, "initialize", {"protocolVersion": 1}))
    answers, replay = viewer.connection_stream(None), viewer.session_stream(session, None)
    waiting = asyncio.ensure_future(answers.next_batch())
    viewer.receive(line(1, "session/load", {"sessionId": session, "cwd": "/work", "mcpServers": []}))
    return viewer, waiting, replay


async def is_answered(waiting):
    for _ in range(10):
        await asyncio.sleep(0)
    return waiting.done()


async def test_http_load_is_answered_after_its_replay(tmp_path):
    async with serve(tmp_path) as served, asyncio.timeout(PATIENCE_S):
        _, waiting, replay = await begin_to_load(served)
        while b"before" not in events_of(await replay.next_batch())[-1].data:
            pass
        assert not await is_answered(waiting)
        reading_on = asyncio.ensure_future(replay.next_batch())
        (answer,) = events_of(await waiting)
        assert json.loads(answer.data)["id"] == 1
        reading_on.cancel()


async def test_http_load_is_answered_when_the_replay_stream_ends(tmp_path):
    async with serve(tmp_path) as served, asyncio.timeout(PATIENCE_S):
        _, waiting, replay = await begin_to_load(served)
        assert not await is_answered(waiting)
        replay.end()
        (answer,) = events_of(await waiting)
        assert json.loads(answer.data)["id"] == 1


async def test_stream_without_an_id_repeats_what_came_before_a_resume(tmp_path):
    async with serve(tmp_path) as served, asyncio.timeout(PATIENCE_S):
        viewer, waiting, replay = await begin_to_load(served)
        while b"before" not in (event := events_of(await replay.next_batch())[-1].data):
            pass
        session = json.loads(event)["params"]["sessionId"]
        reading_on = asyncio.ensure_future(replay.next_batch())
        await waiting
        answers = viewer.connection_stream(None)
        viewer.receive(line(2, "session/resume", {"sessionId": session, "cwd": "/work", "mcpServers": []}))
        while json.loads(events_of(await answers.next_batch())[-1].data)["id"] != 2:
            pass
        again = viewer.session_stream(session, None)
        assert b"before" in b"".join(event.data for event in events_of(await again.next_batch()))
        reading_on.cancel()
