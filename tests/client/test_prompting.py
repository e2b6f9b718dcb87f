"""A prompt and its events."""

import asyncio

import pytest

from dragoman.client import Done, Other, PromptRunning, Text, Thought, TurnStopped
from dragoman.client.turn import MAX_EVENTS
from dragoman.errors import InvalidResult, ProcessDied, RemoteError
from dragoman.testing import steps
from tests.client.driving import END, agent_of, chunk, collect, done, read, session_with, text
from tests.commands import raw, scripted


async def test_events_come_in_order_and_end_with_done():
    async with session_with(scripted([steps.Think("hm"), steps.Say("a "), steps.Say("b")])) as session:
        events = await read(session.prompt("go"))
    assert [type(event) for event in events] == [Thought, Text, Text, Done]
    assert done(events) == Done("end_turn", None, "a b")


async def test_every_event_has_the_update_that_it_was_made_of():
    async with session_with(scripted([steps.Say("a")])) as session:
        event, _ = await read(session.prompt("go"))
    assert event.update.content.text == "a"


async def test_ask_returns_the_text_alone():
    async with session_with(scripted([steps.Say("a "), steps.Think("hm"), steps.Say("b")])) as session:
        assert await session.ask("go") == "a b"


@pytest.mark.parametrize("reason", ["refusal", "max_tokens", "something_new"])
async def test_ask_raises_what_stopped_a_turn_before_its_end(reason):
    async with session_with(scripted([steps.Say("half"), steps.Stop(reason)])) as session:
        with pytest.raises(TurnStopped) as caught:
            await session.ask("go")
    assert (caught.value.stop_reason, caught.value.text) == (reason, "half")


async def test_usage_comes_with_done():
    usage = {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}
    command = raw({}, [{"result": {"stopReason": "end_turn", "usage": usage}}])
    async with session_with(command) as session:
        assert done(await read(session.prompt("go"))).usage.total_tokens == 3


async def test_every_update_of_a_flood_comes_before_done_and_in_order():
    numbers = range(2 * MAX_EVENTS)
    async with session_with(scripted([steps.Say(f"{number} ") for number in numbers])) as session:
        events = await read(session.prompt("go"))
    assert text(events).split() == [str(number) for number in numbers]


async def test_nothing_is_sent_before_the_events_are_read():
    async with session_with(scripted([steps.Say("one")], [steps.Say("two")])) as session:
        unread = session.prompt("not sent")
        assert await session.ask("go") == "one"
        assert text(await read(unread)) == "two"


async def test_a_prompt_while_one_runs_is_refused_and_the_running_one_goes_on():
    async with session_with(scripted([steps.Say("a"), steps.WaitForCancel()])) as session:
        turn = session.prompt("go")
        assert isinstance(await anext(turn), Text)
        with pytest.raises(PromptRunning):
            await session.ask("too early")
        session.cancel()
        assert done(await read(turn)).stop_reason == "cancelled"


async def test_two_sessions_run_side_by_side():
    async with agent_of(scripted([steps.Say("a"), steps.WaitForCancel()], [steps.Say("b")])) as agent:
        first, second = await agent.new_session("/"), await agent.new_session("/")
        turn = first.prompt("go")
        assert text([await anext(turn)]) == "a"
        assert await second.ask("go") == "b"
        first.cancel()
        assert done(await read(turn)).stop_reason == "cancelled"


async def test_an_error_of_the_agent_is_raised_after_the_events_before_it():
    async with session_with(scripted([steps.Say("a"), steps.Fail(-32603, "no model")], [steps.Say("b")])) as session:
        events = []
        with pytest.raises(RemoteError, match="no model"):
            await collect(session.prompt("go"), events)
        assert text(events) == "a"
        assert await session.ask("again") == "b"


async def test_an_unknown_stop_reason_is_passed_on():
    async with session_with(scripted([steps.Stop("tired")])) as session:
        assert done(await read(session.prompt("go"))).stop_reason == "tired"


async def test_an_answer_without_a_stop_reason_is_an_error_and_the_session_goes_on():
    async with session_with(raw({}, [{"result": None}], [chunk("fine"), END])) as session:
        with pytest.raises(InvalidResult, match="session/prompt"):
            await read(session.prompt("go"))
        assert await session.ask("again") == "fine"


async def test_an_unknown_update_is_an_event():
    async with session_with(scripted([steps.Update({"sessionUpdate": "weather", "sky": "blue"})])) as session:
        event, _ = await read(session.prompt("go"))
    assert isinstance(event, Other)
    assert event.update.data == {"sessionUpdate": "weather", "sky": "blue"}


@pytest.mark.parametrize(
    ("death", "code", "signal"), [({"exit": 3, "stderr": "out of luck"}, 3, None), ({"signal": 9}, None, 9)]
)
async def test_the_death_of_the_agent_ends_the_turn_after_what_it_said_before(death, code, signal):
    events = []
    async with session_with(raw({}, [chunk("a"), death])) as session:
        with pytest.raises(ProcessDied) as caught:
            await collect(session.prompt("go"), events)
        with pytest.raises(ProcessDied):
            await session.ask("anybody there?")
    assert text(events) == "a"
    assert (caught.value.exit_code, caught.value.signal) == (code, signal)
    assert caught.value.stderr_tail.strip() == death.get("stderr", "")


async def test_the_death_of_the_agent_fails_every_pending_call():
    command = raw({"session/load": [[]]}, [chunk("a"), {"exit": 4}], capabilities={"loadSession": True})
    async with agent_of(command) as agent:
        session = await agent.new_session("/")
        load = asyncio.ensure_future(agent.load_session("other", "/"))
        with pytest.raises(ProcessDied):
            await read(session.prompt("go"))
        with pytest.raises(ProcessDied) as caught:
            await load
    assert caught.value.exit_code == 4


async def test_a_turn_that_runs_when_the_connection_is_left_ends_with_it():
    async with session_with(scripted([steps.Say("a"), steps.WaitForCancel()])) as session:
        turn = session.prompt("go")
        await anext(turn)
    assert not session.is_busy
