import asyncio
from contextlib import asynccontextmanager

import pytest

from dragoman.errors import ErrorCode, RemoteError
from dragoman.protocol import v1
from dragoman.testing import ScriptedAgent, ScriptedClient, dump_turns, load_turns, steps
from dragoman.wire import memory_pair


@asynccontextmanager
async def scripted_pair(*turns, **options):
    near, far = memory_pair()
    async with asyncio.timeout(50), asyncio.TaskGroup() as tasks:
        agent = ScriptedAgent(far, list(turns))
        tasks.create_task(agent.serve())
        async with ScriptedClient(near, **options) as client:
            await client.initialize()
            yield client, agent, await client.new_session("/")


async def test_each_prompt_runs_the_next_turn_and_the_last_is_repeated():
    async with scripted_pair([steps.Say("a")], [steps.Say("b")]) as (client, agent, session_id):
        for text in ("one", "two", "three"):
            await client.prompt(session_id, text)
        assert client.text() == "abb"
        assert [prompt.prompt[0].text for prompt in agent.prompts] == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("decision", "said"),
    [("allow", "outcome: selected yes"), ("reject", "outcome: selected no"), ("cancel", "outcome: cancelled")],
)
async def test_client_decides_on_permission(decision, said):
    async with scripted_pair([steps.AskPermission()], decide=lambda _: decision) as (client, _, session_id):
        await client.prompt(session_id, "go")
        assert client.text() == said


async def test_a_permission_request_can_wait_for_the_cancel():
    async with scripted_pair([steps.AskPermission()], decide=lambda _: "wait") as (client, _, session_id):
        turn = asyncio.ensure_future(client.prompt(session_id, "go"))
        await client.wait_for(lambda c: bool(c.permissions))
        await client.cancel(session_id)
        assert (await turn).stop_reason == "cancelled"


async def test_unknown_update_can_be_sent():
    unknown = {"sessionUpdate": "from_the_future", "x": 1}
    async with scripted_pair([steps.Update(unknown), steps.Say("still here")]) as (client, _, session_id):
        await client.prompt(session_id, "go")
        assert client.updates[0].update.tag == "from_the_future"
        assert client.text() == "still here"


async def test_a_turn_can_fail_stop_and_break_the_rules():
    turns = ([steps.Fail(-32000, "log in")], [steps.Stop("refusal")], [steps.Send("garbage"), steps.Think("hm")])
    async with scripted_pair(*turns) as (client, _, session_id):
        with pytest.raises(RemoteError) as caught:
            await client.prompt(session_id, "one")
        assert (caught.value.code, caught.value.data) == (ErrorCode.AUTH_REQUIRED, "log in")
        assert (await client.prompt(session_id, "two")).stop_reason == "refusal"
        assert (await client.prompt(session_id, "three")).stop_reason == "end_turn"
        assert isinstance(client.updates[-1].update, v1.AgentThoughtChunk)


async def test_a_prompt_for_an_unknown_session_is_refused():
    async with scripted_pair([]) as (client, _, _):
        with pytest.raises(RemoteError) as caught:
            await client.prompt("nobody", "hi")
        assert caught.value.code == ErrorCode.RESOURCE_NOT_FOUND


def test_turns_round_trip_through_json():
    turns = [[steps.Say("a"), steps.AskPermission(), steps.WaitForCancel()], [steps.Exit(3, "bye")]]
    assert load_turns(dump_turns(turns)) == turns
