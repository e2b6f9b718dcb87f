"""The official SDKs' agents, driven by our client."""

import asyncio

import pytest

from dragoman.client import Asked, Decision, Text, ToolChanged, TurnStopped
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
    assert [event.text for event in events if isinstance(event, Text)] == ["one ", "two ", "three"]
    assert done(events).stop_reason == "end_turn"


@pytest.mark.parametrize(("verdict", "option", "status"), [("allow", "yes", "completed"), ("deny", "no", "failed")])
async def test_a_permission_request_gets_the_decision_of_the_policy(command, verdict, option, status, tmp_path):
    async with session_with(command, tmp_path, policy=Always(verdict)) as session:
        events = await read(session.prompt("permission"))
    assert done(events).text == f"outcome: selected {option}"
    assert [event.decision.verdict for event in events if isinstance(event, Asked)] == [verdict]
    assert [event.call.status for event in events if isinstance(event, ToolChanged)][-1] == status


async def test_a_turn_is_cancelled_and_the_session_goes_on(command, tmp_path):
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


async def test_a_pending_question_is_given_up_with_the_turn(command, tmp_path):
    asked = asyncio.Event()

    class Slow:
        async def decide(self, question):
            asked.set()
            await asyncio.Event().wait()

    async with session_with(command, tmp_path, policy=Slow()) as session:
        asking = asyncio.ensure_future(session.ask("permission"))
        await asked.wait()
        session.cancel()
        with pytest.raises(TurnStopped, match="cancelled"):
            await asking
