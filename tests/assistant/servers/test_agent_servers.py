"""The agent file's servers: sharing, shadowing by the client's, and tool settings."""

import pytest

from tests.assistant.servers.talking import (
    begin,
    call,
    connected,
    in_file,
    said,
    stdio,
    surroundings,
    talking,
    text,
    write_agent_file,
)
from tests.mcp.servers.commands import scripted
from tests.proc.processes import alive
from tests.waiting import until


def pids(file):
    return [int(pid) for pid in file.read_text().split()]


async def test_sessions_list_the_agents_servers_after_the_clients(place):
    write_agent_file(place[1], {"own": in_file(scripted())})
    async with talking(place, call("own__echo", text="hi"), text(), servers=[stdio()]) as (talk, model):
        assert list(talk.statuses()) == ["one", "own"]
        assert said((await talk.ask()).call) == "hi"
        assert model.tools()[0] == ["one__echo", "own__echo"]
        assert "agent file" in (await talk.ask("/mcp")).text


async def test_sessions_of_one_directory_share_a_server_process(place, tmp_path):
    file = tmp_path / "pids"
    write_agent_file(place[1], {"own": in_file(scripted(pid_file=str(file), echo_env=["NONE"]))})
    async with connected(place, call("own__echo"), text()) as (client, _):
        first, second = await begin(client, place[0]), await begin(client, place[0])
        seen = [surroundings((await talk.ask()).call)["pid"] for talk in (first, second)]
        assert seen[0] == seen[1]
        assert pids(file) == [seen[0]]
        await first.close()
        assert alive(seen[0])
        assert surroundings((await second.ask()).call)["pid"] == seen[0]
        await second.close()
        assert not alive(seen[0])


async def test_sessions_of_different_directories_have_their_own_process(place, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    write_agent_file(place[1], {"own": in_file(scripted(echo_env=["NONE"]))})
    async with connected(place, call("own__echo"), text()) as (client, _):
        talks = [await begin(client, place[0]), await begin(client, tmp_path / "elsewhere")]
        seen = [surroundings((await talk.ask()).call) for talk in talks]
        assert seen[0]["pid"] != seen[1]["pid"]
        assert [each["cwd"] for each in seen] == [str(place[0]), str(tmp_path / "elsewhere")]


async def test_failed_shared_server_is_retried_for_the_next_session(place, tmp_path):
    write_agent_file(place[1], {"own": in_file(scripted(crash_at="start", crash_once=str(tmp_path / "crashed")))})
    async with connected(place) as (client, model):
        first = await begin(client, place[0])
        await first.until("failed", "own")
        second = await begin(client, place[0])
        await second.until("ready", "own")
        await first.until("ready", "own")
        await first.ask()
        assert model.tools() == [["own__echo"]]


async def test_failure_of_an_agent_server_is_shown_in_every_session(place):
    write_agent_file(place[1], {"own": in_file(scripted(crash_at="start", crash_stderr="no licence"))})
    async with connected(place) as (client, _):
        for _ in range(2):
            talk = await begin(client, place[0])
            await talk.until("failed", "own")
            assert "no licence" in (await talk.ask()).notices[0]
            assert (await talk.ask()).text == "done"


async def test_client_server_replaces_the_agents_of_the_same_name_until_removed(place, caplog):
    write_agent_file(place[1], {"own": in_file(scripted(tools=[{"name": "agents"}]))})
    mine = stdio("own", tools=[{"name": "clients"}])
    async with talking(place, servers=[mine]) as (talk, model):
        turn = await talk.ask()
        assert turn.notices == ["The client's MCP server own replaces the agent's server of the same name."]
        assert turn.notices[0] in caplog.text
        assert model.tools()[-1] == ["own__clients"]
        assert "The agent's server own is not used" in (await talk.ask("/mcp")).text
        assert (await talk.ask()).text == "done"
        await talk.ask("/mcp remove own")
        await talk.until("ready", "own")
        await talk.ask()
        assert model.tools()[-1] == ["own__agents"]


async def test_server_added_later_shadows_and_stops_the_agents(place, tmp_path):
    file = tmp_path / "pids"
    write_agent_file(place[1], {"own": in_file(scripted(pid_file=str(file)))})
    async with talking(place) as (talk, model):
        [agents] = pids(file)
        await talk.resume(stdio("own", tools=[{"name": "clients"}]))
        await talk.until("ready", "own")
        await until(lambda: not alive(agents))
        await talk.ask()
        assert model.tools()[-1] == ["own__clients"]


async def test_shadowing_in_one_session_does_not_affect_another(place, tmp_path):
    file = tmp_path / "pids"
    write_agent_file(place[1], {"own": in_file(scripted(pid_file=str(file)))})
    async with connected(place, call("own__echo", text="hi"), text()) as (client, _):
        plain = await begin(client, place[0])
        await plain.until("ready", "own")
        shadowing = await begin(client, place[0], stdio("own", echo_env=["NONE"]))
        await shadowing.until("ready", "own")
        assert said((await plain.ask()).call) == "hi"
        assert surroundings((await shadowing.ask()).call)["pid"] not in pids(file)
        assert all(alive(pid) for pid in pids(file))


@pytest.mark.parametrize(
    ("settings", "asked", "status"),
    [
        ({}, 1, "completed"),
        ({"permission": "allow"}, 0, "completed"),
        ({"permission": "deny"}, 0, "failed"),
        ({"permission": "deny", "tools": {"echo": {"permission": "ask"}}}, 1, "completed"),
        ({"tools": {"echo": {"permission": "allow"}}}, 0, "completed"),
        ({"trust": True}, 0, "completed"),
        ({"trust": True, "permission": "ask"}, 1, "completed"),
        ({"trust": True, "permission": "allow"}, 0, "completed"),
        ({"trust": True, "permission": "deny"}, 0, "failed"),
    ],
)
async def test_agent_file_decides_which_tools_ask(place, settings, asked, status):
    tools = [{"name": "echo", "annotations": {"readOnlyHint": True}}]
    write_agent_file(place[1], {"own": in_file(scripted(tools=tools), **settings)})
    async with talking(place, call("own__echo"), text()) as (talk, _):
        turn = await talk.ask()
        assert (len(talk.client.permissions), turn.call["status"]) == (asked, status)


async def test_trust_applies_only_to_tools_marked_as_read_only(place):
    write_agent_file(place[1], {"own": in_file(scripted(), trust=True)})
    async with talking(place, call("own__echo"), text()) as (talk, _):
        await talk.ask()
        assert len(talk.client.permissions) == 1


async def test_unapproved_project_file_starts_no_server(place, tmp_path):
    file = tmp_path / "pids"
    write_agent_file(place[0], {"own": in_file(scripted(pid_file=str(file)))})
    async with talking(place) as (talk, model):
        assert talk.meta == {}
        assert not file.exists()
        await talk.ask()
        [question] = talk.client.permissions
        assert "own" in str(question.tool_call.content)
        assert model.tools() == [["own__echo"]]
        assert len(pids(file)) == 1


async def test_refused_project_file_starts_no_server(place, tmp_path):
    file = tmp_path / "pids"
    write_agent_file(place[0], {"own": in_file(scripted(pid_file=str(file)))})
    async with talking(place, decide=lambda _: "reject") as (talk, model):
        await talk.ask()
        assert model.tools() == [[]]
    assert not file.exists()
