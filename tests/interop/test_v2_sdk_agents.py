"""Our client drives the official SDKs' agents of version 2, with the API that it has for version 1."""

import asyncio

import pytest

from dragoman.client import allow_all, connect, deny_all
from dragoman.client.events import Text
from tests.interop.peers import V2_AGENTS

pytestmark = pytest.mark.parametrize("command", V2_AGENTS)


async def test_a_prompt_streams_and_the_session_comes_back(command, tmp_path):
    async with asyncio.timeout(30), connect(command) as agent:
        assert agent.protocol_version == 2
        session = await agent.new_session(tmp_path)
        result = await session.run("hello")
        assert (result.text, result.stop_reason) == ("one two three", "end_turn")
        again = await agent.load_session(session.id, tmp_path)
        assert "".join(event.text for event in again.history if isinstance(event, Text)) == "one two three"
        assert [info.session_id async for info in agent.list_sessions()] == [session.id]
        await agent.close(again)


@pytest.mark.parametrize(
    ("policy", "outcome", "status"),
    [(allow_all, "outcome: selected yes", "completed"), (deny_all, "outcome: selected no", "failed")],
)
async def test_a_permission_request_gets_our_decision(command, policy, outcome, status, tmp_path):
    async with asyncio.timeout(30), connect(command, policy=policy()) as agent:
        result = await (await agent.new_session(tmp_path)).run("permission")
        assert result.text == outcome
        assert [call.status for call in result.tool_calls] == [status]


async def test_a_running_turn_can_be_cancelled_and_the_session_goes_on(command, tmp_path):
    async with asyncio.timeout(30), connect(command) as agent:
        session = await agent.new_session(tmp_path)
        turn = session.prompt("wait")
        async for event in turn:
            if isinstance(event, Text):
                turn.cancel()
        assert (await turn).stop_reason == "cancelled"
        assert (await session.run("hello")).stop_reason == "end_turn"
