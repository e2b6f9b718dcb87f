"""The agent dies at any moment: viewers receive the reason, and sessions are reopened if possible."""

import asyncio
import json
import time

import pytest

from dragoman.bridge import AgentSpec
from tests.bridge.versions.pairs import join_v2, texts
from tests.bridge.viewers import A_DAY_S, LOADING, OPTIONS, RESUMING, RecordedViewer, agent, bridge_of, join, serve
from tests.waiting import until


def storing(tmp_path, **behaviour):
    store = tmp_path / "store"
    store.mkdir(exist_ok=True)
    return agent(store=str(store), log=str(tmp_path / "log"), **behaviour)


@pytest.mark.parametrize(
    ("fault", "words", "data"),
    [
        ("never", "did not answer initialize within 0.5 s", {}),
        ("exit", "exited with code 4 before it answered initialize", {"exitCode": 4, "stderr": "cannot begin"}),
        ("garbage", "Welcome to the agent!\nusage: agent --acp\nCheck that the command starts an ACP agent", {}),
        ("error", "refused to start: log in first", {}),
    ],
)
async def test_agent_that_fails_to_start_is_reported_with_its_output(tmp_path, fault, words, data):
    timeout = {"initialize_timeout_s": 0.5} if fault == "never" else {}
    async with serve(tmp_path / "home", agent(initialize=fault), **timeout) as served:
        error = (await RecordedViewer(served).initialize())["error"]
        assert " ".join(words.split()) in error["message"]
        assert words in error["data"]["problem"]
        assert data.items() <= error["data"].items()


async def test_missing_agent_command_is_reported(tmp_path):
    async with serve(tmp_path, AgentSpec("one", ("/no/such/agent",))) as served:
        error = (await RecordedViewer(served).initialize())["error"]
        assert "/no/such/agent" in error["message"]
        assert "no such command" in error["message"]


async def test_next_viewer_starts_an_agent_that_refused_the_last(tmp_path):
    spec = agent(starts=str(tmp_path / "starts"), dies_at_start=[1])
    async with serve(tmp_path / "home", spec) as served:
        one = RecordedViewer(served)
        assert "exited with code 9" in (await one.initialize())["error"]["message"]
        assert "result" in await one.initialize()
        assert await one.new()


async def test_concurrent_initialize_requests_start_one_agent(tmp_path):
    starts = tmp_path / "starts"
    async with serve(tmp_path / "home", agent(starts=str(starts))) as served:
        answers = await asyncio.gather(*(RecordedViewer(served).initialize() for _ in range(3)))
        assert all("result" in answer for answer in answers)
    assert starts.read_text() == "x"


@pytest.mark.parametrize("number", ["1e999", "9" * 5_000])
async def test_unreadable_numbers_in_capabilities_do_not_break_initialize(tmp_path, number):
    async with serve(tmp_path) as served:
        odd = RecordedViewer(served)
        params = f'{{"protocolVersion":1,"clientCapabilities":{{"x":{number}}}}}'
        odd.send(f'{{"jsonrpc":"2.0","id":"odd","method":"initialize","params":{params}}}'.encode())
        await odd.answer("odd")
        await odd.viewer.close()
        assert "result" in await RecordedViewer(served).initialize()


async def test_crash_caused_by_one_viewers_capabilities_spares_other_viewers(tmp_path):
    async with serve(tmp_path, agent(fears="terminal"), backoff_min_s=0.01) as served:
        one, two = await join(served), RecordedViewer(served)
        assert "code 3" in (await two.initialize(terminal=True))["error"]["message"]
        assert await one.new()


async def test_waiting_requests_report_how_the_agent_died(tmp_path):
    async with serve(tmp_path / "home") as served:
        one = await join(served, extensions=True)
        session = await one.new()
        answer = await one.prompt(session, {"say": "x"}, {"exit": 3, "stderr": "out of cheese", "partial": '{"json'})
        assert answer["error"]["code"] == -32603
        assert answer["error"]["message"] == "Internal error: the agent exited with code 3"
        assert answer["error"]["data"]["exitCode"] == 3
        assert answer["error"]["data"]["stderr"] == "out of cheese"
        crashed = await one.until(
            lambda message: message.get("method") == "_dragoman/agent" and message["params"]["state"] == "crashed"
        )
        assert crashed["params"] == {
            "state": "crashed",
            "reason": "the agent exited with code 3",
            "stderr": "out of cheese",
            "retryInS": 0.5,
        }
        news = await one.announced(session, lambda news: "error" in news)
        assert news["error"]["data"]["exitCode"] == 3


async def test_agent_exit_is_noticed_although_its_child_lives_on(tmp_path):
    spec = storing(tmp_path, capabilities=RESUMING)
    async with serve(tmp_path / "home", spec, backoff_min_s=0.01) as served:
        one = await join(served)
        session = await one.new()
        answer = await one.prompt(session, {"say": "last words"}, {"leave": True}, {"exit": 3, "stderr": "no luck"})
        assert answer["error"]["data"]["exitCode"] == 3
        assert answer["error"]["data"]["stderr"] == "no luck"
        assert "result" in await one.prompt(session, {"say": "back"})
        assert one.said() == ["last words", "back"]


async def test_journal_records_the_end_of_a_crashed_turn(tmp_path):
    async with serve(tmp_path / "home") as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"exit": 3})
        path = served.sessions.by_id[session].history.path
    turns = [json.loads(line)["turn"] for line in path.read_text().splitlines() if '"turn":' in line]
    assert [turn["event"] for turn in turns] == ["start", "end"]
    assert turns[1]["error"]["data"]["exitCode"] == 3


@pytest.mark.parametrize("capabilities", [LOADING, RESUMING, LOADING | RESUMING])
async def test_session_continues_after_a_crash(tmp_path, capabilities):
    async with serve(tmp_path / "home", storing(tmp_path, capabilities=capabilities), backoff_min_s=0.01) as served:
        one = await join(served, extensions=True)
        session = await one.new(mcpServers=[{"name": "m", "command": "x", "args": [], "env": []}])
        await one.prompt(session, {"say": "before"})
        await one.prompt(session, {"exit": 1})
        assert "result" in await one.prompt(session, {"say": "after"})
        assert one.said() == ["before", "after"]
        two = await join(served)
        await two.load(session)
        assert two.said() == ["before", "after"]
    opened = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    method = "session/resume" if "sessionCapabilities" in capabilities else "session/load"
    (again,) = [message for message in opened if message.get("method") in ("session/resume", "session/load")]
    assert again["method"] == method
    assert again["params"]["cwd"] == "/work"
    assert again["params"]["mcpServers"] == [{"name": "m", "command": "x", "args": [], "env": []}]


async def test_update_right_after_the_answer_to_a_load_is_live(tmp_path):
    spec = storing(tmp_path, capabilities=LOADING, load_tells="and")
    async with serve(tmp_path / "home", spec, backoff_min_s=0.01) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"say": "before"})
        await one.prompt(session, {"exit": 1})
        assert "result" in await one.prompt(session, {"say": "after"})
        assert one.said() == ["before", "and", "after"]


async def test_session_is_read_only_if_the_agent_cannot_reopen_it(tmp_path):
    async with serve(tmp_path / "home", backoff_min_s=0.01) as served:
        one = await join(served, extensions=True)
        session = await one.new()
        await one.prompt(session, {"say": "kept"}, {"exit": 1})
        error = (await one.prompt(session, {"say": "more"}))["error"]
        assert "is read-only" in error["data"]
        assert "start a new session" in error["data"]
        await one.announced(session, lambda news: news["state"] == "gone")
        two = await join(served)
        assert "result" in await two.load(session)
        assert two.said() == ["kept"]
        assert await one.new() != session


async def test_session_that_the_agent_lost_is_read_only(tmp_path):
    spec = storing(tmp_path, capabilities=LOADING)
    async with serve(tmp_path / "home", spec, backoff_min_s=0.01) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"say": "kept"})
        (tmp_path / "store" / session).unlink()
        await one.prompt(session, {"exit": 1})
        error = (await one.prompt(session, {"say": "more"}))["error"]
        assert "no such session here" in error["data"]


@pytest.mark.parametrize("code", [-32603, -32600])
async def test_next_prompt_retries_a_failed_reopen(tmp_path, code):
    spec = storing(tmp_path, capabilities=LOADING, load_fails=[str(tmp_path / "failed"), code])
    async with serve(tmp_path / "home", spec, backoff_min_s=0.01) as served:
        one = await join(served, extensions=True)
        session = await one.new()
        await one.prompt(session, {"say": "before"})
        await one.prompt(session, {"exit": 1})
        answers = [await one.prompt(session, {"say": f"after {number}"}) for number in range(3)]
        refused = [answer["error"]["message"] for answer in answers if "error" in answer]
        assert len(refused) <= 1, answers  # none, if the agent had been restarted before the first of them
        assert all("not now; try again, or start a new session" in words for words in refused)
        assert one.said()[-1] == "after 2"


@pytest.mark.parametrize("capabilities", [LOADING, RESUMING])
async def test_login_reopens_a_session_after_a_crash(tmp_path, capabilities):
    store, login = tmp_path / "store", tmp_path / "login"
    store.mkdir()
    spec = agent(capabilities=capabilities, store=str(store), login=str(login))
    async with serve(tmp_path, spec, backoff_min_s=0.01) as served:
        one, page = await join(served), await join(served, extensions=True)
        session = await one.new()
        await page.load(session)
        await one.prompt(session, {"exit": 1})
        for _ in range(2):
            error = (await one.prompt(session, {"say": "never"}))["error"]
            assert error["code"] == -32000
            assert "the token is too old" in error["data"]
            assert "authenticate" in error["data"]
        await page.announced(session, lambda news: news["state"] == "asleep" and news["error"]["code"] == -32000)
        assert "result" in await one.ask("authenticate", {"methodId": "x"})
        page.forget()
        await page.announced(session, lambda news: news["state"] == "idle" and news["error"]["code"] != -32000)
        assert (await one.prompt(session, {"say": "again"}))["result"]["stopReason"] == "end_turn"
        assert one.said()[-1:] == ["again"]
        login.unlink()
        await one.prompt(session, {"exit": 1})
        assert (await one.prompt(session, {"say": "never"}))["error"]["code"] == -32000
        login.touch()  # the user logged in elsewhere, which the next prompt finds out
        assert "result" in await one.prompt(session, {"say": "at last"})


async def test_questions_of_a_dead_agent_are_withdrawn(tmp_path):
    async with serve(tmp_path / "home") as served:
        one, two = await join(served), await join(served, extensions=True)
        session = await one.new()
        await two.load(session)
        params = {"sessionId": session, "toolCall": {"toolCallId": "c"}, "options": OPTIONS}
        request = {"jsonrpc": "2.0", "id": 1, "method": "session/request_permission", "params": params}
        await one.prompt(session, {"line": json.dumps(request)}, {"exit": 1})
        asked = await one.asked()
        taken_back = await one.until(lambda message: message.get("method") == "$/cancel_request")
        assert taken_back["params"] == {"requestId": asked["id"]}
        settled = await two.until(lambda message: message.get("method") == "_dragoman/settled")
        assert settled["params"]["by"] == "agent"
        assert settled["params"]["result"] is None
        one.choose(asked)


async def test_requests_during_a_restart_wait_for_it(tmp_path):
    spec = storing(tmp_path, capabilities=RESUMING)
    async with serve(tmp_path / "home", spec, backoff_min_s=0.2) as served:
        one = await join(served, extensions=True)
        session = await one.new()
        await one.prompt(session, {"exit": 1})
        assert served.host.status.state == "crashed"
        first, second = one.start_prompt(session, {"say": "1"}), one.start_prompt(session, {"say": "2"})
        other = one.request("session/new", {"cwd": "/work", "mcpServers": []})
        for request in (first, second, other):
            assert "result" in await one.answer(request)
        assert one.said() == ["1", "2"]


async def test_prompt_waiting_for_a_restart_can_be_cancelled(tmp_path):
    spec = storing(tmp_path, capabilities=RESUMING)
    async with serve(tmp_path / "home", spec, backoff_min_s=600) as served:
        one = await join(served, extensions=True)
        session = await one.new()
        await one.prompt(session, {"exit": 1})
        prompt = one.start_prompt(session, {"say": "never"})
        one.send({"method": "session/cancel", "params": {"sessionId": session}})
        assert (await one.answer(prompt))["result"] == {"stopReason": "cancelled"}
        other = one.start_prompt(session, {"say": "never"})
        one.send({"method": "$/cancel_request", "params": {"requestId": other}})
        assert (await one.answer(other))["error"]["code"] == -32800


def live(served):
    return next(each.value for each in served.measure() if ("phase", "live") in each.labels.items())


@pytest.mark.parametrize("by_session", [True, False])
@pytest.mark.parametrize("joins", [join, join_v2])
async def test_cancel_in_the_tick_in_which_the_session_is_back_counts(tmp_path, joins, by_session):
    spec = storing(tmp_path, capabilities=RESUMING, load_waits=str(tmp_path / "go"))
    async with serve(tmp_path / "home", spec, backoff_min_s=0.01) as served:
        one = await joins(served)
        session = (await one.ask("session/new", {"cwd": "/work", "mcpServers": []}))["result"]["sessionId"]
        one.start_prompt(session, {"exit": 3})
        await until(lambda: not live(served))
        prompt = one.start_prompt(session, {"say": "never"})
        (tmp_path / "go").touch()
        while not live(served):
            await asyncio.sleep(0)  # the next line runs in the tick in which the prompt is released
        if by_session:
            one.send({"method": "session/cancel", "params": {"sessionId": session}})
        else:
            one.send({"method": "$/cancel_request", "params": {"requestId": prompt}})
        answer = await one.answer(prompt)
        if by_session and joins is join:
            assert answer["result"] == {"stopReason": "cancelled"}
        else:
            assert answer["error"]["code"] == -32800
        await one.ask("_echo", {"sessionId": session})
        assert "never" not in (tmp_path / "log").read_text()


async def test_answer_with_a_string_id_fails_its_request(tmp_path):
    async with serve(tmp_path / "home", agent(string_ids="session/prompt")) as served:
        one = await join(served)
        error = (await one.prompt(await one.new(), {"say": "x"}))["error"]
        assert error["code"] == -32603
        assert 'answered session/prompt with the id "3", a string, but the request has a number' in error["message"]
    async with serve(tmp_path / "home", agent(string_ids="initialize")) as served:
        error = (await RecordedViewer(served).initialize())["error"]
        assert 'answered initialize with the id "1"' in error["message"]


async def test_two_loads_during_a_crash_start_one_agent(tmp_path):
    starts = tmp_path / "starts"
    spec = storing(tmp_path, capabilities=LOADING, starts=str(starts), load_dies=str(tmp_path / "died"))
    (tmp_path / "store" / "kept").write_text("\n")
    async with serve(tmp_path / "home", spec, backoff_min_s=0.01) as served:
        one, two = await join(served), await join(served)
        params = {"sessionId": "kept", "cwd": "/work", "mcpServers": []}
        first, second = (each.request("session/load", params) for each in (one, two))
        assert (await one.answer(first))["error"]["data"]["exitCode"] == 5
        assert "result" in await two.answer(second)
        session = await one.new()
        assert "result" in await one.prompt(session, {"say": "heard"})
        assert one.said() == ["heard"]
    assert starts.read_text() == "xx"


async def test_held_prompt_during_a_crash_starts_one_agent(tmp_path):
    starts = tmp_path / "starts"
    spec = storing(tmp_path, capabilities=LOADING, starts=str(starts))
    async with serve(tmp_path / "home", spec, backoff_min_s=0.01) as served:
        one = await join_v2(served)
        session = await one.new()
        first = one.start_prompt(session, {"say": "1"}, {"exit": 1})
        held = one.start_prompt(session, {"say": "2"})
        await one.answer(first)
        assert "result" in await one.answer(held)
        await one.until(lambda _: len(one.states("idle")) == 2)
        other = await one.new()
        await one.turn(other, {"say": "3"})
        assert texts(one) == ["1", "2", "3"]
    assert starts.read_text() == "xx"


async def test_requests_are_refused_when_the_restart_fails(tmp_path):
    starts = tmp_path / "starts"
    spec = storing(tmp_path, capabilities=RESUMING, starts=str(starts), dies_at_start=[2])
    async with serve(tmp_path / "home", spec, backoff_min_s=0.05) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"exit": 1})
        refused = await one.prompt(session, {"say": "x"})
        assert "exited with code 9 before it answered" in refused["error"]["message"]
        assert "result" in await one.prompt(session, {"say": "y"})
        assert one.said() == ["y"]


async def test_delay_between_restarts_doubles(tmp_path):
    spec = agent(starts=str(tmp_path / "starts"), dies_at_start=[2, 3, 4])
    async with serve(tmp_path / "home", spec, backoff_min_s=0.01, backoff_max_s=0.03) as served:
        one = await join(served, extensions=True)
        session = await one.new()
        await one.prompt(session, {"exit": 1})
        states = []
        while [state["state"] for state in states].count("ready") < 2:
            await one.more()
            states = one.params_of("_dragoman/agent")
        assert [state["retryInS"] for state in states if "retryInS" in state] == [0.01, 0.02, 0.03, 0.03]


async def test_agent_without_viewers_restarts_only_when_needed(tmp_path):
    starts = tmp_path / "starts"
    spec = storing(tmp_path, capabilities=RESUMING, starts=str(starts))
    async with serve(tmp_path / "home", spec, backoff_min_s=0.01) as served:
        one = await join(served)
        session = await one.new()
        one.start_prompt(session, {"until": str(tmp_path / "gate")}, {"exit": 1})
        await until(lambda: served.sessions.by_id[session].info.turns == 1)
        await one.viewer.close()
        (tmp_path / "gate").touch()
        await until(lambda: served.host.status.state == "crashed")
        assert served.host.status.retry_in_s is None
        assert starts.read_text() == "x"
        two = await join(served)
        await two.load(session)
        await two.prompt(session, {"say": "back"})
        assert two.said() == ["back"]
        assert starts.read_text() == "xx"


async def test_idle_agent_is_stopped_and_restarted_when_needed(tmp_path):
    starts = tmp_path / "starts"
    spec = storing(tmp_path, capabilities=LOADING, starts=str(starts))
    async with serve(tmp_path / "home", spec, idle_stop_s=0.1) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"say": "1"})
        await one.viewer.close()
        await until(lambda: served.host.status.state == "stopped")
        two = await join(served, extensions=True)
        notice = await two.until(lambda message: message.get("method") == "_dragoman/agent")
        assert notice["params"] == {"state": "stopped"}
        await two.load(session)
        assert two.said() == ["1"]
        assert served.host.status.state == "stopped"
        await two.prompt(session, {"say": "2"})
        assert two.said() == ["1", "2"]
        assert starts.read_text() == "xx"


async def sweep_for_a_day(served):
    """Sweep now and after a day, as for an agent that is always idle."""
    for later_s in (0, A_DAY_S):
        await served.sweep(time.monotonic() + later_s)


async def test_idle_agent_that_cannot_reopen_sessions_keeps_running(tmp_path):
    async with serve(tmp_path / "home") as served:
        one = await join(served)
        await one.new()
        await one.viewer.close()
        await sweep_for_a_day(served)
        assert served.host.status.state == "ready"


async def test_agent_with_an_open_question_is_not_idle(tmp_path):
    spec = storing(tmp_path, capabilities=LOADING)
    async with serve(tmp_path / "home", spec) as served:
        one = await join(served)
        session = await one.new()
        one.start_prompt(session, {"ask": OPTIONS})
        await one.asked()
        await one.viewer.close()
        await sweep_for_a_day(served)
        assert served.host.status.state == "ready"


async def test_bridge_stop_ends_agents_and_journals_the_end_of_the_turn(tmp_path):
    async with bridge_of(tmp_path / "home", agent(), stop_timeout_s=0.1) as bridge:
        served = bridge.agent()
        one = await join(served)
        session = await one.new()
        one.start_prompt(session, {"say": "x"}, {"until": str(tmp_path / "never")})
        await one.until(lambda message: one.said() != [])
        path = served.sessions.by_id[session].history.path
    assert one.viewer.closed.is_set()
    assert one.viewer.close_reason == "the bridge is stopping"
    turns = [json.loads(line)["turn"] for line in path.read_text().splitlines() if '"turn":' in line]
    assert [turn["event"] for turn in turns] == ["start", "end"]
