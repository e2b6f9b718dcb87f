"""An agent that is silent while it should open a session: the request fails, and a late answer is not lost."""

import pytest

from dragoman.bridge.agent_link import SilenceWatch
from tests.bridge.viewers import LOADING, RESUMING, agent, join, serve
from tests.waiting import until

SILENT_S = 0.05


@pytest.mark.parametrize(("method", "capabilities"), [("session/load", LOADING), ("session/resume", RESUMING)])
async def test_late_answer_to_a_failed_load_opens_the_session(tmp_path, method, capabilities):
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
        await until(lambda: served.sessions.by_id["old"].setup.fields)
        for viewer in (one, two):
            assert "result" in await viewer.load("old")
            assert viewer.said() == (["once"] if method == "session/load" else [])
    assert log.read_text().count(f'"{method}"') == 1


async def test_late_answer_to_a_failed_new_session_makes_it_loadable(tmp_path):
    gate = tmp_path / "gate"
    async with serve(tmp_path, agent(new_waits=str(gate)), open_timeout_s=SILENT_S) as served:
        one = await join(served)
        error = (await one.ask("session/new", {"cwd": "/work", "mcpServers": []}))["error"]
        assert "has not answered session/new" in error["message"]
        gate.touch()
        await until(lambda: served.sessions.by_id)
        (session,) = served.sessions.by_id
        assert "result" in await one.load(session)
        assert len([message for message in one.seen if message.get("id") == "q2"]) == 1


async def test_agent_waiting_for_the_user_is_not_silent(tmp_path, monkeypatch):
    looks, look = [], SilenceWatch.look
    monkeypatch.setattr(SilenceWatch, "look", lambda watch: (looks.append(watch), look(watch)))
    async with serve(tmp_path, agent(new_elicits=True), open_timeout_s=SILENT_S) as served:
        one = await join(served, elicitation={"form": {}})
        new = one.request("session/new", {"cwd": "/work", "mcpServers": []})
        asked = await one.asked("elicitation/create")
        await until(lambda: len(looks) >= 3)
        one.reply(asked, {"action": "accept", "content": {}})
        assert "result" in await one.answer(new)


async def test_signs_of_life_extend_the_wait_without_limit():
    signs, silent = [0], []
    with SilenceWatch(3600, lambda: signs[0], lambda: silent.append(signs[0])) as watch:
        for _ in range(3):
            signs[0] += 1
            watch.look()
        assert silent == []
        watch.look()
        assert silent == [3]
