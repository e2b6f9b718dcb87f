"""A viewer that comes to a session again, or to one that was made of another: it misses nothing."""

import asyncio
import json

from tests.bridge.viewers import PATIENCE_S, GatedDisk, agent, events_of, join, serve, steps_text
from tests.waiting import until


def heard(viewer):
    return [(update["sessionUpdate"], update["content"]["text"]) for update in viewer.updates()]


async def test_a_viewer_that_loads_its_own_session_again_sees_what_it_said(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"say": "yes"})
        one.forget()
        await one.load(session)
        said = steps_text({"say": "yes"})
        assert heard(one) == [("user_message_chunk", said), ("agent_message_chunk", "yes")]


async def test_a_viewer_that_resumes_where_it_is_misses_nothing(tmp_path):
    async with serve(tmp_path) as served:
        one, two = await join(served), await join(served)
        session = await one.new()
        await two.load(session)
        await one.prompt(session, {"flood": 50})
        await two.load(session, method="session/resume")
        assert two.said() == [str(number) for number in range(50)]


async def test_what_a_fork_says_at_once_reaches_whoever_asked_for_it(tmp_path):
    async with serve(tmp_path, agent(early=True, late=True)) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"say": "of the parent"})
        answer = await one.ask("session/fork", {"sessionId": session, "cwd": "/work", "mcpServers": []})
        fork = answer["result"]["sessionId"]
        await one.prompt(fork, {"say": "of the fork"})
        assert one.said(fork) == ["early", "late", "of the fork"]


async def test_a_viewer_that_goes_back_while_history_is_being_read_misses_nothing(tmp_path):
    disk = GatedDisk()
    async with serve(tmp_path, disk=disk, tail_bytes=1_000) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"flood": 200})
        two = await join(served)
        middle = f"{served.registry.sessions[session].journal.epoch}.100"
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
    """Have a session loaded over HTTP, and give the two streams."""
    one = await join(served)
    session = await one.new()
    await one.prompt(session, {"say": "before"})
    viewer = served.open_viewer()
    await viewer.greet(line(0, "initialize", {"protocolVersion": 1}))
    answers, replay = viewer.connection_stream(None), viewer.session_stream(session, None)
    waiting = asyncio.ensure_future(answers.take())
    viewer.receive(line(1, "session/load", {"sessionId": session, "cwd": "/work", "mcpServers": []}))
    return waiting, replay


async def is_answered(waiting):
    for _ in range(10):
        await asyncio.sleep(0)
    return waiting.done()


async def test_over_http_a_load_is_answered_once_its_replay_was_sent(tmp_path):
    async with serve(tmp_path) as served, asyncio.timeout(PATIENCE_S):
        waiting, replay = await begin_to_load(served)
        while b"before" not in events_of(await replay.take())[-1].data:
            pass
        assert not await is_answered(waiting)
        reading_on = asyncio.ensure_future(replay.take())
        (answer,) = events_of(await waiting)
        assert json.loads(answer.data)["id"] == 1
        reading_on.cancel()


async def test_over_http_a_load_is_answered_when_the_stream_of_its_replay_ends(tmp_path):
    async with serve(tmp_path) as served, asyncio.timeout(PATIENCE_S):
        waiting, replay = await begin_to_load(served)
        assert not await is_answered(waiting)
        replay.end()
        (answer,) = events_of(await waiting)
        assert json.loads(answer.data)["id"] == 1
