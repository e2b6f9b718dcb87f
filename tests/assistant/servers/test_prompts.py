"""Prompts of servers, as commands of a session."""

from dragoman.protocol import v1
from tests.assistant.servers.talking import (
    stdio,
    talking,
)


async def test_prompts_of_servers_are_commands(place):
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
        assert "file must be given; expected file [tone]" in (await talk.ask("/one:review")).text
        assert len(model.requests) == 1


def offered(client):
    updates = [each.update for each in client.updates if isinstance(each.update, v1.AvailableCommandsUpdate)]
    return {command.name: command for command in updates[-1].available_commands} if updates else {}


async def test_prompts_of_a_server_that_is_removed_are_commands_no_more(place):
    async with talking(place, servers=[stdio(prompts=[{"name": "hello"}])]) as (talk, _):
        await talk.client.wait_for(lambda client: "one:hello" in offered(client))
        await talk.resume()
        await talk.client.wait_for(lambda client: "one:hello" not in offered(client))


async def test_prompts_that_take_the_place_of_others_are_told(place):
    async with talking(place, servers=[stdio(prompts=[{"name": "hello"}])]) as (talk, _):
        await talk.client.wait_for(lambda client: "one:hello" in offered(client))
        await talk.resume(stdio(prompts=[{"name": "bye"}]))
        await talk.client.wait_for(lambda client: "one:bye" in offered(client))


async def test_a_prompt_of_a_server_that_is_still_connecting_is_waited_for(place):
    server = stdio(prompts=[{"name": "hello", "text": "Say hello."}], delay_s={"initialize": 0.5})
    async with talking(place, servers=[server]) as (talk, model):
        await talk.ask("/one:hello")
        [message] = model.requests[-1][1][-1].content
        assert message.text == "Say hello."


async def test_prompts_whose_names_would_be_the_same_are_told_apart(place):
    prompts = [{"name": "say it", "text": "one"}, {"name": "say/it", "text": "two"}]
    async with talking(place, servers=[stdio(prompts=prompts)]) as (talk, model):
        await talk.client.wait_for(lambda client: "one:say-it-2" in offered(client))
        await talk.ask("/one:say-it-2")
        [message] = model.requests[-1][1][-1].content
        assert message.text == "two"
