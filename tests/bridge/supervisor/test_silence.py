"""An agent that says nothing while it should open a session: whoever waits is told, and a late answer is not lost."""

import pytest

from dragoman.bridge.supervisor import SilenceTimer
from tests.bridge.viewers import LOADING, RESUMING, agent, join, serve
from tests.waiting import until

SILENT_S = 0.05


@pytest.mark.parametrize(("method", "capabilities"), [("session/load", LOADING), ("session/resume", RESUMING)])
async def test_a_load_that_the_agent_does_not_answer_is_an_error_and_its_late_answer_opens_the_session(
    tmp_path, method, capabilities
):
    store, gate, log = tmp_path / "store", tmp_path / "gate", tmp_path / "log"
    store.mkdir()
    spec = agent(capabilities=capabilities, store=str(store), load_waits=str(gate), log=str(log))
    async with serve(tmp_path, spec, open_timeout_s=SILENT_S) as served:
        (store / "old").write_text(
            '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"old","update":{"sessionUpdate":'
            '"agent_message_chunk","content":{"type":"text","text":"once"}}}}\n'
        )
        one, two = await join(served), await join(served)
        for viewer in (one, two):
            error = (await viewer.load("old", method))["error"]
            assert f"has not answered {method} of session old" in error["message"]
            assert error["message"] == f"Internal error: {error['data']['problem']}"
        assert not one.viewer.knows("old")
        gate.touch()
        await until(lambda: served.registry.sessions["old"].setup.fields)
        for viewer in (one, two):
            assert "result" in await viewer.load("old")
            assert viewer.said() == (["once"] if method == "session/load" else [])
    assert log.read_text().count(f'"{method}"') == 1


async def test_a_new_session_that_the_agent_does_not_answer_is_an_error_and_can_be_opened_later(tmp_path):
    gate = tmp_path / "gate"
    async with serve(tmp_path, agent(new_waits=str(gate)), open_timeout_s=SILENT_S) as served:
        one = await join(served)
        error = (await one.ask("session/new", {"cwd": "/work", "mcpServers": []}))["error"]
        assert "has not answered session/new" in error["message"]
        gate.touch()
        await until(lambda: served.registry.sessions)
        (session,) = served.registry.sessions
        assert "result" in await one.load(session)
        assert len([message for message in one.seen if message.get("id") == "q2"]) == 1


async def test_an_agent_that_waits_for_a_person_is_not_silent(tmp_path):
    async with serve(tmp_path, agent(new_elicits=True)) as served:
        one = await join(served, elicitation={"form": {}})
        new = one.request("session/new", {"cwd": "/work", "mcpServers": []})
        asked = await one.asked("elicitation/create")
        (call,) = served.supervisor.calls
        for _ in range(3):
            call.timer.look()
        one.reply(asked, {"action": "accept", "content": {}})
        assert "result" in await one.answer(new)


async def test_signs_of_life_are_waited_for_however_long_it_takes():
    signs, silent = [0], []
    timer = SilenceTimer(3600, lambda: signs[0], lambda: silent.append(signs[0]))
    for _ in range(3):
        signs[0] += 1
        timer.look()
    assert silent == []
    timer.look()
    assert silent == [3]
    timer.stop()
