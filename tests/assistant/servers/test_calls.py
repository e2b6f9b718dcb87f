"""Tool calls: what reaches the client and the model, and how calls end."""

import asyncio
import json
import logging

import pytest

from dragoman.mcp import client as mcp_client
from dragoman.protocol import v1
from tests.assistant.servers.talking import call, said, stdio, talking, text, write_agent_file
from tests.mcp.servers.commands import scripted_http
from tests.waiting import PATIENCE_S, until


def at(kind, address):
    make = v1.McpServerHttp if kind == "mcp" else v1.McpServerSse
    return make(name="one", url=f"{address}/{kind}", headers=[])


async def test_call_reaches_the_server_and_its_result_the_model(place):
    async with talking(place, call("one__echo", text="hi"), text(), servers=[stdio()]) as (talk, model):
        turn = await talk.ask()
        assert (turn.call["title"], turn.call["status"], said(turn.call)) == ("one: echo", "completed", "hi")
        assert turn.call["raw_input"] == {"text": "hi"}
        [result] = model.results()
        assert (result.text, result.failed) == ("hi", False)


@pytest.mark.parametrize("kind", ["mcp", "sse"])
async def test_servers_at_urls_are_called(place, kind):
    with scripted_http() as address:
        async with talking(place, call("one__echo", text="hi"), text(), servers=[at(kind, address)]) as (talk, _):
            assert said((await talk.ask()).call) == "hi"


KINDS = {
    "text": v1.TextContent,
    "image": v1.ImageContent,
    "audio": v1.AudioContent,
    "resource": v1.EmbeddedResource,
    "blob": v1.EmbeddedResource,
    "resource_link": v1.ResourceLink,
}


async def test_all_kinds_of_content_reach_client_and_model(place):
    replies = [part for kind in KINDS for part in call(f"one__{kind}")]
    async with talking(place, replies, text(), servers=[stdio(content_tools=True)]) as (talk, model):
        turn = await talk.ask()
        assert [type(call["content"][0].content) for call in turn.calls] == list(KINDS.values())
        results = dict(zip(KINDS, model.results(), strict=True))
        assert results["text"].text == "a text"
        assert results["text"].attachments == []
        assert "an embedded note" in results["resource"].text
        assert "memo:///linked" in results["resource_link"].text
        for kind in ("image", "audio", "resource", "blob"):
            [attachment] = results[kind].attachments
            assert isinstance(attachment, KINDS[kind])


async def test_structured_content_reaches_the_client_as_data_and_the_model_as_text(place):
    async with talking(place, call("one__structured"), text(), servers=[stdio(content_tools=True)]) as (talk, model):
        turn = await talk.ask()
        assert turn.call["raw_output"] == {"degrees": 21}
        assert json.loads(model.results()[0].text) == {"degrees": 21}


async def test_tool_error_fails_the_call(place):
    async with talking(place, call("one__error"), text(), servers=[stdio(content_tools=True)]) as (talk, model):
        turn = await talk.ask()
        assert (turn.call["status"], said(turn.call)) == ("failed", "it did not work")
        assert model.results()[0].failed
        assert turn.stop == "end_turn"


async def test_huge_result_is_complete_for_the_client_and_cut_for_the_model(place):
    size = 20 * 1024 * 1024
    async with talking(place, call("one__echo"), text(), servers=[stdio(result_bytes=size)]) as (talk, model):
        turn = await talk.ask()
        assert len(said(turn.call)) == size
        assert len(model.results()[0].text) < 1024 * 1024
        assert "were cut]" in model.results()[0].text


@pytest.mark.parametrize("kind", ["stdio", "mcp", "sse"])
async def test_progress_is_shown_in_order_before_the_result(place, kind):
    options = {"progress": 30}
    with scripted_http(options) as address:
        server = stdio(**options) if kind == "stdio" else at(kind, address)
        async with talking(place, call("one__echo", text="hi"), text(), servers=[server]) as (talk, _):
            turn = await talk.ask()
            assert turn.call["shown"][1:] == [*(f"{step} of 30: step {step}" for step in range(1, 31)), "hi"]
            assert turn.call["status"] == "completed"


async def test_server_log_goes_to_our_log_not_to_the_client(place, caplog):
    caplog.set_level(logging.INFO, "dragoman.mcp")
    log = [{"level": "warning", "data": "the disk is nearly full"}, {"level": "debug", "data": {"free": 3}}]
    async with talking(place, call("one__echo", text="hi"), text(), servers=[stdio(log=log)]) as (talk, _):
        turn = await talk.ask()
        assert said(turn.call) == "hi"
        assert "disk is nearly full" not in str(turn.updates)
    logged = [(record.levelname, record.getMessage()) for record in caplog.records if record.name == "dragoman.mcp"]
    assert ("WARNING", "one: the disk is nearly full") in logged
    assert ("INFO", "one: {'free': 3}") in logged


@pytest.mark.parametrize("kind", ["stdio", "mcp", "sse"])
async def test_cancelled_turn_cancels_the_call_at_the_server(place, tmp_path, kind):
    cancelled = tmp_path / "cancelled"
    options = {"hang_at": "call", "cancel_file": str(cancelled), "progress": 1, "log": [{"data": "begun"}]}
    options["record"] = str(tmp_path / "record")
    with scripted_http(options) as address:
        server = stdio(**options) if kind == "stdio" else at(kind, address)
        async with talking(place, call("one__echo"), text(), servers=[server]) as (talk, _):
            turn = asyncio.create_task(talk.ask())
            await until(lambda: "tools/call" in (tmp_path / "record").read_text())
            await talk.client.cancel(talk.id)
            ended = await turn
            assert (ended.stop, ended.call["status"]) == ("cancelled", "failed")
            await until(cancelled.exists)
            assert (await talk.ask()).text == "done"


async def test_call_that_times_out_is_cancelled_and_the_turn_continues(place, tmp_path):
    write_agent_file(place[1], limits={"mcp_call_timeout_s": 0.3})
    cancelled = tmp_path / "cancelled"
    server = stdio(hang_at="call", cancel_file=str(cancelled))
    async with talking(place, call("one__echo"), text("went on"), servers=[server]) as (talk, model):
        turn = await talk.ask()
        assert turn.call["status"] == "failed"
        assert "one did not answer within 0.3 s; the call was cancelled" in said(turn.call)
        assert turn.text == "went on"
        assert model.results()[0].failed
        await until(cancelled.exists)


async def test_tools_added_during_the_session_are_sent_to_the_model(place):
    server = stdio(list_changed_after_call=True)
    replies = [call("one__echo"), text(), call("one__added_1", text="new"), text()]
    async with talking(place, *replies, servers=[server]) as (talk, model):
        await talk.ask()
        await talk.until("ready", "one", tools=2)
        turn = await talk.ask()
        assert said(turn.call) == "new"
        assert model.tools()[2] == ["one__echo", "one__added_1"]


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_tool_announced_before_a_result_is_in_the_next_request(place, transport, monkeypatch):
    monkeypatch.setattr(mcp_client, "LATE_ANNOUNCEMENT_TIMEOUT_S", PATIENCE_S)
    options = {"list_changed_in_call": True, "delay_s": {"list": 0.2}}
    replies = [call("one__echo"), call("one__added_1"), call("one__added_2", text="new"), text()]
    with scripted_http(options) as address:
        http = v1.McpServerHttp(name="one", url=f"{address}/mcp", headers=[])
        server = http if transport == "http" else stdio(**options)
        async with talking(place, *replies, servers=[server]) as (talk, model):
            turn = await talk.ask()
            assert [len(tools) for tools in model.tools()] == [1, 2, 3, 4]
            assert said(turn.calls[-1]) == "new"


async def test_tools_of_all_pages_are_sent_to_the_model(place):
    async with talking(place, servers=[stdio(tools=[], tool_count=50, page_size=7)]) as (talk, model):
        await talk.ask()
        assert len(model.tools()[0]) == 50


async def test_server_runs_in_the_session_directory_with_only_its_variables(place, monkeypatch):
    monkeypatch.setenv("A_SECRET_OF_OURS", "x")
    server = stdio(echo_env=True, env={"GIVEN": "y"})
    async with talking(place, call("one__echo"), text(), servers=[server]) as (talk, _):
        there = json.loads(said((await talk.ask()).call))
        assert there["cwd"] == str(place[0])
        assert there["env"]["GIVEN"] == "y"
        assert "A_SECRET_OF_OURS" not in there["env"]
