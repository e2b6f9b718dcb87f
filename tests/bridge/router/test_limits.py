"""Every queue of the bridge has a limit, even against hostile viewers and agents."""

import asyncio
import json

from dragoman.bridge.viewers import ViewerAccess
from tests.bridge.viewers import RecordedViewer, agent, bridge_of, join, serve
from tests.waiting import until


async def test_requests_with_a_null_id_count_against_the_limit(tmp_path):
    gate = tmp_path / "gate"
    async with serve(tmp_path, max_requests=4) as served:
        one = await join(served)
        session = await one.new()
        one.start_prompt(session, {"until": str(gate)})
        for _ in range(4):
            one.send({"id": None, "method": "_echo", "params": {}})
        refused = await one.until(lambda message: message.get("id", 1) is None)
        assert "4 requests" in refused["error"]["data"]
        gate.touch()
        await one.until(lambda _: len([m for m in one.seen if m.get("id", 1) is None]) == 4)
        one.forget()
        one.send({"id": None, "method": "_echo", "params": {"again": 1}})
        assert (await one.until(lambda message: message.get("id", 1) is None))["result"] == {"again": 1}


async def test_second_initialize_during_the_first_is_refused(tmp_path):
    async with serve(tmp_path, agent(initialize="never")) as served:
        one = RecordedViewer(served)
        one.request("initialize", {"protocolVersion": 1})
        second = one.request("initialize", {"protocolVersion": 1})
        assert "still running" in (await one.answer(second))["error"]["data"]


async def test_unread_http_answers_do_not_pile_up(tmp_path):
    async with bridge_of(tmp_path, window_bytes=10_000) as bridge:
        served = bridge.agent()
        one = await join(served)
        session = await one.new()
        viewer = served.open_viewer(ViewerAccess(read_only=True))
        greeting = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
        await viewer.greet(json.dumps(greeting).encode())
        params = {"sessionId": session, "cwd": "/work", "mcpServers": []}
        for number in range(10_000):
            load = {"jsonrpc": "2.0", "id": number, "method": "session/load", "params": params}
            viewer.receive(json.dumps(load).encode())
        assert viewer.closed.is_set()
        assert "unread" in viewer.close_reason


async def test_reading_viewer_gets_a_large_answer_and_its_updates(tmp_path):
    async with serve(tmp_path, window_bytes=10_000) as served:
        one = await join(served, extensions=True)
        session = await one.new()
        await one.prompt(session, {"large": 50_000})
        reading = asyncio.ensure_future(one.answer("last"))
        await until(lambda: one.stream.is_hungry)
        large = one.request("_dragoman/inspect", {"on": True})
        one.send({"id": "last", "method": "_dragoman/sessions"})
        assert "result" in await reading
        assert len(json.dumps(await one.answer(large))) > 50_000


async def test_notifications_to_a_stalled_agent_do_not_pile_up(tmp_path):
    gate = tmp_path / "gate"
    async with serve(tmp_path, max_line_bytes=100_000) as served:
        one = await join(served)
        session = await one.new()
        prompt = one.start_prompt(session, {"say": "here"}, {"until": str(gate)})
        await one.until(lambda _: one.said() == ["here"])
        for _ in range(100):
            one.send({"method": "_much", "params": {"text": "x" * 10_000}})
        assert 100_000 < served.host.unsent_bytes < 150_000
        gate.touch()
        assert "result" in await one.answer(prompt)
