"""Titles, the archive and the status of sessions, with agents that support them and agents that do not."""

import json

import pytest

from tests.bridge.own_agent import own_agent, plain_prompt
from tests.bridge.viewers import LOADING, OPTIONS, agent, join, serve

KNOWING = {"sessionCapabilities": {"title": {}, "archive": {}, "status": {}, "list": {}}}


def info_updates(viewer, key="title"):
    return [
        update[key] for update in viewer.updates() if update["sessionUpdate"] == "session_info_update" and key in update
    ]


def received_by_agent(log):
    return [json.loads(line) for line in log.read_text().splitlines()]


async def listed(viewer, **params):
    return (await viewer.ask("session/list", params))["result"]["sessions"]


async def ids_listed(viewer, archived):
    return [each["sessionId"] for each in await listed(viewer, archived=archived)]


def say(title):
    return {"update": {"sessionUpdate": "session_info_update", "title": title}}


# ── titles ──────────────────────────────────────────────────────────────────────────────────────────


async def test_title_set_by_the_user_reaches_all_viewers_and_is_stored(tmp_path):
    async with serve(tmp_path) as served:
        one, two = await join(served), await join(served, extensions=True)
        session = await one.new()
        await one.prompt(session, {"say": "a"})
        await two.load(session)
        answer = await one.ask("session/set_title", {"sessionId": session, "title": "  The\n plan "})
        assert answer["result"] == {"title": "The plan"}
        for viewer in (one, two):
            await viewer.until(lambda message: message.get("params", {}).get("update", {}).get("title") == "The plan")
        await two.announced(session, lambda entry: entry["title"] == "The plan")
    async with serve(tmp_path) as served:
        one = await join(served)
        [found] = await listed(one)
        assert (found["sessionId"], found["title"], found["archived"]) == (session, "The plan", False)
        await one.load(session)
        assert info_updates(one) == ["The plan"]


async def test_title_set_by_the_user_is_not_replaced_by_the_agents(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served, extensions=True)
        session = await one.new()
        await one.prompt(session, say("of the agent"))
        await one.ask("session/set_title", {"sessionId": session, "title": "of a person"})
        await one.prompt(session, say("another"), {"update": {**say("third")["update"], "_meta": {"x": 1}}})
        assert info_updates(one) == ["of the agent", "of a person"]
        assert info_updates(one, "_meta") == [{"x": 1}]
        assert [each["title"] for each in await listed(one)] == ["of a person"]


async def test_stored_session_can_be_renamed(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, say("of the agent"))
    async with serve(tmp_path) as served:
        one = await join(served, extensions=True)
        await one.ask("session/set_title", {"sessionId": session, "title": "of a person"})
        assert (await one.announced(session, lambda entry: True))["title"] == "of a person"
        await one.load(session)
        assert info_updates(one)[-1] == "of a person"


@pytest.mark.parametrize("params", [{}, {"title": None}, {"title": " \n"}, {"title": 7}])
async def test_empty_title_is_refused(tmp_path, params):
    async with serve(tmp_path) as served:
        one = await join(served)
        session = await one.new()
        error = (await one.ask("session/set_title", {"sessionId": session, **params}))["error"]
        assert error["code"] == -32602
        assert error["data"]["path"] == "params.title"


async def test_long_title_is_cut(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        answer = await one.ask("session/set_title", {"sessionId": await one.new(), "title": "x" * 10_000})
        assert len(answer["result"]["title"]) == 200


@pytest.mark.parametrize("method", ["set_title", "archive", "unarchive", "status"])
async def test_unknown_session_is_refused_with_its_id(tmp_path, method):
    async with serve(tmp_path) as served:
        one = await join(served)
        error = (await one.ask(f"session/{method}", {"sessionId": "none", "title": "x"}))["error"]
        assert (error["code"], error["data"]["sessionId"]) == (-32002, "none")
        assert not (tmp_path / "bridge" / "one" / "labels.json").exists()


async def test_agent_with_set_title_decides_on_the_title(tmp_path):
    log = tmp_path / "log"
    results = {"session/set_title": {"result": {"title": "as the agent keeps it"}}}
    async with serve(tmp_path, agent(capabilities=KNOWING, results=results, log=str(log))) as served:
        one, two = await join(served), await join(served)
        session = await one.new()
        await two.load(session)
        answer = await one.ask("session/set_title", {"sessionId": session, "title": "x"})
        assert answer["result"] == {"title": "as the agent keeps it"}
        await two.until(lambda message: message.get("params", {}).get("update", {}).get("title") is not None)
        assert info_updates(two) == ["as the agent keeps it"]
        await one.prompt(session, say("another, by the agent"))
        assert info_updates(one)[-1] == "another, by the agent"
    assert [received["params"] for received in received_by_agent(log) if received["method"] == "session/set_title"] == [
        {"sessionId": session, "title": "x"}
    ]


@pytest.mark.parametrize("code", [-32601, -32002])
async def test_bridge_stores_the_title_of_a_session_the_agent_lost(tmp_path, code):
    results = {"session/set_title": {"error": {"code": code, "message": "no"}}}
    async with serve(tmp_path, agent(capabilities=KNOWING, results=results)) as served:
        one = await join(served)
        session = await one.new()
        answer = await one.ask("session/set_title", {"sessionId": session, "title": "x"})
        assert answer["result"] == {"title": "x"}


async def test_other_agent_errors_are_passed_on(tmp_path):
    results = {"session/set_title": {"error": {"code": -32602, "message": "too rude"}}}
    async with serve(tmp_path, agent(capabilities=KNOWING, results=results)) as served:
        one = await join(served)
        answer = await one.ask("session/set_title", {"sessionId": await one.new(), "title": "x"})
        assert answer["error"] == {"code": -32602, "message": "too rude"}


async def test_session_that_only_the_agent_lists_can_be_renamed(tmp_path):
    pages = {
        "session/list": {"result": {"sessions": [{"sessionId": "a", "cwd": "/w"}], "nextCursor": "2"}},
        "session/list 2": {"result": {"sessions": [{"sessionId": "b", "cwd": "/w", "title": "of the agent", "x": 1}]}},
    }
    spec = agent(capabilities={"sessionCapabilities": {"list": {}}}, results=pages)
    async with serve(tmp_path, spec) as served:
        one = await join(served)
        assert (await one.ask("session/set_title", {"sessionId": "b", "title": "mine"}))["result"] == {"title": "mine"}
        [found] = await listed(one, cursor="2")
        assert found == {"sessionId": "b", "cwd": "/w", "title": "mine", "x": 1, "archived": False}
        assert (await one.ask("session/status", {"sessionId": "b"}))["result"] == {"status": "saved"}


# ── titles made from prompts ────────────────────────────────────────────────────────────────────────


async def test_untitled_session_is_named_after_its_first_prompt(tmp_path):
    async with serve(tmp_path) as served:
        one, two = await join(served), await join(served, extensions=True)
        session = await one.new()
        await two.load(session)
        await plain_prompt(one, session, '[{"say": "a"}]')
        assert info_updates(one) == ['[{"say": "a"}]']
        await one.prompt(session, {"say": "b"})
        assert len(info_updates(one)) == 1
        await two.announced(session, lambda entry: entry["title"] == '[{"say": "a"}]')
    async with serve(tmp_path) as served:
        one = await join(served)
        assert [each["title"] for each in await listed(one)] == ['[{"say": "a"}]']


async def test_title_from_the_prompt_is_shown_until_the_agents_arrives(tmp_path):
    gate = tmp_path / "gate"
    async with serve(tmp_path) as served:
        one = await join(served, extensions=True)
        session = await one.new()
        steps = json.dumps([{"until": str(gate)}, say("of the agent")])
        prompt = one.request("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": steps}]})
        running = await one.announced(session, lambda entry: entry["state"] == "running")
        assert running["title"].startswith('[{"until"')
        gate.touch()
        await one.answer(prompt)
        assert info_updates(one) == ["of the agent"]


# ── the archive ─────────────────────────────────────────────────────────────────────────────────────


async def test_archived_session_stays_archived_after_a_restart(tmp_path):
    async with serve(tmp_path) as served:
        one, two = await join(served), await join(served, extensions=True)
        kept, session = await one.new(), await one.new()
        for each in (kept, session):
            await one.prompt(each, {"say": "a"})
        for _ in range(2):
            assert (await one.ask("session/archive", {"sessionId": session}))["result"] == {}
        await two.announced(session, lambda entry: entry.get("archived"))
        assert await ids_listed(one, None) == [kept]
    async with serve(tmp_path) as served:
        one = await join(served)
        assert await ids_listed(one, "exclude") == [kept]
        assert await ids_listed(one, "only") == [session]
        assert set(await ids_listed(one, "include")) == {kept, session}
        for _ in range(2):
            assert (await one.ask("session/unarchive", {"sessionId": session}))["result"] == {}
        assert await ids_listed(one, "only") == []


async def test_unknown_list_filter_is_refused(tmp_path):
    async with serve(tmp_path) as served:
        error = (await (await join(served)).ask("session/list", {"archived": "some"}))["error"]
        assert (error["code"], error["data"]["got"]) == (-32602, "some")


async def test_archiving_stops_the_work_and_closes_the_session(tmp_path):
    log = tmp_path / "log"
    capabilities = {**LOADING, "sessionCapabilities": {"close": {}}}
    async with serve(tmp_path, agent(capabilities=capabilities, log=str(log))) as served:
        one = await join(served)
        session = await one.new()
        prompt = one.start_prompt(session, {"say": "begun"}, {"cancel": True})
        await one.until(lambda message: "begun" in str(message.get("params", {}).get("update", {}).get("content")))
        await one.ask("session/archive", {"sessionId": session})
        assert (await one.answer(prompt))["result"] == {"stopReason": "cancelled"}
        assert (await one.ask("session/status", {"sessionId": session}))["result"] == {"status": "saved"}
    assert [each["method"] for each in received_by_agent(log)][-2:] == ["session/cancel", "session/close"]


async def test_archiving_settles_the_questions_of_a_session(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        session = await one.new()
        prompt = one.start_prompt(session, {"ask": OPTIONS})
        await one.asked()
        await one.ask("session/archive", {"sessionId": session})
        await one.answer(prompt)
        assert '"cancelled"' in one.said()[-1]


async def test_archived_session_continues_if_the_agent_has_no_close(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"say": "a"})
        await one.ask("session/archive", {"sessionId": session})
        await one.prompt(session, {"say": "b"})
        assert one.said() == ["a", "b"]


async def test_agent_with_archive_decides_what_is_archived(tmp_path):
    log = tmp_path / "log"
    pages = {"session/list": {"result": {"sessions": [{"sessionId": "a", "cwd": "/w", "archived": True}]}}}
    spec = agent(capabilities=KNOWING, results=pages, log=str(log))
    async with serve(tmp_path, spec) as served:
        one = await join(served, extensions=True)
        session = await one.new()
        assert (await one.ask("session/archive", {"sessionId": session}))["result"] == {}
        assert (await one.ask("session/status", {"sessionId": session}))["result"] == {"status": "saved"}
        await one.announced(session, lambda entry: entry.get("archived"))
        assert await listed(one, archived="only") == [{"sessionId": "a", "cwd": "/w", "archived": True}]
    methods = [each for each in received_by_agent(log) if each["method"] in ("session/archive", "session/list")]
    assert [received["params"] for received in methods] == [{"sessionId": session}, {"archived": "only"}]


async def test_list_filter_is_not_sent_to_agents_without_archive(tmp_path):
    log = tmp_path / "log"
    sessions = [{"sessionId": "a", "cwd": "/w"}, {"sessionId": "b", "cwd": "/w"}]
    pages = {"session/list": {"result": {"sessions": sessions, "nextCursor": "2"}}}
    spec = agent(capabilities={"sessionCapabilities": {"list": {}}}, results=pages, log=str(log))
    async with serve(tmp_path, spec) as served:
        one = await join(served)
        await one.ask("session/archive", {"sessionId": "b"})
        answer = (await one.ask("session/list", {"archived": "only", "cwd": "/w"}))["result"]
        assert answer == {"sessions": [{"sessionId": "b", "cwd": "/w", "archived": True}], "nextCursor": "2"}
        assert await ids_listed(one, "exclude") == ["a"]
    asked = [received["params"] for received in received_by_agent(log) if received["method"] == "session/list"]
    assert asked[1:] == [{"cwd": "/w"}, {}]


async def test_deleted_session_leaves_no_label(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        session = await one.new()
        await one.ask("session/set_title", {"sessionId": session, "title": "x"})
        await one.ask("session/delete", {"sessionId": session})
        other = await one.new()
        await one.ask("session/set_title", {"sessionId": other, "title": "y"})
    async with serve(tmp_path) as served:
        assert served.sessions.labels.ids() == [other]


async def test_list_names_the_program_that_started_a_session(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served, extensions=True)
        params = {"cwd": "/w", "mcpServers": [], "_meta": {"dragoman/origin": "run"}}
        session = (await one.ask("session/new", params))["result"]["sessionId"]
        await one.prompt(session, {"say": "a"})
        await one.announced(session, lambda entry: entry.get("origin") == "run")
        [found] = await listed(one)
        assert (found["sessionId"], found["_meta"]) == (session, {"dragoman/origin": "run"})


async def test_session_forgotten_by_its_agent_can_be_deleted(tmp_path):
    async with serve(tmp_path, agent(forgets=True)) as served:
        one = await join(served)
        session = await one.new()
        assert (await one.ask("session/delete", {"sessionId": session}))["result"] == {}
        assert (await one.ask("session/delete", {"sessionId": session}))["error"]["code"] == -32002
    assert list((tmp_path / "bridge" / "one").glob("*.jsonl")) == []


async def test_unreadable_labels_are_kept_in_a_copy(tmp_path):
    path = tmp_path / "bridge" / "one" / "labels.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"s": {"title"')
    async with serve(tmp_path) as served:
        one = await join(served)
        answer = await one.ask("session/set_title", {"sessionId": await one.new(), "title": "x"})
        assert "result" in answer
    kept = [each for each in path.parent.iterdir() if each != path and each.read_bytes() == b'{"s": {"title"']
    assert len(kept) == 1


async def test_readers_can_request_the_status_but_change_nothing(tmp_path):
    async with serve(tmp_path) as served:
        one, reader = await join(served), await join(served, read_only=True)
        session = await one.new()
        assert (await reader.ask("session/status", {"sessionId": session}))["result"] == {"status": "open"}
        for method in ("set_title", "archive", "unarchive"):
            assert "error" in await reader.ask(f"session/{method}", {"sessionId": session, "title": "x"})


# ── with our own agent ──────────────────────────────────────────────────────────────────────────────


async def test_our_agents_sessions_have_titles_and_an_archive(tmp_path):
    async with serve(tmp_path / "home", own_agent(tmp_path)) as served:
        one = await join(served)
        session = await one.new(str(tmp_path))
        await plain_prompt(one, session, "Tell me")
        assert info_updates(one)[-1] == "Tell me"
        await one.ask("session/set_title", {"sessionId": session, "title": "Told"})
        await one.ask("session/archive", {"sessionId": session})
        assert (await one.ask("session/status", {"sessionId": session}))["result"] == {"status": "saved"}
    async with serve(tmp_path / "home", own_agent(tmp_path)) as served:
        one = await join(served)
        assert await ids_listed(one, "exclude") == []
        [found] = await listed(one, archived="only")
        assert (found["sessionId"], found["title"], found["archived"]) == (session, "Told", True)
        await one.ask("session/unarchive", {"sessionId": session})
        assert await ids_listed(one, "exclude") == [session]
