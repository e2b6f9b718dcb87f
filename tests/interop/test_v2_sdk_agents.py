"""Our client with the official SDKs' version 2 agents, using the same API as for version 1."""

import asyncio

import pytest

from dragoman.client import connect
from dragoman.client.events import TextChunk
from dragoman.client.policies import allow_all, deny_all
from tests.interop.peers import V2_AGENTS

pytestmark = pytest.mark.parametrize("command", V2_AGENTS)


@pytest.mark.basic
async def test_prompt_streams_and_the_session_can_be_resumed(command, tmp_path):
    async with asyncio.timeout(30), connect(command) as agent:
        assert agent.protocol_version == 2
        session = await agent.new_session(tmp_path)
        result = await session.run("hello")
        assert (result.text, result.stop_reason) == ("one two three", "end_turn")
        again = await agent.load_session(session.id, tmp_path)
        assert "".join(event.text for event in again.history if isinstance(event, TextChunk)) == "one two three"
        assert [info.session_id async for info in agent.list_sessions()] == [session.id]
        await agent.close(again)


@pytest.mark.parametrize(
    ("policy", "outcome", "status"),
    [(allow_all, "outcome: selected yes", "completed"), (deny_all, "outcome: selected no", "failed")],
)
async def test_permission_request_gets_our_decision(command, policy, outcome, status, tmp_path):
    async with asyncio.timeout(30), connect(command, policy=policy()) as agent:
        result = await (await agent.new_session(tmp_path)).run("permission")
        assert result.text == outcome
        assert [call.status for call in result.tool_calls] == [status]


async def test_session_continues_after_a_cancelled_turn(command, tmp_path):
    async with asyncio.timeout(30), connect(command) as agent:
        session = await agent.new_session(tmp_path)
        turn = session.prompt("wait")
        async for event in turn:
            if isinstance(event, TextChunk):
                turn.cancel()
        assert (await turn).stop_reason == "cancelled"
        assert (await session.run("hello")).stop_reason == "end_turn"
