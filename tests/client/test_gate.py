"""A function as the policy, asked before each call and limited in time."""

import asyncio

from dragoman.client.events import PermissionRequested
from dragoman.client.policies import Decision, ReadAction, ask_user
from dragoman.testing import steps
from tests.client.driving import END, read, session_with, text
from tests.commands import raw, scripted


async def outcome_of(policy):
    async with session_with(scripted([steps.AskPermission()]), policy=policy) as session:
        return text(await read(session.prompt("go")))


async def test_function_can_be_the_policy():
    async def service(question):
        await asyncio.sleep(0)
        return Decision("allow") if question.tool_call.title == "Edit notes.txt" else False

    assert await outcome_of(service) == "outcome: selected yes"
    assert await outcome_of(lambda question: True) == "outcome: selected yes"


async def test_failing_function_denies():
    async def broken(question):
        raise OSError("the service is down")

    assert await outcome_of(broken) == "outcome: selected no"


async def test_function_raising_timeout_error_denies():
    async def broken(question):
        raise TimeoutError

    assert await outcome_of(ask_user(broken, timeout_s=30)) == "outcome: selected no"


async def test_slow_function_denies_with_a_reason():
    left = asyncio.Event()

    async def slow(question):
        try:
            await asyncio.Event().wait()
        finally:
            left.set()

    async with session_with(scripted([steps.AskPermission()]), policy=ask_user(slow, timeout_s=0.1)) as session:
        events = await read(session.prompt("go"))
    assert text(events) == "outcome: selected no"
    [asked] = [event for event in events if isinstance(event, PermissionRequested)]
    assert asked.decision.reason == "no decision came within 0.1 s"
    assert left.is_set()


async def test_waiting_function_is_cancelled_with_the_turn():
    asked = asyncio.Event()

    async def person(question):
        asked.set()
        await asyncio.Event().wait()

    async with session_with(scripted([steps.AskPermission()]), policy=person) as session:
        turn = asyncio.create_task(read(session.prompt("go")))
        await asked.wait()
        session.cancel()
        assert text(await turn) == "outcome: cancelled"


async def test_function_may_be_asked_before_each_read(tmp_path):
    (tmp_path / "a.txt").write_text("secret")
    params = {"sessionId": "s", "path": str(tmp_path / "a.txt")}
    command = raw({}, [{"id": 5, "method": "fs/read_text_file", "params": params}, {"hear": "answer"}, END])
    questions = []

    def gate(answer):
        return lambda question: questions.append(question) or answer

    for answer, said in ((True, '"content": "secret"'), (False, "is not allowed")):
        policy = ask_user(gate(answer), reads=True)
        async with session_with(command, tmp_path, policy=policy, files="read") as session:
            assert said in text(await read(session.prompt("go")))
    assert [question.action for question in questions] == [ReadAction(str(tmp_path / "a.txt"), str(tmp_path))] * 2
    async with session_with(command, tmp_path, policy=ask_user(gate(False)), files="read") as session:
        assert '"content": "secret"' in text(await read(session.prompt("go")))
