"""Whether a tool of a server may run, and what a person's answer binds to."""

import pytest

from tests.assistant.running import answer_with, set_mode
from tests.assistant.servers.talking import begin, call, connected, said, stdio, talking, text


async def test_a_tool_of_the_client_asks_with_its_arguments(place):
    async with talking(place, call("one__echo", text="hi"), text(), servers=[stdio()]) as (talk, _):
        await talk.ask()
        [asked] = talk.client.permissions
        assert (asked.tool_call.title, asked.tool_call.raw_input) == ("one: echo", {"text": "hi"})


async def test_a_denial_is_told_to_the_model_and_nothing_is_called(place, tmp_path):
    server = stdio(record=str(tmp_path / "record"))
    options = {"servers": [server], "decide": lambda _: "reject"}
    async with talking(place, call("one__echo"), text("went on"), **options) as (talk, model):
        turn = await talk.ask()
        assert turn.call["status"] == "failed"
        assert "declined" in model.results()[0].text
        assert turn.text == "went on"
        assert "tools/call" not in (tmp_path / "record").read_text()


async def test_a_clients_server_that_says_it_only_reads_is_not_believed(place):
    server = stdio(tools=[{"name": "echo", "annotations": {"readOnlyHint": True}}])
    async with talking(place, call("one__echo"), text(), servers=[server]) as (talk, _):
        await talk.ask()
        assert len(talk.client.permissions) == 1


async def test_plan_mode_refuses(place, tmp_path):
    server = stdio(record=str(tmp_path / "record"))
    async with talking(place, call("one__echo"), text(), servers=[server]) as (talk, model):
        await set_mode(talk.client, talk.id, "plan")
        turn = await talk.ask()
        assert turn.call["status"] == "failed"
        assert "plan mode" in model.results()[0].text
        assert talk.client.permissions == []
        assert "tools/call" not in (tmp_path / "record").read_text()


async def test_code_mode_asks_for_foreign_tools_as_well(place):
    async with talking(place, call("one__echo"), text(), servers=[stdio()]) as (talk, _):
        await set_mode(talk.client, talk.id, "code")
        await talk.ask()
        assert len(talk.client.permissions) == 1


OTHERS = {
    "same": (stdio("one"), "one__echo", 0),
    "other-name": (stdio("two"), "two__echo", 0),
    "other-command": (stdio("one", version="2"), "one__echo", 1),
    "other-variables": (stdio("one", env={"TOKEN": "other"}), "one__echo", 1),
    "other-tool": (stdio("one", tools=[{"name": "echo"}, {"name": "erase"}]), "one__erase", 1),
}


@pytest.mark.parametrize("which", OTHERS)
async def test_an_answer_for_good_binds_to_the_server_itself_and_the_tool(place, which):
    server, tool, count = OTHERS[which]
    async with connected(place, call("one__echo"), text(), call(tool), text()) as (client, _):
        talk = await begin(client, place[0], stdio("one"))
        answer_with(client, "allow_always", remember="project")
        await talk.ask()
        await talk.resume(server)
        await talk.until("ready")
        asked = answer_with(client, "reject_once")
        turn = await talk.ask()
        assert len(asked) == count
        assert turn.call["status"] == ("failed" if count else "completed")


async def test_an_answer_for_good_holds_in_the_next_session_and_one_for_a_session_does_not(place):
    async with connected(place, call("one__echo", text="hi"), text()) as (client, _):
        for scope, then in (("session", 1), ("project", 0)):
            first, second = [await begin(client, place[0], stdio()) for _ in range(2)]
            answer_with(client, "allow_always", remember=scope)
            await first.ask()
            again = answer_with(client, "reject_once")
            assert said((await first.ask()).call) == "hi"
            assert again == []
            await second.ask()
            assert len(again) == then


async def test_a_person_is_shown_what_a_tool_would_be_called_with(place):
    async with talking(place, call("one__echo", text="the words"), text(), servers=[stdio()]) as (talk, _):
        await talk.ask()
        [asked] = talk.client.permissions
        assert asked.tool_call.content[0].content.text == '```\n{\n  "text": "the words"\n}\n```'
