"""A program's function answers prompts, and each prompt is answered exactly once."""

import asyncio
import functools
import logging
import sys
import time

import pytest

from dragoman.agent import Agent
from dragoman.agent.turns import turn_runner
from dragoman.agent.turns.turn import TurnEndedError
from dragoman.agent.turns.unawaited import UnawaitedCallError
from dragoman.client import connect
from dragoman.errors import ErrorCode, RemoteError, RpcError
from dragoman.protocol import v1
from dragoman.protocol.methods import SESSION_PROMPT
from tests.agent.connecting import make_agent, session_with


async def test_coroutine_function_answers(tmp_path):
    async def answer(turn):
        await turn.say(f"You said {turn.text}")

    async with session_with(make_agent(tmp_path, answer), tmp_path) as session:
        result = await session.run("hello")
    assert (result.text, result.stop_reason) == ("You said hello", "end_turn")


async def test_async_generator_answers_with_its_values(tmp_path):
    async def answer(turn):
        for word in turn.text.split():
            yield f"{word}!"

    async with session_with(make_agent(tmp_path, answer), tmp_path) as session:
        assert (await session.run("a b")).text == "a!b!"


async def test_partial_and_method_answer(tmp_path):
    class Answers:
        async def answer(self, word, turn):
            await turn.say(word)

    for function in (functools.partial(Answers().answer, "hi"),):
        async with session_with(make_agent(tmp_path, function), tmp_path) as session:
            assert (await session.run("x")).text == "hi"


@pytest.mark.parametrize("reason", ["max_tokens", "refusal", "max_turn_requests", "end_turn"])
async def test_function_may_return_a_stop_reason(tmp_path, reason):
    async def answer(turn):
        return reason

    async with session_with(make_agent(tmp_path, answer), tmp_path) as session:
        assert (await session.run("x")).stop_reason == reason


def test_function_that_is_not_async_is_refused_at_registration():
    with pytest.raises(TypeError, match="on_prompt: answer is not async"):

        @Agent("test").on_prompt
        def answer(turn):
            pass


@pytest.mark.parametrize("name", ["", "/count", "two words", "why?", "a/b"])
def test_command_name_must_be_callable_from_a_prompt(name):
    with pytest.raises(ValueError, match="is not a valid command name"):
        Agent("test").command(name, "does something")


async def failing(turn):
    await turn.say("so far")
    raise ValueError("the disk\nis round")


async def speechless(turn):
    pass


async def nonsense(turn):
    return 42


async def leaving(turn):
    raise SystemExit(3)


async def stopping_itself(turn):
    raise asyncio.CancelledError


async def yielding_numbers(turn):
    yield 1


async def mistaking_the_kind(turn):
    turn.tool("Write", kind="write")


async def mistaking_the_status(turn):
    await turn.plan(["first", ("second", "done")])


async def refusing(turn):
    raise RpcError(ErrorCode.INVALID_REQUEST, "not on a Sunday")


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (failing, "test failed: ValueError: the disk is round; see its log on stderr"),
        (nonsense, "nonsense returned 42; expected None or one of end_turn"),
        (leaving, r"leaving called sys.exit\(3\)"),
        (stopping_itself, "raised CancelledError"),
        (yielding_numbers, "an answer consists of text and content blocks, not int"),
        (mistaking_the_kind, "'write' is not a tool call kind; expected one of read, edit"),
        (mistaking_the_status, "'done' is not a step status; expected one of pending"),
        (refusing, "not on a Sunday"),
    ],
)
async def test_failing_function_is_one_error_and_the_session_continues(tmp_path, function, words):
    agent = make_agent(tmp_path, function)

    @agent.command("fine", "Says that it is fine")
    async def fine(turn):
        await turn.say("fine")

    async with session_with(agent, tmp_path) as session:
        result = await session.run("x")
        assert isinstance(result.error, RemoteError)
        with pytest.raises(RemoteError, match=words):
            result.raise_for_error()
        assert "Traceback" not in str(result.error)
        assert (await session.run("/fine")).text == "fine"


async def test_traceback_of_a_failure_is_only_in_the_log(tmp_path, caplog):
    async with session_with(make_agent(tmp_path, failing), tmp_path) as session:
        result = await session.run("x")
    assert result.text == "so far"
    [record] = [record for record in caplog.records if record.exc_info]
    assert record.exc_info[0] is ValueError


async def test_function_without_an_answer_ends_its_turn(tmp_path):
    async with session_with(make_agent(tmp_path, speechless), tmp_path) as session:
        result = await session.run("x")
    assert (result.text, result.stop_reason) == ("", "end_turn")


async def test_agent_without_a_function_explains_what_is_missing(tmp_path):
    async with session_with(make_agent(tmp_path), tmp_path) as session:
        with pytest.raises(RemoteError, match=r"decorate one with @agent\.on_prompt"):
            (await session.run("x")).raise_for_error()


async def test_function_that_blocks_the_loop_causes_a_warning(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(turn_runner, "BLOCKED_S", 0.01)

    async def answer(turn):
        await asyncio.sleep(0.02)
        time.sleep(0.1)  # this blocks the loop

    with caplog.at_level(logging.WARNING, "dragoman.agent"):
        async with session_with(make_agent(tmp_path, answer), tmp_path) as session:
            await session.run("x")
    assert "the event loop was blocked" in caplog.text


async def test_text_sent_after_the_function_returned_is_refused(tmp_path):
    late = asyncio.Event()
    met = []

    async def talk(turn):
        await late.wait()
        try:
            await turn.say("too late")
        except TurnEndedError as error:
            met.append(error)

    tasks = []

    async def answer(turn):
        tasks.append(asyncio.create_task(talk(turn)))
        await turn.say("done")

    async with session_with(make_agent(tmp_path, answer), tmp_path) as session:
        assert (await session.run("x")).text == "done"
        late.set()
        await asyncio.gather(*tasks)
        assert len(met) == 1
        assert not session.events_between_turns


async def test_tool_call_after_the_turn_is_neither_announced_nor_asked_about(tmp_path):
    late = asyncio.Event()
    met, tasks, questions = [], [], []

    async def act(prepared, announced):
        await late.wait()
        for action in (prepared.announce, announced.allowed, lambda: announced.choose([])):
            try:
                await action()
            except TurnEndedError as error:
                met.append(error)

    async def answer(turn):
        announced = turn.tool("Write a.txt", kind="edit", locations=["a.txt"])
        await announced.announce()
        tasks.append(asyncio.create_task(act(turn.tool("Count"), announced)))

    async def policy(question):
        questions.append(question)
        return True

    async with session_with(make_agent(tmp_path, answer), tmp_path, policy=policy) as session:
        [call] = (await session.run("x")).tool_calls
        late.set()
        await asyncio.gather(*tasks)
        assert (call.status, len(met), questions) == ("failed", 3, [])
        assert not session.events_between_turns


@pytest.mark.parametrize("fault", ["title", "shown", "progress", "output"])
async def test_announced_call_with_unencodable_content_is_ended(tmp_path, fault):
    async def answer(turn):
        given = {"x": object()} if fault == "title" else None
        async with turn.tool("Count", raw_input=given) as call:
            await call.show("good")
            match fault:
                case "shown":
                    await call.show(v1.TextContent(text=object()))
                case "progress":
                    await call.progress(v1.TextContent(text=object()))
                case _:
                    await call.raw_output(object())

    async with session_with(make_agent(tmp_path, answer), tmp_path) as session:
        result = await session.run("x")
    assert result.error is not None
    shown = [(call.status, call.content[0].content.text) for call in result.tool_calls]
    assert shown == ([] if fault == "title" else [("failed", "good")])


async def test_lone_surrogate_is_replaced_in_all_updates_and_requests(tmp_path):
    asked = []

    async def policy(question):
        asked.append(question)
        return True

    async def answer(turn):
        await turn.think("half \ud83d")
        await turn.say("half \ud83d whole \ud83d\ude00")
        async with turn.tool("Do", kind="other", raw_input={"half \ude00": ["\ud83d"]}) as call:
            await call.show("half \ud83d")
            await call.progress("half \ud83d")
            await call.allowed()

    async with session_with(make_agent(tmp_path, answer), tmp_path, policy=policy) as session:
        result = await session.run("x")
    [call] = result.tool_calls
    assert (result.error, result.text) == (None, "half \ufffd whole \U0001f600")
    assert (call.status, call.content[0].content.text) == ("completed", "half \ufffd")
    assert call.raw_input == {"half \ufffd": ["\ufffd"]}
    assert len(asked) == 1


async def test_two_sessions_answer_concurrently(tmp_path):
    both = asyncio.Barrier(2)

    async def answer(turn):
        await both.wait()  # ends only if both sessions run a turn
        turn.session.state["words"] = turn.text
        await turn.say(turn.text)

    agent = make_agent(tmp_path, answer)
    async with session_with(agent, tmp_path) as one, session_with(agent, tmp_path) as two:
        results = await asyncio.gather(one.run("one"), two.run("two"))
    assert [result.text for result in results] == ["one", "two"]


async def test_second_prompt_to_a_busy_session_is_refused(tmp_path):
    begun, end = asyncio.Event(), asyncio.Event()

    async def answer(turn):
        begun.set()
        await end.wait()

    async with make_agent(tmp_path, answer).connect() as remote:
        session = await remote.new_session(tmp_path)
        first = asyncio.create_task(session.run("x"))
        await begun.wait()
        second = v1.PromptRequest(session_id=session.id, prompt=[v1.TextContent(text="y")])
        with pytest.raises(RemoteError, match="busy with a turn"):
            await remote.link.call(SESSION_PROMPT, second)
        end.set()
        assert (await first).stop_reason == "end_turn"


async def forget_to_await(turn):
    turn.say("lost")
    await turn.say("said")


async def test_call_without_await_fails_the_test(tmp_path):
    with pytest.raises(UnawaitedCallError) as failure:
        async with session_with(make_agent(tmp_path, forget_to_await), tmp_path) as session:
            assert (await session.run("x")).text == "said"
            await session.run("x")
    line = forget_to_await.__code__.co_firstlineno + 1
    assert failure.value.calls == [
        f"test_prompts.py:{line}: Turn.say() was called without await, so it did nothing; write `await` before it"
    ]


async def test_permission_without_await_fails_in_a_test(tmp_path):
    async def answer(turn):
        async with turn.tool("Write a.txt", kind="edit") as call:
            if call.allowed():
                await turn.say("written")

    with pytest.raises(UnawaitedCallError, match=r"ToolCallHandle\.allowed\(\) was called without await"):
        async with session_with(make_agent(tmp_path, answer), tmp_path) as session:
            await session.run("x")


async def test_call_that_runs_as_a_task_is_not_forgotten(tmp_path):
    async def answer(turn):
        await asyncio.gather(turn.say("a"), asyncio.create_task(turn.say("b")))

    async with session_with(make_agent(tmp_path, answer), tmp_path) as session:
        assert sorted((await session.run("x")).text) == ["a", "b"]


PROGRAM = """
from dragoman.agent import Agent

agent = Agent("test")

@agent.on_prompt
async def answer(turn):
    turn.say("lost")
    await turn.say("said")

agent.run()
"""


async def test_call_without_await_is_a_warning_on_stderr(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    stderr = bytearray()
    command = [sys.executable, str(tmp_path / "program.py")]
    async with connect(command, env={"DRAGOMAN_HOME": str(tmp_path)}, on_stderr=stderr.extend) as remote:
        session = await remote.new_session(tmp_path)
        assert (await session.run("x")).text == "said"
    assert stderr.decode() == (
        "test: WARNING: program.py:8: Turn.say() was called without await, so it did nothing; write `await` before it\n"
    )


async def test_calls_without_await_are_found_among_many(tmp_path):
    async def answer(turn):
        for number in range(100):
            await turn.say(f"{number} ")
        turn.plan(["lost"])
        for number in range(100):
            await turn.think(f"{number} ")

    with pytest.raises(UnawaitedCallError, match=r"Turn\.plan\(\)"):
        async with session_with(make_agent(tmp_path, answer), tmp_path) as session:
            await session.run("x")
