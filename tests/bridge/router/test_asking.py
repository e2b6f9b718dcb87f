"""Questions of the agent go to all viewers that can answer, and the first answer counts."""

import json

from tests.bridge.viewers import OPTIONS, agent, join, serve
from tests.waiting import until

CHOSEN = {"outcome": {"outcome": "selected", "optionId": "yes"}}
ELICITATION = {"mode": "form", "message": "Which?", "requestedSchema": {"type": "object", "properties": {}}}
FORMS = {"elicitation": {"form": {}}}


async def on_session(served, count, **options):
    viewers = [await join(served, **options) for _ in range(count)]
    session = await viewers[0].new()
    for viewer in viewers[1:]:
        await viewer.load(session)
    return session, viewers


def outcome(viewer):
    return json.loads(viewer.said()[-1])


async def test_all_viewers_are_asked_and_the_first_answer_counts(tmp_path):
    async with serve(tmp_path) as served:
        session, (one, two) = await on_session(served, 2)
        three = await join(served, extensions=True)
        await three.load(session)
        prompt = one.start_prompt(session, {"ask": OPTIONS})
        asked = [await viewer.asked() for viewer in (one, two, three)]
        assert asked[0]["params"] == asked[1]["params"]
        two.choose(asked[1])
        await one.answer(prompt)
        assert outcome(one) == {"result": CHOSEN}
        await one.until(lambda message: message.get("method") == "$/cancel_request")
        assert one.params_of("$/cancel_request") == [{"requestId": asked[0]["id"]}]
        settled = (await three.until(lambda message: message.get("method") == "_dragoman/settled"))["params"]
        assert settled == {"sessionId": session, "requestId": asked[2]["id"], "result": CHOSEN, "by": "viewer"}
        assert three.params_of("$/cancel_request") == []
        await two.until(lambda message: two.said() != [])
        assert two.params_of("$/cancel_request") == []


async def test_concurrent_answers_count_once(tmp_path):
    async with serve(tmp_path) as served:
        session, (one, two) = await on_session(served, 2, extensions=True)
        prompt = one.start_prompt(session, {"ask": OPTIONS}, {"say": "end"})
        asked = [await viewer.asked() for viewer in (one, two)]
        one.choose(asked[0], "no")
        two.choose(asked[1], "yes")
        one.choose(asked[0], "yes")
        await one.answer(prompt)
        assert json.loads(one.said()[0]) == {"result": {"outcome": {"outcome": "selected", "optionId": "no"}}}
        assert [params["by"] for params in one.params_of("_dragoman/settled")] == ["you"]
        await two.until(lambda message: message.get("method") == "_dragoman/settled")
        assert [params["by"] for params in two.params_of("_dragoman/settled")] == ["viewer"]


async def test_an_error_settles_only_when_all_have_answered_with_one(tmp_path):
    async with serve(tmp_path) as served:
        session, (one, two) = await on_session(served, 2)
        prompt = one.start_prompt(session, {"ask": OPTIONS}, {"ask": OPTIONS})
        asked = [await viewer.asked() for viewer in (one, two)]
        one.send({"id": asked[0]["id"], "error": {"code": -32601, "message": "what?"}})
        two.choose(asked[1])
        await one.until(lambda message: one.said() != [])
        assert outcome(one) == {"result": CHOSEN}
        for viewer in (one, two):
            seen = len([message for message in viewer.seen if "id" in message and "method" in message])
            while seen < 2:
                await viewer.more()
                seen = len([message for message in viewer.seen if "id" in message and "method" in message])
            second = [message for message in viewer.seen if "id" in message and "method" in message][1]
            viewer.send({"id": second["id"], "error": {"code": -32601, "message": "what?", "data": None}})
        await one.answer(prompt)
        assert outcome(one) == {"error": {"code": -32601, "message": "what?", "data": None}}


async def test_question_waits_for_a_viewer(tmp_path):
    async with serve(tmp_path) as served:
        session, (one,) = await on_session(served, 1)
        one.start_prompt(session, {"ask": OPTIONS})
        await one.asked()
        await one.viewer.close()
        two = await join(served, extensions=True)
        answer = await two.load(session)
        asked = await two.asked()
        assert two.seen.index(answer) < two.seen.index(asked)
        two.choose(asked)
        await two.until(lambda message: two.said() != [])
        assert outcome(two) == {"result": CHOSEN}


async def test_question_times_out_only_without_viewers(tmp_path):
    async with serve(tmp_path, permission_timeout_s=0.2) as served:
        session, (one,) = await on_session(served, 1)
        one.start_prompt(session, {"ask": OPTIONS})
        await one.asked()
        (ask,) = served.questions.of_session(served.sessions.by_id[session])
        assert ask.timer is None
        await one.viewer.close()
        assert ask.timer is not None
        await until(lambda: served.sessions.by_id[session].info.turns == 0)
        two = await join(served)
        await two.load(session)
        assert outcome(two) == {"result": {"outcome": {"outcome": "selected", "optionId": "no"}}}


async def test_timeout_without_a_reject_option_is_an_error(tmp_path):
    async with serve(tmp_path, permission_timeout_s=0.01) as served:
        session, (one,) = await on_session(served, 1)
        one.start_prompt(session, {"ask": OPTIONS[:1]})
        await one.asked()
        await one.viewer.close()
        await until(lambda: served.sessions.by_id[session].info.turns == 0)
        two = await join(served)
        await two.load(session)
        assert "no viewer could answer" in outcome(two)["error"]["data"]


async def test_cancel_reaches_the_agent_before_questions_are_settled(tmp_path):
    log = tmp_path / "log"
    async with serve(tmp_path / "home", agent(log=str(log))) as served:
        session, (one, two) = await on_session(served, 2, extensions=True)
        prompt = one.start_prompt(session, {"ask": OPTIONS})
        await two.asked()
        two.send({"method": "session/cancel", "params": {"sessionId": session}})
        await one.answer(prompt)
        assert outcome(one) == {"result": {"outcome": {"outcome": "cancelled"}}}
        assert [params["by"] for params in one.params_of("_dragoman/settled")] == ["cancel"]
    lines = log.read_text().splitlines()
    assert [index for index, line in enumerate(lines) if "session/cancel" in line] < [
        index for index, line in enumerate(lines) if "cancelled" in line
    ]


async def test_elicitation_goes_to_viewers_that_support_it(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        session = await one.new()
        two = await join(served, **FORMS)
        await two.load(session)
        prompt = one.start_prompt(session, {"request": ["elicitation/create", ELICITATION]})
        two.reply(await two.asked("elicitation/create"), {"action": "accept", "content": {"x": None}})
        await one.answer(prompt)
        assert outcome(one) == {"result": {"action": "accept", "content": {"x": None}}}
        assert not any(message.get("method") == "elicitation/create" for message in one.seen)


async def test_elicitation_about_a_request_goes_to_its_sender(tmp_path):
    async with serve(tmp_path) as served:
        one, two = await join(served, **FORMS), await join(served, **FORMS)
        request = two.request("_elicit", {})
        asked = await two.asked("elicitation/create")
        assert asked["params"]["requestId"] == request
        two.reply(asked, {"action": "decline"})
        assert (await two.answer(request))["result"] == {"result": {"action": "decline"}}
        await one.ask("_echo")
        assert not any(message.get("method") == "elicitation/create" for message in one.seen)


async def test_elicitation_is_declined_if_no_viewer_supports_it(tmp_path):
    async with serve(tmp_path, permission_timeout_s=0.01) as served:
        session, (one,) = await on_session(served, 1)
        await one.prompt(session, {"request": ["elicitation/create", ELICITATION]})
        assert outcome(one) == {"result": {"action": "decline"}}


async def test_other_requests_go_to_the_capable_viewer_that_prompted_last(tmp_path):
    files = {"fs": {"readTextFile": True}}
    async with serve(tmp_path) as served:
        session, (one, two) = await on_session(served, 2, **files)
        three = await join(served)
        await three.load(session)
        prompt = two.start_prompt(session, {"request": ["fs/read_text_file", {"path": "/x"}]})
        asked = await two.asked("fs/read_text_file")
        assert asked["params"]["path"] == "/x"
        two.reply(asked, {"content": None})
        await two.answer(prompt)
        assert outcome(two) == {"result": {"content": None}}
        await one.until(lambda message: one.said() != [])
        await three.until(lambda message: three.said() != [])
        assert not [
            message for viewer in (one, three) for message in viewer.seen if message.get("method", "").startswith("fs")
        ]


async def test_terminal_stays_with_the_viewer_that_created_it(tmp_path):
    gate = tmp_path / "gate"
    async with serve(tmp_path / "home") as served:
        session, (one, two) = await on_session(served, 2, terminal=True)
        prompt = one.start_prompt(
            session,
            {"request": ["terminal/create", {"command": "ls"}]},
            {"until": str(gate)},
            {"request": ["terminal/output", {"terminalId": "t1"}]},
        )
        one.reply(await one.asked("terminal/create"), {"terminalId": "t1"})
        await one.until(lambda message: one.said() != [])
        later = two.start_prompt(session, {"say": "x"})
        gate.touch()
        one.reply(await one.asked("terminal/output"), {"output": "", "truncated": False})
        await one.answer(prompt)
        await two.answer(later)
        assert not any(message.get("method", "").startswith("terminal") for message in two.seen)


def terminal_call(terminal):
    content = [{"type": "terminal", "terminalId": terminal}]
    return {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "c", "content": content}}


async def make_terminals(session, *viewers):
    """Create one terminal at each viewer, all with the same id."""
    for viewer in viewers:
        prompt = viewer.start_prompt(session, {"request": ["terminal/create", {"command": "ls"}]})
        viewer.reply(await viewer.asked("terminal/create"), {"terminalId": "t1"})
        await viewer.answer(prompt)


def terminals_shown(viewer):
    return [update["content"][0]["terminalId"] for update in viewer.updates() if "toolCallId" in update]


async def test_terminals_of_two_viewers_with_the_same_id_are_two_terminals(tmp_path):
    async with serve(tmp_path) as served:
        session, (one, two) = await on_session(served, 2, terminal=True)
        await make_terminals(session, one, two)
        first, second = (json.loads(text)["result"]["terminalId"] for text in two.said())
        assert first == "t1"
        assert second != "t1"
        for terminal, viewer, other in ((first, one, two), (second, two, one)):
            one.forget()
            two.forget()
            asking = {"request": ["terminal/output", {"terminalId": terminal}]}
            prompt = other.start_prompt(session, asking, terminal_call(terminal))
            asked = await viewer.asked("terminal/output")
            assert asked["params"]["terminalId"] == "t1"
            viewer.reply(asked, {"output": terminal, "truncated": False})
            await other.answer(prompt)
            assert outcome(other) == {"result": {"output": terminal, "truncated": False}}
            await viewer.until(lambda _, viewer=viewer: terminals_shown(viewer))
            assert terminals_shown(viewer) == ["t1"]
            assert terminals_shown(other) == [second]
            assert not any(message.get("method") == "terminal/output" for message in other.seen)


async def test_terminal_of_a_departed_viewer_has_no_owner(tmp_path):
    async with serve(tmp_path) as served:
        session, (one, two) = await on_session(served, 2, terminal=True)
        await make_terminals(session, one, two)
        await one.viewer.close()
        two.forget()
        await two.prompt(session, {"request": ["terminal/output", {"terminalId": "t1"}]})
        assert "no viewer of this session has that terminal" in outcome(two)["error"]["data"]


async def test_request_moves_to_the_next_viewer_then_fails(tmp_path):
    files = {"fs": {"readTextFile": True}}
    async with serve(tmp_path) as served:
        session, (one, two) = await on_session(served, 2, **files)
        watcher = await join(served)
        await watcher.load(session)
        two.start_prompt(session, {"request": ["fs/read_text_file", {"path": "/x"}]})
        await two.asked("fs/read_text_file")
        await two.viewer.close()
        await one.asked("fs/read_text_file")
        await one.viewer.close()
        await watcher.until(lambda message: watcher.said() != [])
        error = outcome(watcher)["error"]
        assert error["code"] == -32601
        assert "fs/read_text_file" in error["data"]


async def test_extension_request_goes_to_one_viewer_and_returns_its_error(tmp_path):
    async with serve(tmp_path) as served:
        session, (one,) = await on_session(served, 1)
        prompt = one.start_prompt(session, {"request": ["_their/own", {"a": None}]})
        asked = await one.asked("_their/own")
        one.send({"id": asked["id"], "error": {"code": -32601, "message": "unknown", "data": {"x": None}}})
        await one.answer(prompt)
        assert outcome(one) == {"error": {"code": -32601, "message": "unknown", "data": {"x": None}}}


async def test_agent_requests_with_equal_ids_are_answered_separately(tmp_path):
    async with serve(tmp_path, agent(request_id=None)) as served:
        session, (one,) = await on_session(served, 1)
        prompt = one.start_prompt(session, {"ask": OPTIONS}, {"request": ["_x", {}]})
        one.choose(await one.asked())
        one.reply(await one.asked("_x"), 5)
        await one.answer(prompt)
        assert [json.loads(text) for text in one.said()] == [{"result": CHOSEN}, {"result": 5}]


async def test_request_cancelled_by_the_agent_is_withdrawn(tmp_path):
    async with serve(tmp_path) as served:
        session, (one, two) = await on_session(served, 2)
        params = {"sessionId": session, "toolCall": {"toolCallId": "c"}, "options": OPTIONS}
        request = {"jsonrpc": "2.0", "id": "p9", "method": "session/request_permission", "params": params}
        prompt = one.start_prompt(
            session, {"line": json.dumps(request)}, {"notify": ["$/cancel_request", {"requestId": "p9"}]}, {"say": "x"}
        )
        await one.answer(prompt)
        for viewer in (one, two):
            asked = await viewer.asked()
            taken_back = await viewer.until(lambda message: message.get("method") == "$/cancel_request")
            assert taken_back["params"]["requestId"] == asked["id"]
        assert served.sessions.by_id[session].info.questions == 0


async def test_reader_is_not_asked_and_can_only_read(tmp_path):
    async with serve(tmp_path) as served:
        session, (one,) = await on_session(served, 1)
        reader = await join(served, read_only=True, extensions=True)
        await reader.load(session)
        prompt = one.start_prompt(session, {"ask": OPTIONS})
        asked = await one.asked()
        reader.send({"id": asked["id"], "result": CHOSEN})
        reader.send({"method": "session/cancel", "params": {"sessionId": session}})
        for method in (
            "session/prompt",
            "session/new",
            "session/delete",
            "_echo",
            "_dragoman/inspect",
            "session/set_mode",
        ):
            refused = await reader.ask(method, {"sessionId": session, "cwd": "/work"})
            assert "read-only" in refused["error"]["data"]
        assert served.sessions.by_id[session].info.questions == 1
        one.choose(asked, "no")
        await one.answer(prompt)
        assert outcome(one)["result"]["outcome"]["optionId"] == "no"
        await reader.until(lambda message: reader.said() != [])
        assert not any(message.get("method") == "session/request_permission" for message in reader.seen)
        assert (await reader.ask("_dragoman/sessions"))["result"]["sessions"][0]["sessionId"] == session


async def test_viewer_can_request_to_be_read_only(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served, _meta={"dragoman": {"viewer": 1, "readOnly": True}})
        assert "read-only" in (await one.ask("session/new"))["error"]["data"]
        assert one.seen[0]["result"]["_meta"]["dragoman"]["readOnly"] is True


async def test_reader_opens_nothing_at_the_agent(tmp_path):
    from tests.bridge.viewers import LOADING

    store, log = tmp_path / "store", tmp_path / "log"
    store.mkdir()
    spec = agent(capabilities=LOADING, store=str(store), log=str(log))
    async with serve(tmp_path / "home", spec) as served:
        session, (one,) = await on_session(served, 1)
        await one.prompt(session, {"say": "x"})
    async with serve(tmp_path / "home", spec) as served:
        reader = await join(served, read_only=True)
        await reader.load(session)
        assert reader.said() == ["x"]
        assert "not open here" in (await reader.load("other"))["error"]["data"]
        assert "session/load" not in log.read_text()
        owner = await join(served)
        await owner.load(session)
        await owner.prompt(session, {"say": "y"})
        assert owner.said() == ["x", "y"]
