"""Our client with the agents of the official SDKs."""

import asyncio

import pytest

from dragoman.client.errors import TurnStoppedError
from dragoman.client.events import PermissionRequested, TextChunk, ToolCallChanged
from dragoman.client.policies import Decision
from tests.client.driving import done, read, session_with, text
from tests.interop.peers import AGENTS

pytestmark = pytest.mark.parametrize("command", AGENTS)


class Always:
    def __init__(self, verdict):
        self._verdict = verdict

    async def decide(self, question):
        return Decision(self._verdict)


async def test_a_prompt_streams_in_order(command, tmp_path):
    async with session_with(command, tmp_path) as session:
        events = await read(session.prompt("hello"))
    assert [event.text for event in events if isinstance(event, TextChunk)] == ["one ", "two ", "three"]
    assert done(events).stop_reason == "end_turn"


@pytest.mark.parametrize(("verdict", "option", "status"), [("allow", "yes", "completed"), ("deny", "no", "failed")])
async def test_a_permission_request_gets_the_decision_of_the_policy(command, verdict, option, status, tmp_path):
    async with session_with(command, tmp_path, policy=Always(verdict)) as session:
        events = await read(session.prompt("permission"))
    assert done(events).text == f"outcome: selected {option}"
    assert [event.decision.verdict for event in events if isinstance(event, PermissionRequested)] == [verdict]
    assert [event.call.status for event in events if isinstance(event, ToolCallChanged)][-1] == status


async def test_session_continues_after_a_cancelled_turn(command, tmp_path):
    async with session_with(command, tmp_path) as session:
        turn = session.prompt("wait")
        assert text([await anext(turn)]) == "waiting"
        session.cancel()
        assert done(await read(turn)).stop_reason == "cancelled"
        assert await session.ask("hello") == "one two three"


async def test_leaving_the_loop_ends_the_turn(command, tmp_path):
    async with session_with(command, tmp_path) as session:
        async for _ in session.prompt("wait"):
            break
        assert await session.ask("hello") == "one two three"


async def test_pending_question_ends_with_the_turn(command, tmp_path):
    asked = asyncio.Event()

    class Slow:
        async def decide(self, question):
            asked.set()
            await asyncio.Event().wait()

    async with session_with(command, tmp_path, policy=Slow()) as session:
        asking = asyncio.ensure_future(session.ask("permission"))
        await asked.wait()
        session.cancel()
        with pytest.raises(TurnStoppedError, match="cancelled"):
            await asking
