"""Our client with the official SDKs' agents."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from dragoman.proc import EVERYTHING, Supervisor
from dragoman.protocol import v1
from dragoman.testing import ScriptedClient
from dragoman.wire import StdioTransport
from tests.interop.peers import AGENTS

pytestmark = pytest.mark.parametrize("command", AGENTS)


@asynccontextmanager
async def session_with(command, cwd, decide=lambda _: "reject"):
    async with asyncio.timeout(30), Supervisor() as supervisor:
        child = await supervisor.start(command, inherit=EVERYTHING)
        transport = StdioTransport.for_child(child)
        async with ScriptedClient(transport, decide=decide) as client:
            answer = await client.initialize()
            assert answer.protocol_version == 1
            yield client, await client.new_session(str(cwd))


@pytest.mark.basic
async def test_a_prompt_streams_in_order_before_its_answer(command, tmp_path):
    async with session_with(command, tmp_path) as (client, session_id):
        answer = await client.prompt(session_id, "hello")
        assert client.text(session_id) == "one two three"
        assert answer.stop_reason == "end_turn"


@pytest.mark.parametrize(
    ("decision", "outcome", "reason", "status"),
    [
        ("allow", "outcome: selected yes", "end_turn", "completed"),
        ("reject", "outcome: selected no", "end_turn", "failed"),
        ("cancel", "outcome: cancelled", "cancelled", "failed"),
    ],
)
async def test_permission_request_gets_our_decision(command, decision, outcome, reason, status, tmp_path):
    async with session_with(command, tmp_path, decide=lambda _: decision) as (client, session_id):
        answer = await client.prompt(session_id, "permission")
        assert answer.stop_reason == reason
        assert [request.tool_call.tool_call_id for request in client.permissions] == ["call-1"]
        assert client.text(session_id) == outcome
        progress = [n.update for n in client.updates if isinstance(n.update, v1.ToolCallProgress)]
        assert progress[-1].status == status


async def test_session_continues_after_a_cancelled_turn(command, tmp_path):
    async with session_with(command, tmp_path) as (client, session_id):
        turn = asyncio.ensure_future(client.prompt(session_id, "wait"))
        await client.wait_for(lambda c: "waiting" in c.text())
        await client.cancel(session_id)
        assert (await turn).stop_reason == "cancelled"
        assert (await client.prompt(session_id, "hello")).stop_reason == "end_turn"
