"""A session id works in every process once it was answered, even before the first prompt (R7)."""

import asyncio
import signal

import pytest

from dragoman.errors import ErrorCode
from dragoman.store import FileStore
from tests.assistant.coming_back import close, converse, delete, files, fork, listed, load, raw_client, resume
from tests.assistant.own_process import AgentProcess
from tests.assistant.running import running_agent, set_mode
from tests.errors import refused
from tests.waiting import until


async def set_option(client, session_id, option, value):
    params = {"sessionId": session_id, "configId": option, "value": value}
    await client.connection.call_extension("session/set_config_option", params)


def current(answer, option):
    return next(each.current_value for each in answer.config_options if each.id == option)


@pytest.mark.parametrize("bring_back", [load, resume])
async def test_unprompted_session_continues_in_the_next_process(place, bring_back):
    cwd, home = place
    async with running_agent(home) as client:
        await client.initialize()
        session_id = await client.new_session(str(cwd))
    async with running_agent(home) as client:
        await client.initialize()
        answer = await bring_back(client, session_id, cwd)
        assert answer.modes.current_mode_id == "ask"
        assert client.conversation() == []
        assert (await client.prompt(session_id, "hi")).stop_reason == "end_turn"
        assert client.text() == "hello"


@pytest.mark.parametrize("bring_back", [load, resume])
async def test_settings_before_the_first_prompt_survive_the_process(place, bring_back):
    cwd, home = place
    async with running_agent(home) as client:
        await client.initialize()
        session_id = await client.new_session(str(cwd))
        await set_option(client, session_id, "model", "guide")
        await set_mode(client, session_id, "plan")
    async with running_agent(home) as client:
        await client.initialize()
        answer = await bring_back(client, session_id, cwd)
        assert answer.modes.current_mode_id == current(answer, "mode") == "plan"
        assert current(answer, "model") == "guide"


async def test_session_keeps_the_mode_of_its_answer(place):
    cwd, home = place
    home.mkdir()
    (home / "dragoman.yaml").write_text("permissions: {mode: plan}\n")
    session_id, _ = await converse(place)
    (home / "dragoman.yaml").write_text("permissions: {mode: code}\n")
    async with running_agent(home) as client:
        await client.initialize()
        assert (await load(client, session_id, cwd)).modes.current_mode_id == "plan"


def test_killed_process_loses_neither_a_new_session_nor_its_mode(tmp_path):
    script = tmp_path / "script.yaml"
    script.write_text("- - text: hello\n")
    agent = AgentProcess(script)
    agent.send("session/new", cwd=str(tmp_path), mcpServers=[])
    session_id = agent.answer()["sessionId"]
    agent.send("session/set_mode", sessionId=session_id, modeId="plan")
    agent.answer()
    agent.kill()
    assert agent.end() == -signal.SIGKILL
    agent = AgentProcess(script)
    agent.send("session/load", sessionId=session_id, cwd=str(tmp_path), mcpServers=[])
    assert agent.answer()["modes"]["currentModeId"] == "plan"
    assert agent.end() == 0


async def test_session_is_listed_from_its_first_prompt_on(place):
    cwd, home = place
    async with running_agent(home, "- - text: started\n  - delay_s: 600\n") as client:
        await client.initialize()
        await client.new_session(str(cwd))
        session_id = await client.new_session(str(cwd))
        await set_mode(client, session_id, "plan")
        assert (await listed(client)).sessions == []
        turn = asyncio.ensure_future(client.prompt(session_id, "hi"))
        await client.wait_for(lambda c: c.text() == "started")
        assert [info.session_id for info in (await listed(client)).sessions] == [session_id]
        await client.cancel(session_id)
        await turn
    assert len(files(home)) == 2


async def test_closed_unprompted_session_can_be_loaded(place):
    cwd, home = place
    async with running_agent(home) as client:
        await client.initialize()
        session_id = await client.new_session(str(cwd))
        for _ in range(2):
            await close(client, session_id)
        await load(client, session_id, cwd)
        assert (await client.prompt(session_id, "hi")).stop_reason == "end_turn"


async def test_fork_of_an_unprompted_session_works_in_the_next_process(place):
    cwd, home = place
    async with running_agent(home) as client:
        await client.initialize()
        session_id = await client.new_session(str(cwd))
        await set_mode(client, session_id, "code")
        copy = await fork(client, session_id, cwd)
        assert (await listed(client)).sessions == []
    async with running_agent(home) as client:
        await client.initialize()
        assert (await load(client, copy, cwd)).modes.current_mode_id == "code"
        assert (await client.prompt(copy, "hi")).stop_reason == "end_turn"
        assert [info.session_id for info in (await listed(client)).sessions] == [copy]


async def test_deleted_unprompted_session_is_gone(place):
    cwd, home = place
    async with running_agent(home) as client:
        await client.initialize()
        session_id = await client.new_session(str(cwd))
        await delete(client, session_id)
        assert (await refused(load(client, session_id, cwd))).code == ErrorCode.RESOURCE_NOT_FOUND
    assert files(home) == []


async def test_sessions_created_in_parallel_all_exist(place):
    cwd, home = place
    async with running_agent(home) as client:
        await client.initialize()
        made = await asyncio.gather(*(client.new_session(str(cwd)) for _ in range(100)))
    assert len(set(made)) == len(files(home)) == 100
    store = FileStore(home)
    assert None not in [await store.find(session_id) for session_id in made]
    await store.close()


async def test_session_without_a_sent_answer_leaves_no_file(place):
    cwd, home = place
    async with raw_client(home, "- - text: a\n") as end:
        for number in range(1, 11):
            end.send({"id": number, "method": "session/new", "params": {"cwd": str(cwd), "mcpServers": []}})
            end.send({"method": "$/cancel_request", "params": {"requestId": number}})
        answers = []
        while len(answers) < 10:
            answer = await end.receive()
            answers += [answer] if "id" in answer else []
        answered = [answer for answer in answers if "result" in answer]
        assert len(answered) < 10
        await until(lambda: len(files(home)) == len(answered))
