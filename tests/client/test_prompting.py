"""Prompts and their events."""

import asyncio

import pytest

from dragoman.client.errors import PromptRunningError, TurnStoppedError
from dragoman.client.events import OtherUpdate, TextChunk, ThoughtChunk, TurnFinished, UserTextChunk
from dragoman.client.sessions.turn import MAX_EVENTS
from dragoman.errors import InvalidResultError, ProcessDiedError, RemoteError
from dragoman.testing import steps
from tests.client.driving import END, agent_of, chunk, collect, done, read, session_with, text
from tests.commands import raw, scripted


async def test_events_arrive_in_order_and_end_with_turn_finished():
    async with session_with(scripted([steps.Think("hm"), steps.Say("a "), steps.Say("b")])) as session:
        events = await read(session.prompt("go"))
    assert [type(event) for event in events] == [ThoughtChunk, TextChunk, TextChunk, TurnFinished]
    assert done(events) == TurnFinished("end_turn", None, "a b")


async def test_every_event_has_its_update():
    async with session_with(scripted([steps.Say("a")])) as session:
        event, _ = await read(session.prompt("go"))
    assert event.update.content.text == "a"


async def test_ask_returns_only_the_text():
    async with session_with(scripted([steps.Say("a "), steps.Think("hm"), steps.Say("b")])) as session:
        assert await session.ask("go") == "a b"


@pytest.mark.parametrize("reason", ["refusal", "max_tokens", "something_new"])
async def test_ask_raises_the_stop_reason(reason):
    async with session_with(scripted([steps.Say("half"), steps.Stop(reason)])) as session:
        with pytest.raises(TurnStoppedError) as caught:
            await session.ask("go")
    assert (caught.value.stop_reason, caught.value.text) == (reason, "half")


@pytest.mark.parametrize("message_id", [None, "m"])
async def test_echo_of_the_prompt_is_not_an_event(message_id):
    chunks = [
        steps.Update(
            {"sessionUpdate": "user_message_chunk", "messageId": message_id, "content": {"type": "text", "text": each}}
        )
        for each in ("go", " on", "something else")
    ]
    async with session_with(scripted([*chunks[:2], steps.Say("a")], [chunks[2], steps.Say("b")])) as session:
        assert [type(event) for event in await read(session.prompt("go on"))] == [TextChunk, TurnFinished]
        assert [type(event) for event in await read(session.prompt("go on"))] == [
            UserTextChunk,
            TextChunk,
            TurnFinished,
        ]


@pytest.mark.parametrize(
    "usage",
    [
        {"usage": {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}},
        {"_meta": {"quota": {"token_count": {"input_tokens": 1, "output_tokens": 2}}}},  # as gemini reports it
    ],
)
async def test_usage_is_in_turn_finished(usage):
    command = raw({}, [{"result": {"stopReason": "end_turn", **usage}}])
    async with session_with(command) as session:
        assert done(await read(session.prompt("go"))).usage.total_tokens == 3


async def test_flood_of_updates_arrives_in_order_before_the_end():
    numbers = range(2 * MAX_EVENTS)
    async with session_with(scripted([steps.Say(f"{number} ") for number in numbers])) as session:
        events = await read(session.prompt("go"))
    assert text(events).split() == [str(number) for number in numbers]


async def test_nothing_is_sent_before_the_events_are_read():
    async with session_with(scripted([steps.Say("one")], [steps.Say("two")])) as session:
        unread = session.prompt("not sent")
        assert await session.ask("go") == "one"
        assert text(await read(unread)) == "two"


async def test_second_prompt_is_refused_while_one_runs():
    async with session_with(scripted([steps.Say("a"), steps.WaitForCancel()])) as session:
        turn = session.prompt("go")
        assert isinstance(await anext(turn), TextChunk)
        with pytest.raises(PromptRunningError):
            await session.ask("too early")
        session.cancel()
        assert done(await read(turn)).stop_reason == "cancelled"


async def test_two_sessions_run_concurrently():
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


async def test_answer_without_a_stop_reason_is_an_error():
    async with session_with(raw({}, [{"result": None}], [chunk("fine"), END])) as session:
        with pytest.raises(InvalidResultError, match="session/prompt"):
            await read(session.prompt("go"))
        assert await session.ask("again") == "fine"


async def test_an_unknown_update_is_an_event():
    async with session_with(scripted([steps.Update({"sessionUpdate": "weather", "sky": "blue"})])) as session:
        event, _ = await read(session.prompt("go"))
    assert isinstance(event, OtherUpdate)
    assert event.update.data == {"sessionUpdate": "weather", "sky": "blue"}


@pytest.mark.parametrize(
    ("death", "code", "signal"), [({"exit": 3, "stderr": "out of luck"}, 3, None), ({"signal": 9}, None, 9)]
)
async def test_dead_agent_ends_the_turn_after_its_last_events(death, code, signal):
    events = []
    async with session_with(raw({}, [chunk("a"), death])) as session:
        with pytest.raises(ProcessDiedError) as caught:
            await collect(session.prompt("go"), events)
        with pytest.raises(ProcessDiedError):
            await session.ask("anybody there?")
    assert text(events) == "a"
    assert (caught.value.exit_code, caught.value.signal) == (code, signal)
    assert caught.value.stderr_tail.strip() == death.get("stderr", "")


async def test_dead_agent_is_detected_despite_a_surviving_child():
    events = []
    script = [chunk("a"), {"long": 100_000}, {"leave": True}, {"exit": 3, "stderr": "out of luck"}]
    async with session_with(raw({}, script)) as session:
        with pytest.raises(ProcessDiedError) as caught:
            await collect(session.prompt("go"), events)
    assert text(events) == "a" + 100_000 * "x"
    assert (caught.value.exit_code, caught.value.stderr_tail.strip()) == (3, "out of luck")


async def test_dead_agent_fails_every_pending_call():
    command = raw({"session/load": [[]]}, [chunk("a"), {"exit": 4}], capabilities={"loadSession": True})
    async with agent_of(command) as agent:
        session = await agent.new_session("/")
        load = asyncio.ensure_future(agent.load_session("other", "/"))
        with pytest.raises(ProcessDiedError):
            await read(session.prompt("go"))
        with pytest.raises(ProcessDiedError) as caught:
            await load
    assert caught.value.exit_code == 4


async def test_leaving_the_connection_ends_a_running_turn():
    async with session_with(scripted([steps.Say("a"), steps.WaitForCancel()])) as session:
        turn = session.prompt("go")
        await anext(turn)
    assert not session.is_busy
