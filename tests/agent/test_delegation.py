"""Another ACP agent works for a turn, and is shown as a subagent."""

import asyncio
import sys
from contextlib import asynccontextmanager

import pytest

from dragoman.agent import ToolError, delegate
from dragoman.client import connect
from dragoman.client.events import SubagentChanged, SubagentEvent, TextChunk, ToolCallChanged
from dragoman.client.policies import ask_user
from dragoman.errors import RemoteError
from dragoman.protocol import v1
from dragoman.testing import ScriptedClient, steps
from dragoman.wire import memory_pair
from tests.agent.connecting import make_agent, session_with


def lead_of(tmp_path, *turns):
    """Make an agent that gives each prompt to a scripted agent in another process."""

    async def answer(turn):
        async def ask(question):
            async with turn.tool(question.tool_call.title, kind="edit") as call:
                return await call.allowed()

        command = [sys.executable, "-m", "dragoman.testing", steps.dump_turns(list(turns))]
        async with connect(command, policy=ask_user(ask)) as worker:
            session = await worker.new_session(turn.session.cwd)
            try:
                said = await delegate(turn, session, turn.text, title="Worker", description="Works")
            except ToolError as failure:
                said = f"failed: {failure}"
            await turn.say(f"The worker says: {said}")

    return make_agent(tmp_path, answer)


async def test_work_is_shown_and_the_answer_returned(tmp_path):
    call = {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Look", "kind": "read", "status": "completed"}
    turn = [steps.Think("hm"), steps.Update(call), steps.Say("All "), steps.Say("good")]
    async with session_with(lead_of(tmp_path, turn), tmp_path) as session:
        events = [event async for event in session.prompt("Review it")]
    began, *_, ended = [event for event in events if isinstance(event, SubagentChanged)]
    assert (began.subagent.title, began.subagent.description) == ("Worker", "Works")
    assert ended.subagent.state.stop_reason == "end_turn"
    inside = [event.event for event in events if isinstance(event, SubagentEvent)]
    assert [event.text for event in inside if isinstance(event, TextChunk)] == ["All ", "good"]
    assert [event.call.title for event in inside if isinstance(event, ToolCallChanged)] == ["Look"]
    assert [message.text for message in session.entities.messages.values()] == ["Review it", "All good"]
    assert events[-1].text == "The worker says: All good"


@pytest.mark.parametrize(("allowed", "outcome"), [(True, "selected yes"), (False, "selected no")])
async def test_user_of_the_lead_decides_for_the_worker(tmp_path, allowed, outcome):
    asked = []

    async def policy(question):
        asked.append(question.tool_call.title)
        return allowed

    turn = [steps.AskPermission(title="Edit notes.txt", kind="edit")]
    async with session_with(lead_of(tmp_path, turn), tmp_path, policy=policy) as session:
        result = await session.run("go")
    assert asked == ["Edit notes.txt"]
    assert result.text == f"The worker says: outcome: {outcome}"


async def test_client_without_subagents_sees_one_tool_call(tmp_path):
    near, far = memory_pair()
    lead = lead_of(tmp_path, [steps.Say("done")])
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(lead.serve(far))
        async with ScriptedClient(near, capabilities=v1.ClientCapabilities()) as client:
            await client.initialize()
            await client.prompt(await client.new_session(str(tmp_path)), "go")
            calls = [each.update for each in client.updates if isinstance(each.update, v1.ToolCall)]
            assert [call.title for call in calls] == ["Worker"]
            assert client.text() == "The worker says: done"


async def test_unfinished_work_is_an_error_with_the_text(tmp_path):
    async with session_with(lead_of(tmp_path, [steps.Say("half"), steps.Stop("refusal")]), tmp_path) as session:
        result = await session.run("go")
    assert [message.text for message in session.entities.messages.values()] == ["go", "half"]
    assert result.text == "The worker says: failed: Worker stopped before it was done: refusal"


async def test_failure_of_the_worker_ends_the_subagent_as_failed(tmp_path):
    async with session_with(lead_of(tmp_path, [steps.Fail(-32603, "the disk is full")]), tmp_path) as session:
        result = await session.run("go")
    [subagent] = session.entities.subagents.values()
    assert isinstance(result.error, RemoteError)
    assert subagent.state.stop_reason == "error"
    assert "the disk is full" in subagent.state.error.message


@asynccontextmanager
async def worker_in(tmp_path, *turns):
    command = [sys.executable, "-m", "dragoman.testing", steps.dump_turns(list(turns))]
    async with connect(command) as remote:
        yield await remote.new_session(tmp_path)


async def test_cancelled_turn_cancels_the_worker(tmp_path):
    async with worker_in(tmp_path, [steps.Say("begun"), steps.WaitForCancel()], [steps.Say("next")]) as worker:

        async def answer(turn):
            await delegate(turn, worker, turn.text, title="Worker")

        async with session_with(make_agent(tmp_path, answer), tmp_path) as session:
            async with session.prompt("go") as turn:
                async for event in turn:
                    if isinstance(event, SubagentEvent) and isinstance(event.event, TextChunk):
                        turn.cancel()
            [subagent] = session.entities.subagents.values()
            assert subagent.state.stop_reason == "cancelled"
        assert await worker.ask("again") == "next"
