"""The agent dies, at any moment: viewers are told why, and sessions come back where they can."""

import asyncio
import json
import time

import pytest

from dragoman.bridge import AgentSpec
from tests.bridge.viewers import A_DAY_S, LOADING, OPTIONS, RESUMING, RecordedViewer, agent, bridge_of, join, serve
from tests.waiting import until


def storing(tmp_path, **behaviour):
    store = tmp_path / "store"
    store.mkdir(exist_ok=True)
    return agent(store=str(store), log=str(tmp_path / "log"), **behaviour)


def initialized(spec, tmp_path):
    return serve(tmp_path / "home", spec, initialize_timeout_s=0.5)


@pytest.mark.parametrize(
    ("fault", "words", "data"),
    [
        ("never", "did not answer initialize within 0.5 s", {}),
        ("exit", "exited with code 4 before it answered initialize", {"exitCode": 4, "stderr": "cannot begin"}),
        ("garbage", "Welcome to the agent!\nusage: agent --acp\nSee that the command starts an ACP agent", {}),
        ("error", "refused to begin: log in first", {}),
    ],
)
async def test_an_agent_that_cannot_begin_is_told_of_in_words(tmp_path, fault, words, data):
    async with initialized(agent(initialize=fault), tmp_path) as served:
        error = (await RecordedViewer(served).initialize())["error"]
        assert " ".join(words.split()) in error["message"]
        assert words in error["data"]["problem"]
        assert data.items() <= error["data"].items()


async def test_a_command_that_is_not_there_is_told_of_in_words(tmp_path):
    async with serve(tmp_path, AgentSpec("one", ("/no/such/agent",))) as served:
        error = (await RecordedViewer(served).initialize())["error"]
        assert "/no/such/agent" in error["message"]
        assert "no such command" in error["message"]


async def test_the_next_viewer_may_begin_what_the_last_could_not(tmp_path):
    spec = agent(starts=str(tmp_path / "starts"), dies_at_start=[1])
    async with serve(tmp_path / "home", spec) as served:
        one = RecordedViewer(served)
        assert "exited with code 9" in (await one.initialize())["error"]["message"]
        assert "result" in await one.initialize()
        assert await one.new()


async def test_two_viewers_that_greet_at_once_share_one_agent(tmp_path):
    starts = tmp_path / "starts"
    async with serve(tmp_path / "home", agent(starts=str(starts))) as served:
        answers = await asyncio.gather(*(RecordedViewer(served).initialize() for _ in range(3)))
        assert all("result" in answer for answer in answers)
    assert starts.read_text() == "x"


@pytest.mark.parametrize("number", ["1e999", "9" * 5_000])
async def test_numbers_that_nobody_can_read_spoil_no_beginning(tmp_path, number):
    async with serve(tmp_path) as served:
        odd = RecordedViewer(served)
        params = f'{{"protocolVersion":1,"clientCapabilities":{{"x":{number}}}}}'
        odd.send(f'{{"jsonrpc":"2.0","id":"odd","method":"initialize","params":{params}}}'.encode())
        await odd.answer("odd")
        await odd.viewer.close()
        assert "result" in await RecordedViewer(served).initialize()


async def test_a_viewer_whose_abilities_end_the_agent_takes_it_from_nobody_else(tmp_path):
    async with serve(tmp_path, agent(fears="terminal"), backoff_min_s=0.01) as served:
        one, two = await join(served), RecordedViewer(served)
        assert "code 3" in (await two.initialize(terminal=True))["error"]["message"]
        assert await one.new()


async def test_whoever_waits_for_a_dead_agent_is_told_how_it_died(tmp_path):
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


async def test_the_end_of_a_turn_that_a_crash_ended_is_in_the_journal(tmp_path):
    async with serve(tmp_path / "home") as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"exit": 3})
        path = served.registry.sessions[session].journal.path
    turns = [json.loads(line)["turn"] for line in path.read_text().splitlines() if '"turn":' in line]
    assert [turn["event"] for turn in turns] == ["start", "end"]
    assert turns[1]["error"]["data"]["exitCode"] == 3


@pytest.mark.parametrize("capabilities", [LOADING, RESUMING, LOADING | RESUMING])
async def test_a_session_goes_on_after_a_crash(tmp_path, capabilities):
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


async def test_a_session_of_an_agent_that_cannot_bring_it_back_can_only_be_read(tmp_path):
    async with serve(tmp_path / "home", backoff_min_s=0.01) as served:
        one = await join(served, extensions=True)
        session = await one.new()
        await one.prompt(session, {"say": "kept"}, {"exit": 1})
        error = (await one.prompt(session, {"say": "more"}))["error"]
        assert "can only be read" in error["data"]
        assert "start a new session" in error["data"]
        await one.announced(session, lambda news: news["state"] == "gone")
        two = await join(served)
        assert "result" in await two.load(session)
        assert two.said() == ["kept"]
        assert await one.new() != session


async def test_a_session_that_the_agent_has_lost_can_only_be_read(tmp_path):
    spec = storing(tmp_path, capabilities=LOADING)
    async with serve(tmp_path / "home", spec, backoff_min_s=0.01) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"say": "kept"})
        (tmp_path / "store" / session).unlink()
        await one.prompt(session, {"exit": 1})
        error = (await one.prompt(session, {"say": "more"}))["error"]
        assert "no such session here" in error["data"]


async def test_a_session_that_the_agent_fails_to_take_up_again_goes_on_with_the_next_prompt(tmp_path):
    spec = storing(tmp_path, capabilities=LOADING, load_fails=[str(tmp_path / "failed"), -32603])
    async with serve(tmp_path / "home", spec, backoff_min_s=0.01) as served:
        one = await join(served, extensions=True)
        session = await one.new()
        await one.prompt(session, {"say": "before"})
        await one.prompt(session, {"exit": 1})
        answers = [await one.prompt(session, {"say": f"after {number}"}) for number in range(3)]
        refused = [answer["error"]["message"] for answer in answers if "error" in answer]
        assert len(refused) <= 1, answers  # none, if the agent was started and asked before the first of them
        assert all("not now; try again, or start a new one" in words for words in refused)
        assert one.said()[-1] == "after 2"


@pytest.mark.parametrize("capabilities", [LOADING, RESUMING])
async def test_a_session_that_needs_a_login_after_a_crash_comes_back_once_somebody_has_logged_in(
    tmp_path, capabilities
):
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
        login.touch()  # somebody logged in elsewhere: the next prompt finds out
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
        assert served.supervisor.status.state == "crashed"
        first, second = one.start_prompt(session, {"say": "1"}), one.start_prompt(session, {"say": "2"})
        other = one.request("session/new", {"cwd": "/work", "mcpServers": []})
        for request in (first, second, other):
            assert "result" in await one.answer(request)
        assert one.said() == ["1", "2"]


async def test_a_prompt_that_waits_for_a_restart_can_be_cancelled(tmp_path):
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


async def test_requests_are_refused_in_words_when_the_restart_fails(tmp_path):
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


async def test_the_wait_between_restarts_doubles(tmp_path):
    spec = agent(starts=str(tmp_path / "starts"), dies_at_start=[2, 3, 4])
    async with serve(tmp_path / "home", spec, backoff_min_s=0.01, backoff_max_s=0.03) as served:
        one = await join(served, extensions=True)
        session = await one.new()
        await one.prompt(session, {"exit": 1})
        states = []
        while [state["state"] for state in states].count("ready") < 2:
            await one.more()
            states = one.told("_dragoman/agent")
        assert [state["retryInS"] for state in states if "retryInS" in state] == [0.01, 0.02, 0.03, 0.03]


async def test_an_agent_that_nobody_looks_at_is_started_again_only_when_needed(tmp_path):
    starts = tmp_path / "starts"
    spec = storing(tmp_path, capabilities=RESUMING, starts=str(starts))
    async with serve(tmp_path / "home", spec, backoff_min_s=0.01) as served:
        one = await join(served)
        session = await one.new()
        one.start_prompt(session, {"until": str(tmp_path / "gate")}, {"exit": 1})
        await until(lambda: served.registry.sessions[session].info.turns == 1)
        await one.viewer.close()
        (tmp_path / "gate").touch()
        await until(lambda: served.supervisor.status.state == "crashed")
        assert served.supervisor.status.retry_in_s is None
        assert starts.read_text() == "x"
        two = await join(served)
        await two.load(session)
        await two.prompt(session, {"say": "back"})
        assert two.said() == ["back"]
        assert starts.read_text() == "xx"


async def test_an_idle_agent_is_stopped_and_comes_back_when_needed(tmp_path):
    starts = tmp_path / "starts"
    spec = storing(tmp_path, capabilities=LOADING, starts=str(starts))
    async with serve(tmp_path / "home", spec, idle_stop_s=0.1) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"say": "1"})
        await one.viewer.close()
        await until(lambda: served.supervisor.status.state == "stopped")
        two = await join(served, extensions=True)
        told = await two.until(lambda message: message.get("method") == "_dragoman/agent")
        assert told["params"] == {"state": "stopped"}
        await two.load(session)
        assert two.said() == ["1"]
        assert served.supervisor.status.state == "stopped"
        await two.prompt(session, {"say": "2"})
        assert two.said() == ["1", "2"]
        assert starts.read_text() == "xx"


async def sweep_for_a_day(served):
    """Have the bridge look now and after a day, as it does for an agent that is idle all the time."""
    for later_s in (0, A_DAY_S):
        await served.sweep(time.monotonic() + later_s)


async def test_an_idle_agent_whose_sessions_could_not_come_back_is_kept(tmp_path):
    async with serve(tmp_path / "home") as served:
        one = await join(served)
        await one.new()
        await one.viewer.close()
        await sweep_for_a_day(served)
        assert served.supervisor.status.state == "ready"


async def test_an_agent_with_a_question_open_is_not_idle(tmp_path):
    spec = storing(tmp_path, capabilities=LOADING)
    async with serve(tmp_path / "home", spec) as served:
        one = await join(served)
        session = await one.new()
        one.start_prompt(session, {"ask": OPTIONS})
        await one.asked()
        await one.viewer.close()
        await sweep_for_a_day(served)
        assert served.supervisor.status.state == "ready"


async def test_the_bridge_ends_with_its_agents_and_a_turn_under_way_is_ended_in_its_journal(tmp_path):
    async with bridge_of(tmp_path / "home", agent(), stop_timeout_s=0.1) as bridge:
        served = bridge.agent()
        one = await join(served)
        session = await one.new()
        one.start_prompt(session, {"say": "x"}, {"until": str(tmp_path / "never")})
        await one.until(lambda message: one.said() != [])
        path = served.registry.sessions[session].journal.path
    assert one.viewer.closed.is_set()
    assert one.viewer.close_reason == "the bridge is being stopped"
    turns = [json.loads(line)["turn"] for line in path.read_text().splitlines() if '"turn":' in line]
    assert [turn["event"] for turn in turns] == ["start", "end"]
