"""Messages beyond the limits of length or depth: every wait for them ends."""

import json

import pytest

from tests.bridge.viewers import join, serve

LIMIT = 100_000
LONG = "y" * (2 * LIMIT)


async def test_answer_that_is_too_long_becomes_an_error(tmp_path):
    async with serve(tmp_path, max_line_bytes=LIMIT) as served:
        one = await join(served)
        error = (await one.ask("_echo", {"x": LONG}))["error"]
        assert "longer than the limit of 100000 bytes" in error["message"]
        assert "request less" in error["data"]["problem"]
        assert (await one.ask("_echo", {"x": 1}))["result"] == {"x": 1}


async def test_agent_request_that_is_too_long_is_refused(tmp_path):
    async with serve(tmp_path, max_line_bytes=LIMIT) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"request": ["_much", {"x": LONG}]})
        assert "longer than the limit of 100000 bytes" in json.loads(one.said()[0])["error"]["data"]


async def test_update_that_is_too_long_is_dropped_with_a_notice(tmp_path):
    async with serve(tmp_path, max_line_bytes=LIMIT) as served:
        one = await join(served, extensions=True)
        session = await one.new()
        await one.prompt(session, {"large": 2 * LIMIT}, {"say": "after"})
        assert one.said() == ["after"]
        notice = await one.until(lambda message: "longer than" in message.get("params", {}).get("reason", ""))
        assert notice["method"] == "_dragoman/agent"
        assert notice["params"]["state"] == "ready"


async def test_answer_nested_too_deeply_becomes_an_error(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        error = (await one.ask("_echo", {"x": "DEEP"}))["error"]
        assert "nested deeper than 200 levels" in error["message"]
        assert (await one.ask("_echo", {"x": 1}))["result"] == {"x": 1}


async def test_agent_request_nested_too_deeply_is_refused(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"request": ["_deep", {"x": "DEEP"}]})
        assert "nested deeper than 200 levels" in json.loads(one.said()[0])["error"]["message"]


@pytest.mark.parametrize(
    "line",
    ['{"jsonrpc":"2.0","id":9,"method":"x","params":DEEP}', '{"jsonrpc":"2.0","method":"x","params":DEEP,"id":9}'],
)
async def test_deeply_nested_request_is_refused_with_its_id(tmp_path, line):
    async with serve(tmp_path) as served:
        one = await join(served)
        one.send(line.replace("DEEP", "[" * 1_000 + "]" * 1_000).encode())
        answer = await one.answer(9)
        assert "nested deeper than 200 levels" in answer["error"]["message"]


async def test_request_that_is_too_long_is_refused_with_its_id(tmp_path):
    async with serve(tmp_path, max_message_bytes=10_000) as served:
        one = await join(served)
        one.send({"method": "x", "params": {"y": "y" * 10_000}, "id": 9})
        assert "longer than the limit of 10000 bytes" in (await one.answer(9))["error"]["message"]
