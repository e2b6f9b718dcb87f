"""Prompts of servers as commands of a session."""

from dragoman.agent.commands.mcp_prompts import name_prompts
from dragoman.protocol import v1
from tests.assistant.servers.talking import (
    stdio,
    talking,
)


async def test_server_prompts_become_commands(place):
    prompts = [
        {
            "name": "review",
            "description": "Reviews a file",
            "arguments": [{"name": "file", "required": True}, {"name": "tone"}],
            "text": "Review {file} in a {tone} tone.",
        }
    ]
    async with talking(place, servers=[stdio(prompts=prompts)]) as (talk, model):
        await talk.client.wait_for(lambda client: "one:review" in offered(client))
        assert offered(talk.client)["one:review"].description == "Reviews a file"
        assert offered(talk.client)["one:review"].input.hint == "file [tone]"
        await talk.ask("/one:review tone=gentle main.py")
        [message] = model.requests[-1][1][-1].content
        assert message.text == "Review main.py in a gentle tone."
        assert "missing: file; expected file [tone]" in (await talk.ask("/one:review")).text
        assert len(model.requests) == 1


def offered(client):
    updates = [each.update for each in client.updates if isinstance(each.update, v1.AvailableCommandsUpdate)]
    return {command.name: command for command in updates[-1].available_commands} if updates else {}


async def test_prompts_of_a_removed_server_are_no_longer_commands(place):
    async with talking(place, servers=[stdio(prompts=[{"name": "hello"}])]) as (talk, _):
        await talk.client.wait_for(lambda client: "one:hello" in offered(client))
        await talk.resume()
        await talk.client.wait_for(lambda client: "one:hello" not in offered(client))


async def test_replaced_prompts_are_announced(place):
    async with talking(place, servers=[stdio(prompts=[{"name": "hello"}])]) as (talk, _):
        await talk.client.wait_for(lambda client: "one:hello" in offered(client))
        await talk.resume(stdio(prompts=[{"name": "bye"}]))
        await talk.client.wait_for(lambda client: "one:bye" in offered(client))


async def test_prompt_of_a_connecting_server_waits_for_it(place):
    server = stdio(prompts=[{"name": "hello", "text": "Say hello."}], delay_s={"initialize": 0.5})
    async with talking(place, servers=[server]) as (talk, model):
        await talk.ask("/one:hello")
        [message] = model.requests[-1][1][-1].content
        assert message.text == "Say hello."


async def test_prompts_with_colliding_names_are_made_unique(place):
    prompts = [
        {"name": "say it", "text": "one"},
        {"name": "say/it", "text": "two"},
        {"name": "say-it", "text": "three"},
    ]
    async with talking(place, servers=[stdio(prompts=prompts)]) as (talk, model):
        await talk.client.wait_for(lambda client: "one:say-it" in offered(client))
        names = [name for name in offered(talk.client) if name.startswith("one:say-it")]
        texts = []
        for name in names:
            await talk.ask(f"/{name}")
            texts.append(model.requests[-1][1][-1].content[0].text)
        assert dict(zip(texts, names, strict=True))["three"] == "one:say-it"
        assert set(texts) == {"one", "two", "three"}


def test_prompt_command_does_not_depend_on_the_server_order():
    pairs = [("my server", "x"), ("my/server", "x"), ("my-server", "x"), ("other", "x y")]
    names = name_prompts(pairs)
    assert names == name_prompts(reversed(pairs))
    assert len(set(names.values())) == len(pairs)
    assert (names["my-server", "x"], names["other", "x y"]) == ("my-server:x", "other:x-y")


async def test_missing_argument_is_named_with_the_servers_suggestions(place):
    prompts = [{"name": "say", "arguments": [{"name": "colour", "required": True}]}]
    server = stdio(prompts=prompts, completions={"colour": ["red", "green"]}, resources=[{"uri": "a:b", "name": "b"}])
    async with talking(place, servers=[server]) as (talk, _):
        reply = (await talk.ask("/one:say")).text
        assert "missing: colour; expected colour; values for colour: red, green" in reply
