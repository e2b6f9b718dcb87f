"""The command `/mcp`: the table of servers, and changes to them."""

import asyncio

import pytest

from tests.assistant.servers.talking import (
    call,
    in_file,
    stdio,
    surroundings,
    talking,
    text,
    write_agent_file,
)
from tests.mcp.servers.commands import scripted
from tests.proc.processes import alive, announced


async def test_mcp_command_shows_a_table_of_servers(place):
    servers = [stdio(), stdio("bad", crash_at="start", crash_stderr="no licence"), stdio("hung", hang_at="list")]
    async with talking(place, servers=servers, wait=False) as (talk, model):
        await talk.until("ready", "one")
        await talk.until("failed", "bad")
        shown = (await talk.ask("/mcp")).text
        rows = {row.split("|")[1].strip(): row for row in shown.splitlines() if row.startswith("|")}
        assert "client | ready | 1 |" in rows["one"]
        assert "**failed** | 0 |" in rows["bad"]
        assert "connecting… | 0 |" in rows["hung"]
        assert "no licence" in shown
        assert model.requests == []


async def test_session_without_servers_explains_how_to_add_some(place):
    async with talking(place) as (talk, _):
        assert "`/mcp add`" in (await talk.ask("/mcp")).text


async def test_user_restarts_a_server(place, tmp_path):
    server = stdio("bad", crash_at="start", crash_once=str(tmp_path / "crashed"))
    async with talking(place, servers=[server], wait=False) as (talk, model):
        await talk.until("failed", "bad")
        assert (await talk.ask("/mcp restart bad")).text.endswith("bad is ready, with 1 tools.")
        await talk.ask()
        assert model.tools() == [["bad__echo"]]


async def test_failed_restart_shows_the_reason(place):
    async with talking(place, servers=[stdio("bad", crash_at="start", crash_stderr="still no")], wait=False) as (
        talk,
        _,
    ):
        await talk.until("failed", "bad")
        await talk.ask()
        turn = await talk.ask("/mcp restart bad")
        assert "bad failed again:" in turn.text
        assert "still no" in turn.text
        assert (await talk.ask()).text == "done"


async def test_hanging_restart_can_be_cancelled(place, tmp_path):
    server = stdio("hung", hang_at="list", pid_file=str(tmp_path / "pids"))
    async with talking(place, servers=[server], wait=False) as (talk, _):
        await announced(tmp_path / "pids", 1)
        turn = asyncio.create_task(talk.ask("/mcp restart hung"))
        await announced(tmp_path / "pids", 2)
        await talk.client.cancel(talk.id)
        assert (await turn).stop == "cancelled"
        assert talk.statuses()["hung"]["state"] == "connecting"


async def test_cancelled_restart_stops_the_server_and_can_be_repeated(place):
    server = stdio(ignore_sigterm=True, ignore_eof=True)
    async with talking(place, servers=[server]) as (talk, model):
        turn = asyncio.create_task(talk.ask("/mcp restart one"))
        await talk.until("stopped", "one")
        await talk.client.cancel(talk.id)
        assert (await turn).stop == "cancelled"
        assert "| stopped |" in (await talk.ask("/mcp")).text
        assert (await talk.ask("/mcp restart one")).text == "one is ready, with 1 tools."
        await talk.ask()
        assert model.tools() == [["one__echo"]]


async def test_user_adds_and_removes_servers(place, tmp_path):
    pids = tmp_path / "pids"
    command = " ".join(f"'{word}'" for word in scripted(pid_file=str(pids), echo_env=["COLOUR"]))
    async with talking(place, call("mine__echo"), text()) as (talk, _):
        added = await talk.ask(f"/mcp add mine COLOUR=green {command}")
        assert added.text == "mine is ready, with 1 tools. It stays until the session is closed."
        assert surroundings((await talk.ask()).call)["env"] == {"COLOUR": "green"}
        assert (await talk.ask("/mcp remove mine")).text == "mine was removed from this session."
        assert not alive(int(pids.read_text()))
        assert "There are no MCP servers" in (await talk.ask("/mcp")).text


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("restart nobody", "there is no MCP server 'nobody' in this session; it has none"),
        ("add lonely", "lonely has no command and no URL"),
        ("add x 'unfinished", "this is not valid"),
        ("add x no-such-program-anywhere", "x failed: "),
        ("dance", "Expected `/mcp`"),
        ("remove", "Expected `/mcp`"),
    ],
)
async def test_invalid_command_is_answered_with_a_message(place, words, answer):
    async with talking(place) as (talk, _):
        assert answer in (await talk.ask(f"/mcp {words}")).text


async def test_restart_of_an_unusable_agent_server_shows_the_reason(place, monkeypatch):
    monkeypatch.delenv("NOBODY_SET_THIS", raising=False)
    write_agent_file(place[1], {"own": in_file(scripted(), env={"TOKEN": "env://NOBODY_SET_THIS"})})
    async with talking(place, servers=[], wait=False) as (talk, _):
        assert talk.statuses()["own"]["state"] == "failed"
        assert "NOBODY_SET_THIS" in (await talk.ask()).notices[0]
        assert "NOBODY_SET_THIS" in (await talk.ask("/mcp restart own")).text
