"""A function as the policy: asked before each call, and given the time that it needs, within bounds."""

import asyncio

from dragoman.client.events import Asked
from dragoman.client.policies import Decision, Read, ask
from dragoman.testing import steps
from tests.client.driving import END, read, session_with, text
from tests.commands import raw, scripted


async def outcome_of(policy):
    async with session_with(scripted([steps.AskPermission()]), policy=policy) as session:
        return text(await read(session.prompt("go")))


async def test_a_function_is_a_policy():
    async def service(question):
        await asyncio.sleep(0)
        return Decision("allow") if question.tool_call.title == "Edit notes.txt" else False

    assert await outcome_of(service) == "outcome: selected yes"
    assert await outcome_of(lambda question: True) == "outcome: selected yes"


async def test_a_gate_that_fails_denies():
    async def broken(question):
        raise OSError("the service is down")

    assert await outcome_of(broken) == "outcome: selected no"


async def test_a_gate_that_fails_with_a_timeout_of_its_own_denies():
    async def broken(question):
        raise TimeoutError

    assert await outcome_of(ask(broken, timeout_s=30)) == "outcome: selected no"


async def test_a_gate_that_is_slow_denies_and_says_so():
    left = asyncio.Event()

    async def slow(question):
        try:
            await asyncio.Event().wait()
        finally:
            left.set()

    async with session_with(scripted([steps.AskPermission()]), policy=ask(slow, timeout_s=0.1)) as session:
        events = await read(session.prompt("go"))
    assert text(events) == "outcome: selected no"
    [asked] = [event for event in events if isinstance(event, Asked)]
    assert asked.decision.reason == "nobody decided within 0.1 s"
    assert left.is_set()


async def test_a_gate_that_waits_is_left_when_the_turn_is_cancelled():
    asked = asyncio.Event()

    async def person(question):
        asked.set()
        await asyncio.Event().wait()

    async with session_with(scripted([steps.AskPermission()]), policy=person) as session:
        turn = asyncio.create_task(read(session.prompt("go")))
        await asked.wait()
        session.cancel()
        assert text(await turn) == "outcome: cancelled"


async def test_a_gate_may_be_asked_before_each_read_through_us(tmp_path):
    (tmp_path / "a.txt").write_text("secret")
    params = {"sessionId": "s", "path": str(tmp_path / "a.txt")}
    command = raw({}, [{"id": 5, "method": "fs/read_text_file", "params": params}, {"hear": "answer"}, END])
    questions = []

    def gate(answer):
        return lambda question: questions.append(question) or answer

    for answer, said in ((True, '"content": "secret"'), (False, "is not allowed")):
        policy = ask(gate(answer), reads=True)
        async with session_with(command, tmp_path, policy=policy, files="read") as session:
            assert said in text(await read(session.prompt("go")))
    assert [question.action for question in questions] == [Read(str(tmp_path / "a.txt"), str(tmp_path))] * 2
    async with session_with(command, tmp_path, policy=ask(gate(False)), files="read") as session:
        assert '"content": "secret"' in text(await read(session.prompt("go")))
