"""Servers that crash during a session."""

import asyncio

import pytest

from tests.assistant.servers.talking import call, said, stdio, talking, text
from tests.waiting import until


@pytest.mark.parametrize("place_of_crash", ["call", "answer"])
async def test_crash_fails_the_call_with_its_reason_and_restarts_the_server(place, tmp_path, place_of_crash):
    server = stdio(crash_at=place_of_crash, crash_once=str(tmp_path / "crashed"), crash_stderr="out of memory")
    replies = [call("one__echo", text="a"), text("went on"), call("one__echo", text="b"), text()]
    async with talking(place, *replies, servers=[server]) as (talk, model):
        turn = await talk.ask()
        assert turn.call["status"] == "failed"
        assert "one failed: " in said(turn.call)
        assert "code 3" in said(turn.call)
        assert "out of memory" in said(turn.call)
        assert (turn.stop, turn.text) == ("end_turn", "went on")
        assert "out of memory" in model.results()[0].text
        await talk.until("ready")
        assert said((await talk.ask()).call) == "b"
        assert [status["state"] for [status] in talk.news()] == ["ready", "connecting", "ready"]


async def test_next_request_after_a_crash_has_the_tools_again(place, tmp_path):
    server = stdio(crash_at="call", crash_once=str(tmp_path / "crashed"), delay_s={"initialize": 0.1})
    replies = [call("one__echo", text="a"), call("one__echo", text="b"), text()]
    async with talking(place, *replies, servers=[server]) as (talk, model):
        turn = await talk.ask()
        assert model.tools() == [["one__echo"]] * 3
        assert [each["status"] for each in turn.calls] == ["failed", "completed"]


async def test_repeatedly_crashing_server_is_not_restarted_forever(place, tmp_path):
    pids = tmp_path / "pids"
    server = stdio(crash_at="call", crash_stderr="no luck", pid_file=str(pids))
    replies = [call("one__echo"), text(), call("one__echo"), text(), text("on")]
    async with talking(place, *replies, servers=[server]) as (talk, model):
        await talk.ask()
        await talk.until("ready")
        assert (await talk.ask()).call["status"] == "failed"
        await talk.until("failed")
        assert len(pids.read_text().split()) == 2
        turn = await talk.ask()
        [notice] = turn.notices
        assert notice.startswith("The MCP server one failed\n")
        assert "no luck" in notice
        assert turn.text == "on"
        assert model.tools()[-1] == []


async def test_server_crashing_in_every_list_is_not_restarted_forever(place, tmp_path):
    pids = tmp_path / "pids"
    async with talking(place, servers=[stdio(crash_at="list", pid_file=str(pids))], wait=False) as (talk, _):
        await talk.until("failed")
        assert len(pids.read_text().split()) == 1


async def test_crash_does_not_affect_other_servers(place):
    servers = [stdio(crash_at="call"), stdio("two")]
    both = call("one__echo") + call("two__echo", text="still here")
    async with talking(place, both, text(), servers=servers) as (talk, _):
        crashed, other = (await talk.ask()).calls
        assert crashed["status"] == "failed"
        assert said(other) == "still here"


async def test_server_killed_between_turns_is_back_for_the_next(place, tmp_path):
    pids = tmp_path / "pids"
    async with talking(place, call("one__echo", text="hi"), text(), servers=[stdio(pid_file=str(pids))]) as (talk, _):
        await asyncio.create_subprocess_exec("kill", "-9", *pids.read_text().split())
        await talk.client.wait_for(lambda _: len(talk.news()) > 2)
        await talk.until("ready")
        await until(lambda: len(pids.read_text().split()) == 2)
        assert said((await talk.ask()).call) == "hi"
