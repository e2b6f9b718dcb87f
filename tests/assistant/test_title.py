"""The title of a session is its first prompt that is not a slash command."""

import pytest

from dragoman.protocol import v1
from tests.assistant.coming_back import converse, listed, load
from tests.assistant.running import running_agent


def titles(client):
    return [update.title for update in client.conversation() if isinstance(update, v1.SessionInfoUpdate)]


@pytest.mark.parametrize("command", ["/help", "  /mode plan", "/usage\n", "/no-such-command", "/server:prompt"])
async def test_slash_command_does_not_become_the_title(place, command):
    cwd, home = place
    async with running_agent(home) as client:
        await client.initialize()
        session_id = await client.new_session(str(cwd))
        await client.prompt(session_id, command)
        assert titles(client) == []
        assert [info.title for info in (await listed(client)).sessions] == [None]
        await client.prompt(session_id, "What is this?")
        await client.prompt(session_id, "And that?")
        assert titles(client) == ["What is this?"]
        assert [info.title for info in (await listed(client)).sessions] == ["What is this?"]


async def test_session_with_only_commands_gets_its_title_in_the_next_process(place):
    cwd, home = place
    session_id, _ = await converse(place, "/help")
    async with running_agent(home) as client:
        await client.initialize()
        await load(client, session_id, cwd)
        await client.prompt(session_id, "What is this?")
        assert [info.title for info in (await listed(client)).sessions] == ["What is this?"]


@pytest.mark.parametrize("prompt", ["/etc/passwd: what is that?", "/etc", "/a:b is no command", "and /help?"])
async def test_prompt_that_looks_like_a_command_becomes_the_title(place, prompt):
    await converse(place, prompt)
    async with running_agent(place[1]) as client:
        await client.initialize()
        assert [info.title for info in (await listed(client)).sessions] == [prompt]
