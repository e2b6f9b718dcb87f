"""Cancelling and leaving a turn."""

import asyncio
import json

import pytest

from dragoman.client.errors import CancelIgnoredError
from dragoman.client.events import PermissionRequested, TextChunk
from dragoman.client.policies import Decision
from dragoman.client.sessions import turn as turns
from dragoman.testing import steps
from tests.client.driving import END, agent_of, chunk, done, read, session_with, text
from tests.commands import raw, scripted
from tests.waiting import until

CANCELLED = {"result": {"stopReason": "cancelled"}}
OPTIONS = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]


def ask_permission(request_id):
    params = {"sessionId": "s", "toolCall": {"toolCallId": "c", "title": "Dig"}, "options": OPTIONS}
    return {"id": request_id, "method": "session/request_permission", "params": params}


class Forever:
    """A policy that never decides, and records when it was asked and cancelled."""

    def __init__(self):
        self.asked = asyncio.Event()
        self.stopped = asyncio.Event()

    async def decide(self, question):
        self.asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped.set()


async def test_cancelled_turn_ends_and_the_session_stays_usable():
    async with session_with(scripted([steps.Say("a"), steps.WaitForCancel()], [steps.Say("b")])) as session:
        turn = session.prompt("go")
        await anext(turn)
        session.cancel()
        assert done(await read(turn)).stop_reason == "cancelled"
        assert await session.ask("again") == "b"


async def test_cancelling_when_nothing_runs_sends_nothing():
    async with session_with(scripted([steps.Say("a")])) as session:
        session.cancel()
        assert await session.ask("go") == "a"


@pytest.mark.parametrize("request_id", [7, "seven", -1])
async def test_pending_permission_request_is_answered_cancelled(request_id):
    policy = Forever()
    wait = [ask_permission(request_id), {"hear": "session/cancel"}, {"hear": "answer"}, CANCELLED]
    async with session_with(raw({}, wait), policy=policy) as session:
        reading = asyncio.ensure_future(read(session.prompt("go")))
        await policy.asked.wait()
        session.cancel()
        events = await reading
        await policy.stopped.wait()
    heard = [json.loads(event.text) for event in events if isinstance(event, TextChunk)]
    assert heard[0]["params"] == {"sessionId": "s"}
    assert heard[1] == {"jsonrpc": "2.0", "id": request_id, "result": {"outcome": {"outcome": "cancelled"}}}
    assert [event.decision for event in events if isinstance(event, PermissionRequested)] == [None]


async def test_permission_request_after_the_cancel_is_answered_cancelled():
    ask = [ask_permission(7), {"hear": "answer"}]
    turn = [chunk("a"), {"hear": "session/cancel"}, *ask, *ask, CANCELLED]
    async with session_with(raw({}, turn, [*ask, END])) as session:
        events = session.prompt("go")
        await anext(events)
        session.cancel()
        assert text(await read(events)).count('"outcome": {"outcome": "cancelled"}') == 2
        assert '"optionId": "no"' in await session.ask("again")


async def test_decision_made_during_the_cancel_does_not_count():
    class CancelsAndAllows:
        async def decide(self, question):
            session.cancel()
            return Decision("allow")

    wait = [ask_permission(7), {"hear": "session/cancel"}, {"hear": "answer"}, CANCELLED]
    async with session_with(raw({}, wait), policy=CancelsAndAllows()) as session:
        events = await read(session.prompt("go"))
    assert '"outcome": {"outcome": "cancelled"}' in text(events)


async def test_pending_elicitation_is_answered_cancel():
    asked = asyncio.Event()

    async def elicit(request):
        assert request.session_id == "s"
        asked.set()
        await asyncio.Event().wait()

    params = {"sessionId": "s", "mode": "form", "message": "Who?", "requestedSchema": {"type": "object"}}
    ask = {"id": "e", "method": "elicitation/create", "params": params}
    turn = [ask, {"hear": "session/cancel"}, {"hear": "answer"}, CANCELLED]
    async with session_with(raw({}, turn), elicit=elicit) as session:
        reading = asyncio.ensure_future(read(session.prompt("go")))
        await asked.wait()
        session.cancel()
        assert '{"id": "e", "jsonrpc": "2.0", "result": {"action": "cancel"}}' in text(await reading)


async def test_cancel_only_ends_questions_of_its_session():
    policy = Forever()
    turn = [steps.AskPermission()]
    async with agent_of(scripted(turn), policy=policy) as agent:
        first = await agent.new_session("/")
        second = await agent.new_session("/")
        readings = [asyncio.ensure_future(read(each.prompt("go"))) for each in (first, second)]
        await policy.asked.wait()
        first.cancel()
        assert done(await readings[0]).stop_reason == "cancelled"
        assert not readings[1].done()
        second.cancel()
        assert done(await readings[1]).stop_reason == "cancelled"


async def test_leaving_the_loop_cancels_the_turn_and_the_next_prompt_waits_for_its_end():
    async with session_with(scripted([steps.Say("a"), steps.WaitForCancel()], [steps.Say("b")])) as session:
        async for _ in session.prompt("go"):
            break
        assert session.is_busy
        assert await session.ask("again") == "b"


async def test_an_exception_in_the_loop_cancels_the_turn():
    async with session_with(scripted([steps.Say("a"), steps.WaitForCancel()], [steps.Say("b")])) as session:
        with pytest.raises(ZeroDivisionError):
            async for _ in session.prompt("go"):
                _ = 1 / 0
        assert await session.ask("again") == "b"


async def test_a_timeout_around_the_loop_cancels_the_turn():
    async with session_with(scripted([steps.Say("a"), steps.WaitForCancel()], [steps.Say("b")])) as session:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(None) as limit:
                async for _ in (turn := session.prompt("go")):
                    limit.reschedule(0)
        assert await session.ask("again") == "b"
        assert await read(turn) == []


async def test_a_cancelled_ask_has_ended_its_turn():
    async with session_with(scripted([steps.Say("a"), steps.WaitForCancel()], [steps.Say("b")])) as session:
        asking = asyncio.ensure_future(session.ask("go"))
        await until(lambda: session.is_busy)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert not session.is_busy
        assert await session.ask("again") == "b"


async def test_the_end_of_async_with_waits_for_the_end_of_the_turn():
    async with session_with(scripted([steps.Say("a"), steps.WaitForCancel()], [steps.Say("b")])) as session:
        async with session.prompt("go") as turn:
            await anext(turn)
        assert not session.is_busy
        assert await session.ask("again") == "b"


async def test_events_after_leaving_are_not_part_of_the_next_turn():
    left = [chunk("a"), {"hear": "session/cancel"}, chunk("late"), CANCELLED]
    async with session_with(raw({}, left, [chunk("b"), END])) as session:
        async for _ in session.prompt("go"):
            break
        assert await session.ask("again") == "b"
        assert not session.events_between_turns


async def test_error_answer_to_a_cancelled_turn_is_not_raised():
    turn = [chunk("a"), {"hear": "session/cancel"}, {"error": {"code": -32603, "message": "aborted"}}]
    async with session_with(raw({}, turn)) as session:
        events = session.prompt("go")
        await anext(events)
        session.cancel()
        assert done(await read(events)).stop_reason == "cancelled"


async def test_end_turn_after_a_cancel_is_passed_on():
    turn = [chunk("a"), {"hear": "session/cancel"}, END]
    async with session_with(raw({}, turn)) as session:
        events = session.prompt("go")
        await anext(events)
        session.cancel()
        assert done(await read(events)).stop_reason == "end_turn"


async def test_agent_that_ignores_the_cancel_raises_an_error(monkeypatch):
    monkeypatch.setattr(turns, "CANCEL_TIMEOUT_S", 0.2)
    async with session_with(raw({}, [chunk("a")])) as session:
        async for _ in session.prompt("go"):
            break
        with pytest.raises(CancelIgnoredError, match=r"0\.2 s"):
            await session.ask("again")
