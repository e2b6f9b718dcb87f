"""The status of a session's servers, and how client and user learn of it."""

import asyncio

import pytest

from dragoman.agent.servers import session_servers
from dragoman.protocol import v1
from dragoman.protocol.methods import SESSION_FORK
from tests.assistant.servers.talking import (
    SERVERS,
    Question,
    begin,
    call,
    connected,
    stdio,
    talking,
    text,
    write_agent_file,
)
from tests.errors import refused


async def test_answer_has_the_status_of_each_server(place):
    async with connected(place) as (client, _):
        talk = await begin(client, place[0], stdio("one"), stdio("two"))
        assert talk.meta[SERVERS] == [
            {"name": "one", "transport": "stdio", "state": "connecting", "tools": 0, "reason": None},
            {"name": "two", "transport": "stdio", "state": "connecting", "tools": 0, "reason": None},
        ]
        await talk.until("ready", "one", "two", tools=1)


async def test_session_without_servers_reports_no_status(place):
    async with connected(place) as (client, _):
        talk = await begin(client, place[0])
        assert talk.meta == {}
        await talk.ask()
        assert talk.news() == []


async def test_hanging_server_does_not_delay_the_answer(place):
    async with connected(place) as (client, _):
        hung = stdio("hung", hang_at="start")
        talk = await begin(client, place[0], hung)
        await talk.resume(hung)
        await talk.load(hung)
        request = v1.ForkSessionRequest(session_id=talk.id, cwd=str(place[0]), mcp_servers=[hung])
        fork = await client.connection.call(SESSION_FORK, request)
        assert [status["state"] for status in [*talk.meta[SERVERS], *fork.meta[SERVERS]]] == ["connecting"] * 2


async def test_load_resume_and_fork_report_status_and_later_changes(place):
    async with talking(place, servers=[stdio()]) as (talk, _):
        await talk.ask()
        await talk.load(stdio())
        assert talk.statuses()["one"]["state"] == "ready"
        await talk.resume(stdio(), stdio("two"))
        assert talk.statuses()["two"]["state"] == "connecting"
        await talk.until("ready", "one", "two")
        request = v1.ForkSessionRequest(session_id=talk.id, cwd=talk.cwd, mcp_servers=[stdio("three")])
        fork = await talk.client.connection.call(SESSION_FORK, request)
        assert [status["name"] for status in fork.meta[SERVERS]] == ["three"]


async def test_server_status_is_not_logged(place):
    async with talking(place, servers=[stdio(), stdio("bad", crash_at="start")], wait=False) as (talk, _):
        await talk.until("ready", "one")
        await talk.until("failed", "bad")
        await talk.ask()
        session_id = talk.id
    [log] = place[1].glob("projects/*/session-*.jsonl")
    assert SERVERS not in log.read_text()
    async with connected(place) as (client, _):
        talk = await begin(client, place[0])
        talk.id = session_id
        await talk.load()
        replayed = client.conversation(session_id)
        assert any(isinstance(update, v1.AgentMessageChunk) for update in replayed)
        assert not any(isinstance(update, v1.SessionInfoUpdate) and update.meta for update in replayed)


async def test_failure_has_its_reason_and_is_shown_once(place):
    bad = stdio("bad", crash_at="start", crash_stderr="the licence has run out")
    async with talking(place, servers=[bad], wait=False) as (talk, _):
        await talk.until("failed", "bad")
        assert "the licence has run out" in talk.statuses()["bad"]["reason"]
        first, second = await talk.ask(), await talk.ask()
        [notice] = first.notices
        assert notice.startswith("The MCP server bad failed\n")
        assert "the licence has run out" in notice
        assert notice.endswith("`/mcp restart bad` retries.")
        assert second.notices == []
        assert (first.text, second.text) == ("done", "done")


async def test_notice_is_not_part_of_the_conversation(place):
    async with talking(place, servers=[stdio("bad", crash_at="start")], wait=False) as (talk, model):
        await talk.until("failed", "bad")
        await talk.ask("first")
        await talk.ask("second")
        assert "failed" not in str(model.requests[-1][1])


async def test_missing_command_fails_only_its_server(place):
    missing = v1.McpServerStdio(name="missing", command="no-such-program-anywhere", args=[], env=[])
    async with talking(place, servers=[missing, stdio()], wait=False) as (talk, model):
        await talk.ask()
        assert model.tools() == [["one__echo"]]
        assert "no such command" in talk.statuses()["missing"]["reason"]


async def test_two_servers_with_one_name_both_work(place, caplog):
    servers = [stdio("twin", echo_env=True, env={"WHICH": "first"}), stdio("twin", echo_env=True)]
    async with talking(place, call("twin__echo"), call("twin-2__echo"), text(""), text(), servers=servers) as (talk, _):
        turn = await talk.ask()
        assert turn.notices == ["There are two MCP servers named twin; the second is twin-2 here."]
        assert turn.notices[0] in caplog.text
        first, second = turn.calls
        assert "first" in first["shown"][-1]
        assert "first" not in second["shown"][-1]
        assert (first["title"], second["title"]) == ("twin: echo", "twin-2: echo")
        assert (await talk.ask()).text == "done"


async def test_first_prompt_waits_with_a_notice(place):
    async with talking(place, servers=[stdio("slow", delay_s={"initialize": 0.8})], wait=False) as (talk, model):
        turn = await talk.ask()
        assert turn.notices == ["Waiting up to 10 s for MCP servers that are still connecting: slow."]
        assert turn.text == "done"
        assert model.tools() == [["slow__echo"]]


async def test_short_wait_shows_no_notice(place, monkeypatch):
    monkeypatch.setattr(session_servers, "SILENT_WAIT_S", 60)  # short enough even on a busy machine
    write_agent_file(place[1], limits={"mcp_wait_s": 60})
    async with talking(place, servers=[stdio()], wait=False) as (talk, model):
        turn = await talk.ask()
        assert (turn.text, turn.notices) == ("done", [])
        assert model.tools() == [["one__echo"]]


@pytest.mark.parametrize(("wait_s", "says"), [(0, False), (0.5, True)])
async def test_prompt_continues_without_servers_that_do_not_connect(place, wait_s, says):
    write_agent_file(place[1], limits={"mcp_wait_s": wait_s})
    async with talking(place, servers=[stdio(), stdio("hung", hang_at="list")], wait=False) as (talk, model):
        await talk.until("ready", "one")
        first, second = await talk.ask(), await talk.ask()
        *waiting, going_on = first.notices
        assert ["Waiting up to 0.5 s" in notice for notice in waiting] == [True] * says
        assert going_on == "Continuing without hung. Its tools are added when it is ready."
        assert (second.notices, first.text, second.text) == ([], "done", "done")
        assert model.tools() == [["one__echo"]] * 2


async def test_late_server_joins_the_same_turn(place):
    write_agent_file(place[1], limits={"mcp_wait_s": 0})
    late = stdio("late", delay_s={"initialize": 0.5})
    async with talking(place, call("one__echo"), text(), servers=[stdio(), late], wait=False) as (talk, model):
        await talk.until("ready", "one")
        question = Question(talk.client)
        turn = asyncio.create_task(talk.ask())
        await question.asked.wait()
        await talk.until("ready", "late")
        question.answered.set()
        await turn
        assert model.tools() == [["one__echo"], ["one__echo", "late__echo"]]


async def test_closed_session_reports_no_status(place):
    async with talking(place, servers=[stdio()]) as (talk, _):
        other = await begin(talk.client, place[0])
        await talk.ask()
        await talk.close()
        count = len(talk.client.conversation(talk.id))
        await other.ask()
        assert len(talk.client.conversation(talk.id)) == count
        assert talk.statuses()["one"]["state"] == "ready"


async def test_invalid_server_settings_are_reported_with_their_place(place):
    async with connected(place) as (client, _):
        error = await refused(begin(client, place[0], stdio(meta={"dragoman/include": "sometimes"})))
        assert "mcpServers[0]._meta" in str(error.data)
