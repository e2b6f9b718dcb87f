"""A viewer receives the history and then live updates, without gaps or repetitions."""

import asyncio
import json
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.bridge.viewers import LOADING, RESUMING, RecordedViewer, agent, events_of, go_on_elsewhere, join, serve
from tests.table import each_row
from tests.waiting import until


def cursor_of(message):
    return message["params"]["_meta"]["dragoman"]["cursor"]


async def test_second_viewer_gets_the_history_before_the_answer(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"flood": 5})
        two = await join(served)
        answer = await two.load(session)
        assert two.said() == [str(number) for number in range(5)]
        assert two.updates()[0]["sessionUpdate"] == "user_message_chunk"
        assert two.seen[-1] is answer
        assert answer["result"]["modes"]["currentModeId"] == "ask"
        assert answer["result"]["unknown"] == {"x": None}


async def test_sender_does_not_see_its_own_prompt_but_others_do(tmp_path):
    async with serve(tmp_path) as served:
        one, two, three = await join(served), await join(served), await join(served, extensions=True)
        session = await one.new()
        for other in (two, three):
            await other.load(session)
        await one.prompt(session, {"say": "first"})
        await three.prompt(session, {"say": "second"})
        for viewer, prompts in ((one, 1), (two, 2), (three, 2)):
            await viewer.until(
                lambda message: (
                    "second" in json.dumps(message.get("params", {}).get("update", {}))
                    and message["params"]["update"]["sessionUpdate"] == "agent_message_chunk"
                )
            )
            kinds = [update["sessionUpdate"] for update in viewer.updates()]
            assert kinds.count("user_message_chunk") == prompts


async def test_end_of_a_turn_follows_its_updates(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"flood": 3_000})
        assert one.said() == [str(number) for number in range(3_000)]


async def test_viewer_that_joins_during_a_turn_sees_everything_once(tmp_path):
    gate = tmp_path / "gate"
    async with serve(tmp_path / "home", tail_bytes=20_000) as served:
        one = await join(served)
        session = await one.new()
        prompt = one.start_prompt(session, {"flood": 1_000}, {"until": str(gate)}, {"flood": 1_000})
        await one.until(lambda message: "999" in json.dumps(message))
        two = await join(served)
        loading = two.request("session/load", {"sessionId": session, "cwd": "/work", "mcpServers": []})
        gate.touch()
        await two.answer(loading)
        await one.answer(prompt)
        while len(two.said()) < 2_000:
            await two.more()
        assert two.said() == [str(number) for number in range(1_000)] * 2


@given(data=st.data())
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_viewers_that_join_and_leave_see_each_update_once(tmp_path_factory, data):
    seed = data.draw(st.integers(0, 2**32))
    tail_bytes = data.draw(st.sampled_from([500, 20_000, 1_000_000]))
    asyncio.run(_come_and_go(tmp_path_factory.mktemp("home"), random.Random(seed), tail_bytes))


async def _come_and_go(home, chance, tail_bytes):
    total = 2_000
    async with serve(home, tail_bytes=tail_bytes) as served:
        owner = await join(served)
        session = await owner.new()
        prompt = owner.start_prompt(session, {"flood": total})
        viewers = [_watch(served, session, random.Random(chance.random()), total) for _ in range(5)]
        everything = [str(number) for number in range(total)]
        for seen in await asyncio.gather(*viewers):
            assert seen == everything
        await owner.answer(prompt)
        assert owner.said() == everything


async def _watch(served, session, chance, total):
    """Read in pieces of random size. Leave at random and continue at the cursor of the last message."""
    seen, after = [], None
    while len(seen) < total:
        one = await join(served, extensions=True)
        loading = one.request(
            "session/load",
            {"sessionId": session, "cwd": "/work", "mcpServers": []}
            | ({"_meta": {"dragoman": {"after": after}}} if after else {}),
        )
        leave_after = chance.randrange(1, total)
        taken = 0
        while taken < leave_after and len(seen) < total:
            for event in events_of(await one.stream.next_batch(chance.choice([1, 300, 5_000, 65_536]))):
                message = json.loads(event.data)
                if message.get("method") == "_dragoman/session":
                    assert "reset" not in message["params"]
                if message.get("method") != "session/update":
                    continue
                after = cursor_of(message)
                if message["params"]["update"]["sessionUpdate"] == "agent_message_chunk":
                    seen.append(message["params"]["update"]["content"]["text"])
                    taken += 1
            if chance.random() < 0.2:
                await asyncio.sleep(0)
        assert loading
        await one.viewer.close()
    return seen


async def test_cursor_continues_at_its_place(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served, extensions=True)
        session = await one.new()
        await one.prompt(session, {"flood": 5})
        third = [message for message in one.seen if message.get("method") == "session/update"][3]
        two = await join(served, extensions=True)
        answer = await two.load(session, after=cursor_of(third))
        assert two.said() == ["3", "4"]
        end = answer["result"]["_meta"]["dragoman"]["cursor"]
        three = await join(served, extensions=True)
        await three.load(session, after=end)
        assert three.updates() == []
        assert three.params_of("_dragoman/session")[0].get("reset") is None


@each_row("cursor", ["nonsense", "000000000000.3", "", "x.y", "{epoch}.999999", "{epoch}.-1"])
@each_row("method", ["session/load", "session/resume"])
async def test_invalid_cursor_starts_over_with_reset(tmp_path, cursor, method):
    async with serve(tmp_path) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"flood": 3})
        two = await join(served, extensions=True)
        await two.load(session, method, after=cursor.format(epoch=served.sessions.by_id[session].history.epoch))
        kinds = [message.get("method", "answer") for message in two.seen]
        assert [params for params in two.params_of("_dragoman/session") if params.get("reset")]
        assert kinds.index("_dragoman/session") < kinds.index("session/update")
        assert two.said() == ["0", "1", "2"]


async def test_resume_sends_no_history(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"flood": 3})
        two = await join(served)
        assert "result" in await two.load(session, "session/resume")
        await one.prompt(session, {"say": "new"})
        await two.until(lambda message: "new" in json.dumps(message.get("params", {})) and message.get("method"))
        await two.until(lambda message: two.said() != [])
        assert two.said() == ["new"]


async def test_relative_directory_is_refused_before_the_agent_sees_it(tmp_path):
    async with serve(tmp_path) as served:
        viewer = await join(served)
        session = await viewer.new()
        wrong = []
        for method in ("session/new", "session/fork", "session/load", "session/resume", "session/list"):
            for given in ({"cwd": "work"}, {"cwd": ""}, {"cwd": "~/work"}, {"additionalDirectories": ["/a", "b"]}):
                params = {"sessionId": session, "cwd": "/work", "mcpServers": [], **given}
                error = (await viewer.ask(method, params)).get("error", {})
                if error.get("code") != -32602 or "must be an absolute path, got" not in error["message"]:
                    wrong.append((method, given, error))
        assert wrong == []
        assert "result" in await viewer.ask("session/new", {"cwd": "C:\\work", "mcpServers": []})


async def test_load_with_another_directory_is_refused(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        session = await one.new("/work/a")
        error = (await one.load(session, cwd="/work/b"))["error"]
        assert error["code"] == -32602
        assert error["data"]["expected"] == "/work/a"
        assert "/work/a" in error["data"]["problem"]


async def test_load_answer_has_the_latest_mode_and_options(tmp_path):
    options = [{"id": "model", "name": "Model", "type": "select", "currentValue": "b", "options": []}]
    async with serve(tmp_path) as served:
        one, two = await join(served), await join(served)
        session = await one.new()
        await one.ask("session/set_mode", {"sessionId": session, "modeId": "code"})
        await one.prompt(session, {"update": {"sessionUpdate": "config_option_update", "configOptions": options}})
        result = (await two.load(session))["result"]
        assert result["modes"]["currentModeId"] == "code"
        assert result["configOptions"] == options
        await one.prompt(session, {"update": {"sessionUpdate": "current_mode_update", "currentModeId": "ask"}})
        assert (await RecordedViewer(served).initialize())["result"]
        three = await join(served)
        assert (await three.load(session))["result"]["modes"]["currentModeId"] == "ask"


@pytest.mark.parametrize("capabilities", [{}, RESUMING])
async def test_load_answer_has_mode_and_options_after_a_bridge_restart(tmp_path, capabilities):
    store = tmp_path / "store"
    store.mkdir()
    spec = agent(capabilities=capabilities, store=str(store))
    async with serve(tmp_path, spec) as served:
        one = await join(served)
        session = await one.new()
        options = {"sessionUpdate": "config_option_update", "configOptions": [{"id": "o"}]}
        await one.prompt(session, {"update": {"sessionUpdate": "current_mode_update", "currentModeId": "code"}})
        await one.prompt(session, {"update": options})
    async with serve(tmp_path, spec) as served:
        two = await join(served)
        resumed = (await two.load(session, "session/resume"))["result"]
        assert resumed["modes"]["currentModeId"] == "code"
        assert len(resumed["modes"]["availableModes"]) == 2
        assert resumed["configOptions"] == [{"id": "o"}]
        if capabilities:  # the restarted agent has another mode, which viewers receive
            await two.prompt(session)
            (update,) = two.updates()
            assert update == {"sessionUpdate": "current_mode_update", "currentModeId": "ask"}


async def test_cursor_is_merged_into_existing_meta(tmp_path):
    note = {"sessionId": "?", "update": {"sessionUpdate": "x"}, "_meta": {"mine": 1, "dragoman": 2}}
    async with serve(tmp_path) as served:
        one = await join(served, extensions=True)
        session = await one.new()
        lines = [
            {"jsonrpc": "2.0", "method": "session/update", "params": {**note, "sessionId": session}},
            {"method": "session/update", "params": {"sessionId": session}, "jsonrpc": "2.0", "extra": {"a": {"b": 1}}},
        ]
        await one.prompt(session, *({"line": json.dumps(line)} for line in lines))
        first, second = [message for message in one.seen if message.get("method") == "session/update"][-2:]
        assert first["params"]["_meta"]["mine"] == 1
        assert set(first["params"]["_meta"]["dragoman"]) == {"cursor", "time"}
        assert set(second["params"]["_meta"]["dragoman"]) == {"cursor", "time"}
        assert second["extra"] == {"a": {"b": 1}}


async def test_history_not_in_memory_is_read_from_disk(tmp_path):
    async with serve(tmp_path, tail_bytes=2_000) as served:
        one = await join(served)
        session = await one.new()
        for _ in range(3):
            await one.prompt(session, {"flood": 5_000})
        for extensions in (False, True):
            two = await join(served, extensions=extensions)
            await two.load(session)
            assert two.said() == [str(number) for number in range(5_000)] * 3


async def test_concurrent_loads_cause_one_request_to_the_agent(tmp_path):
    store, log = tmp_path / "store", tmp_path / "log"
    store.mkdir()
    (store / "old").write_text(_history("old", 50))
    spec = agent(capabilities=LOADING, store=str(store), log=str(log))
    async with serve(tmp_path / "home", spec) as served:
        viewers = [await join(served) for _ in range(3)]
        await asyncio.gather(*(viewer.load("old") for viewer in viewers))
        for viewer in viewers:
            assert viewer.said() == [str(number) for number in range(50)]
    assert log.read_text().count('"session/load"') == 1


async def test_restarted_agent_is_asked_once_for_a_wanted_session(tmp_path):
    store, log = tmp_path / "store", tmp_path / "log"
    store.mkdir()
    (store / "old").write_text(_history("old", 5))
    spec = agent(capabilities=LOADING, store=str(store), log=str(log))
    async with serve(tmp_path / "home", spec) as served:
        one, two = await join(served), RecordedViewer(served)
        greeting = two.request("initialize", {"protocolVersion": 1, "clientCapabilities": {"terminal": True}})
        assert served.host.status.state == "stopped"  # it restarts with the terminal capability
        loading = one.request("session/load", {"sessionId": "old", "cwd": "/work", "mcpServers": []})
        assert "result" in await two.answer(greeting)
        assert "result" in await one.answer(loading)
        assert (await one.prompt("old", {"say": "on"}))["result"] == {"stopReason": "end_turn"}
        assert one.said() == ["0", "1", "2", "3", "4", "on"]
    assert log.read_text().count('"session/load"') == 1


async def test_requests_for_a_session_that_cannot_open_are_refused(tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    spec = agent(capabilities=LOADING, store=str(store))
    async with serve(tmp_path / "home", spec) as served:
        one = await join(served)
        loading = one.request("session/load", {"sessionId": "never", "cwd": "/work", "mcpServers": []})
        prompt = one.start_prompt("never", {"say": "x"})
        refused = await one.answer(prompt)
        assert refused["error"]["code"] == -32002
        assert "session never could not be opened" in refused["error"]["message"]
        assert (await one.answer(loading))["error"]["message"] == "no such session here"


async def test_agents_error_for_an_unknown_session_is_forwarded(tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    for capabilities in (LOADING, RESUMING):
        spec = agent(capabilities=capabilities, store=str(store))
        async with serve(tmp_path / "home", spec) as served:
            one = await join(served)
            for method in ("session/load", "session/resume"):
                error = (await one.load("never", method))["error"]
                assert error == {"code": -32002, "message": "no such session here", "data": "never"}
            assert served.sessions.by_id == {}
            assert not one.viewer.knows("never")


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
async def test_agent_that_cannot_open_sessions_is_not_asked(tmp_path, method):
    log = tmp_path / "log"
    async with serve(tmp_path / "home", agent(log=str(log))) as served:
        error = (await (await join(served)).load("never", method))["error"]
        words = "there is no session never here, and the agent cannot open earlier ones; start a new one"
        assert (error["code"], error["message"]) == (-32002, f"Resource not found: {words}")
        assert served.sessions.by_id == {}
    assert method not in log.read_text()


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
async def test_agent_with_a_false_resume_capability_is_asked_to_load(tmp_path, method):
    store = tmp_path / "store"
    store.mkdir()
    go_on_elsewhere(store, "old")
    spec = agent(capabilities={**LOADING, **RESUMING}, store=str(store), unrouted=["session/resume"])
    async with serve(tmp_path / "home", spec) as served:
        one = await join(served)
        assert "result" in await one.load("old", method)
        assert (await one.prompt("old", {"say": "on"}))["result"] == {"stopReason": "end_turn"}
        history = ["answer 0", "answer 1", "answer 2"] if method == "session/load" else []
        assert one.said() == [*history, "on"]
    async with serve(tmp_path / "home", spec) as served:
        two = await join(served)
        assert (await two.prompt("old", {"say": "again"}))["result"] == {"stopReason": "end_turn"}


async def test_journal_outlives_the_bridge_if_the_agent_cannot_load(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"update": {"sessionUpdate": "session_info_update", "title": "Kept"}}, {"flood": 3})
    async with serve(tmp_path) as served:
        two = await join(served, extensions=True)
        listed = (await two.ask("session/list"))["result"]["sessions"]
        assert [(entry["sessionId"], entry["title"]) for entry in listed] == [(session, "Kept")]
        await two.load(session)
        assert two.said() == ["0", "1", "2"]
        refused = await two.prompt(session, {"say": "x"})
        assert "is read-only" in refused["error"]["data"]


async def test_resumable_session_continues_after_a_bridge_restart(tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    spec = agent(capabilities=RESUMING, store=str(store))
    async with serve(tmp_path / "home", spec) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"flood": 3})
    async with serve(tmp_path / "home", spec) as served:
        two = await join(served)
        await two.load(session)
        await two.prompt(session, {"say": "more"})
        assert two.said() == ["0", "1", "2", "more"]


async def test_deleted_session_is_gone_with_its_journal(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served, extensions=True)
        session = await one.new()
        await one.prompt(session, {"say": "x"})
        path = getattr(served.sessions.by_id[session].history, "path", None)  # a database has none
        assert path is None or path.exists()
        await one.ask("session/delete", {"sessionId": session})
        await one.announced(session, lambda news: news["state"] == "gone")
        assert path is None or not path.exists()
        assert (await one.ask("_dragoman/sessions"))["result"]["sessions"] == []
        assert not one.viewer.knows(session)


async def test_next_prompt_reopens_a_closed_session(tmp_path):
    store, log = tmp_path / "store", tmp_path / "log"
    store.mkdir()
    spec = agent(capabilities=LOADING, store=str(store), log=str(log))
    async with serve(tmp_path / "home", spec) as served:
        one = await join(served, extensions=True)
        session = await one.new()
        await one.prompt(session, {"say": "before"})
        await one.ask("session/close", {"sessionId": session})
        await one.announced(session, lambda news: news["state"] == "asleep")
        await one.prompt(session, {"say": "after"})
        assert one.said() == ["before", "after"]
    assert log.read_text().count('"session/load"') == 1


async def test_closed_session_accepts_prompts_only_once_reopened(tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    async with serve(tmp_path / "home", agent(capabilities=LOADING, store=str(store))) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"say": "before"})
        await one.ask("session/close", {"sessionId": session})
        refused = await one.ask("session/prompt", {"sessionId": session, "prompt": []})
        assert "open it again" in refused["error"]["data"]
        await one.load(session)
        await one.prompt(session, {"say": "after"})
        assert one.said()[-1] == "after"


async def test_closed_session_stays_closed_when_the_agent_restarts(tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    async with serve(tmp_path / "home", agent(capabilities=LOADING, store=str(store))) as served:
        one = await join(served)
        closed, other = await one.new(), await one.new()
        await one.prompt(closed, {"say": "before"})
        await one.prompt(other, {"say": "before"})
        await one.ask("session/close", {"sessionId": closed})
        await one.prompt(other, {"exit": 3})
        await one.prompt(other, {"say": "after"})
        refused = await one.ask("session/prompt", {"sessionId": closed, "prompt": []})
        assert "open it again" in refused["error"]["data"]


@pytest.mark.parametrize("version", ['"1"', "null", "1.0", "-1", "[]"])
async def test_version_that_is_not_a_number_is_refused(version, tmp_path):
    async with serve(tmp_path) as served:
        viewer = served.open_viewer()
        answer = await viewer.greet(
            b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%b}}' % version.encode()
        )
        assert b"-32602" in answer
        assert b"params.protocolVersion" in answer


async def test_viewer_that_leaves_during_its_prompt_loses_nothing(tmp_path):
    gate = tmp_path / "gate"
    async with serve(tmp_path / "home") as served:
        one = await join(served)
        session = await one.new()
        one.start_prompt(session, {"until": str(gate)}, {"say": "done"})
        await until(lambda: served.sessions.by_id[session].info.turns == 1)
        await one.viewer.close()
        gate.touch()
        await until(lambda: served.sessions.by_id[session].info.turns == 0)
        two = await join(served)
        await two.load(session)
        assert two.said() == ["done"]
        assert served.sessions.by_id[session].info.stop_reason == "end_turn"


async def test_session_whose_viewer_left_during_new_can_be_loaded(tmp_path):
    async with serve(tmp_path) as served:
        one, two = await join(served), await join(served)
        one.request("session/new", {"cwd": "/work", "mcpServers": []})
        await one.viewer.close()
        await until(lambda: len(served.sessions.by_id) == 1)
        (session,) = served.sessions.by_id
        await until(lambda: served.sessions.by_id[session].history.end >= 0)  # a database is written a moment later
        assert "result" in await two.load(session)


def _history(session, count):
    lines = [
        {
            "jsonrpc": "2.0",
            "method": "session/update",
            "params": {
                "sessionId": session,
                "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": str(number)}},
            },
        }
        for number in range(count)
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)
