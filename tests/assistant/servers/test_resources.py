"""Resources of servers: found and read by the model or the user, with notice of changes."""

import pytest

from dragoman.protocol import v1
from tests.assistant.servers.talking import call, in_file, said, stdio, talking, text, write_agent_file
from tests.mcp.servers.commands import scripted

NOTES = {
    "resources": [
        {"uri": "memo:///note", "name": "note", "title": "A note", "text": "buy milk"},
        {"uri": "memo:///linked", "name": "linked", "text": "what the link leads to"},
    ],
    "templates": [{"uriTemplate": "memo:///of/{year}/{month}", "name": "by month"}],
    "completions": {"year": ["2025", "2026"], "month": ["may", "march", "june"]},
}


def read(uri, server="one"):
    return call("read_mcp_resource", server=server, uri=uri)


def names(model, request=-1):
    return {tool.name for tool in model.requests[request][0].tools}


def prompt_of(model):
    """Return the blocks of the last user message."""
    return next(each.content for each in reversed(model.requests[-1][1]) if hasattr(each, "content"))


async def test_session_without_resources_has_no_resource_tools(place):
    async with talking(place, servers=[stdio()]) as (talk, model):
        await talk.ask()
        assert not {"read_mcp_resource", "list_mcp_resources"} & names(model)


async def test_model_lists_resources_and_completes_addresses(place):
    replies = [
        call("list_mcp_resources", server="one"),
        call("list_mcp_resources", server="one", prefix="memo:///of/2"),
        call("list_mcp_resources", server="one", prefix="memo:///of/2026/ma"),
        call("list_mcp_resources", server="two"),
        text(),
    ]
    async with talking(place, *replies, servers=[stdio(**NOTES), stdio("two")]) as (talk, model):
        turn = await talk.ask()
        results = [message.results[0].text for message in model.requests[-1][1] if hasattr(message, "results")]
        assert results[0].splitlines() == [
            "memo:///note (A note)",
            "memo:///linked (linked)",
            "template: memo:///of/{year}/{month} (by month)",
        ]
        assert results[1].splitlines() == ["memo:///of/2025/", "memo:///of/2026/"]
        assert results[2].splitlines() == ["memo:///of/2026/may", "memo:///of/2026/march"]
        assert "two has no resources; servers with resources: one" in results[3]
        assert [each["status"] for each in turn.calls] == ["completed"] * 3 + ["failed"]


async def test_link_in_a_result_is_read_without_asking(place):
    server = stdio(tools=[{"name": "find", "does": {"returns": ["resource_link"]}}], **NOTES)
    asked = []
    replies = [call("one__find"), read("memo:///linked"), text()]
    async with talking(
        place, *replies, servers=[server], decide=lambda request: asked.append(request.tool_call.title) or "allow"
    ) as (talk, model):
        turn = await talk.ask()
        assert asked == ["one: find"]
        found, followed = turn.calls
        assert isinstance(found["content"][0].content, v1.ResourceLink)
        assert followed["content"][0].content.resource.text == "what the link leads to"
        assert (followed["kind"], followed["title"]) == ("read", "Read memo:///linked of one")
        results = [message.results[0].text for message in model.requests[-1][1] if hasattr(message, "results")]
        assert results[0] == "[linked](memo:///linked) (a resource of one)"
        assert "what the link leads to" in results[1]


@pytest.mark.parametrize("decision", ["allow", "reject"])
async def test_address_not_offered_by_the_server_needs_approval(place, decision):
    asked = []
    async with talking(
        place,
        read("memo:///of/2026/may"),
        text(),
        servers=[stdio(**NOTES)],
        decide=lambda request: asked.append(request.tool_call.title) or decision,
    ) as (talk, _):
        turn = await talk.ask()
        assert asked == ["Read memo:///of/2026/may of one"]
        assert turn.call["status"] == ("completed" if decision == "allow" else "failed")


async def test_server_denied_in_the_agent_file_is_not_read(place):
    write_agent_file(place[1], {"one": in_file(scripted(**NOTES), permission="deny")})
    replies = [call("list_mcp_resources", server="one"), read("memo:///note"), text()]
    async with talking(place, *replies) as (talk, _):
        assert "settings do not allow it" in said((await talk.ask()).calls[-1])


@pytest.mark.parametrize("what", ["memo:///note", "A", "note", "<A note>"])
async def test_mentioned_resource_is_sent_to_the_model(place, what):
    async with talking(place, servers=[stdio("my notes", **NOTES)]) as (talk, model):
        turn = await talk.ask(f"Look at @my-notes:{what}, please.")
        attached = [each for each in prompt_of(model) if isinstance(each, v1.EmbeddedResource)]
        if what == "A":
            assert attached == []
            [notice] = turn.notices
            assert "my notes has no resource 'A'; expected an address or a listed name" in notice
        else:
            assert [(each.resource.uri, each.resource.text) for each in attached] == [("memo:///note", "buy milk")]
            assert turn.notices == []


async def test_broken_mentions_are_reported_and_other_text_is_ignored(place):
    words = "@one:memo:///none (@nobody:memo:///note) `@one:memo:///note` @friend:hello me@one:x @rule:none.x"
    async with talking(place, servers=[stdio(**NOTES)]) as (talk, model):
        turn = await talk.ask(words)
        notices = "\n".join(turn.notices)
        assert "no such resource: memo:///none" in notices
        assert "no MCP server here is named `nobody`" in notices
        assert "friend" not in notices
        assert not [each for each in prompt_of(model) if isinstance(each, v1.EmbeddedResource)]


async def test_model_learns_when_a_resource_it_read_changes(place, tmp_path):
    server = stdio(resource_changes="memo:///note", record=str(tmp_path / "record"), **NOTES)
    replies = [text(), call("one__echo"), text(), text(), text()]
    async with talking(place, *replies, servers=[server]) as (talk, model):
        await talk.ask("@one:memo:///note")
        while "resources/subscribe" not in (tmp_path / "record").read_text():
            await talk.ask("/mcp")
        await talk.ask()
        await talk.ask()
        changed = "[The resource memo:///note of one may have changed since it was read.]"
        assert prompt_of(model)[-1].text == changed
        await talk.ask()
        assert changed not in [getattr(each, "text", "") for each in prompt_of(model)]


async def test_user_lists_resources_and_completes_addresses(place):
    async with talking(place, servers=[stdio(**NOTES), stdio("two")]) as (talk, _):
        listed = (await talk.ask("/mcp resources one")).text
        assert "memo:///note  A note\n" in listed
        assert "memo:///of/{year}/{month}  by month\n" in listed
        assert "memo:///of/2026/june" in (await talk.ask("/mcp resources one memo:///of/2026/j")).text
        assert "two has no resources" in (await talk.ask("/mcp resources two")).text
