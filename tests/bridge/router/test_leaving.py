"""Questions and sessions after a viewer leaves: every wait ends, and nothing is sent twice."""

import json

from tests.bridge.viewers import LOADING, OPTIONS, agent, join, serve
from tests.waiting import until

MAKING = {"request": ["terminal/create", {"command": "sleep"}]}
WAITING = {"request": ["terminal/wait_for_exit", {"terminalId": "t1"}]}


async def test_terminal_wait_is_answered_when_its_viewer_leaves(tmp_path):
    async with serve(tmp_path) as served:
        one, two = await join(served, terminal=True), await join(served)
        session = await one.new()
        await two.load(session)
        one.start_prompt(session, MAKING, WAITING)
        one.reply(await one.asked("terminal/create"), {"terminalId": "t1"})
        await one.asked("terminal/wait_for_exit")
        await one.viewer.close()
        await two.until(lambda _: len(two.said()) == 2)
        assert "no viewer" in json.loads(two.said()[1])["error"]["data"]


async def test_question_is_held_when_the_last_possible_viewer_leaves(tmp_path):
    async with serve(tmp_path, permission_timeout_s=60) as served:
        one, two = await join(served), await join(served)
        session = await one.new()
        await two.load(session)
        prompt = one.start_prompt(session, {"ask": OPTIONS})
        await two.asked()
        one.send({"id": (await one.asked())["id"], "error": {"code": -32601, "message": "what?"}})
        await two.viewer.close()
        (ask,) = served.questions.of_session(served.sessions.by_id[session])
        await until(lambda: ask.timer is not None)
        three = await join(served)
        await three.load(session)
        three.choose(await three.asked())
        await one.answer(prompt)
        assert json.loads(one.said()[0])["result"]["outcome"]["optionId"] == "yes"


async def test_viewer_that_joins_with_a_prompt_gets_open_questions(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        session = await one.new()
        one.start_prompt(session, {"ask": OPTIONS})
        await one.asked()
        await one.viewer.close()
        two = await join(served)
        prompt = two.start_prompt(session, {"say": "and this"})
        two.choose(await two.asked())
        await two.answer(prompt)
        assert json.loads(two.said()[0])["result"]["outcome"]["optionId"] == "yes"


async def test_open_request_is_answered_when_its_session_closes(tmp_path):
    log = tmp_path / "log"
    read = {"jsonrpc": "2.0", "id": "x1", "method": "fs/read_text_file", "params": {"path": "/a"}}
    async with serve(tmp_path, agent(log=str(log))) as served:
        one = await join(served, fs={"readTextFile": True})
        session = await one.new()
        read["params"]["sessionId"] = session
        await one.prompt(session, {"line": json.dumps(read)})
        await one.asked("fs/read_text_file")
        await one.ask("session/close", {"sessionId": session})
        await until(lambda: '"id":"x1"' in log.read_text())


async def test_session_deleted_with_an_open_question_is_not_announced(tmp_path):
    line = {"jsonrpc": "2.0", "id": "x1", "method": "session/request_permission"}
    async with serve(tmp_path) as served:
        one = await join(served, extensions=True)
        session = await one.new()
        params = {"sessionId": session, "toolCall": {"toolCallId": "c1"}, "options": OPTIONS}
        await one.prompt(session, {"line": json.dumps({**line, "params": params})})
        await one.asked()
        await one.ask("session/delete", {"sessionId": session})
        await one.announced(session, lambda news: news.get("deleted"))
        other = await one.new()
        await one.prompt(other, {"say": "on"})
        await one.ask("_dragoman/sessions")
        entries = [news for news in one.params_of("_dragoman/session") if news["sessionId"] == session]
        assert entries[-1].get("deleted") is True


async def test_withdrawal_works_although_the_viewer_does_not_read(tmp_path):
    read = {"jsonrpc": "2.0", "id": "x1", "method": "fs/read_text_file", "params": {"path": "/a"}}
    back = {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": "x1"}}
    async with serve(tmp_path, agent(capabilities=LOADING), window_bytes=64) as served:
        one, two = await join(served), await join(served, fs={"readTextFile": True})
        session = await one.new()
        await two.load(session)
        read["params"] |= {"sessionId": session, "padding": "x" * 200}
        await one.prompt(session, {"line": json.dumps(read)}, {"line": json.dumps(back)}, {"say": "still here"})
        assert one.said() == ["still here"]


async def test_session_that_failed_to_open_is_in_no_list(tmp_path):
    async with serve(tmp_path, agent(capabilities=LOADING)) as served:
        one, two = await join(served, extensions=True), await join(served)
        assert "error" in await two.load("nowhere")
        await one.announced("nowhere", lambda news: news.get("deleted"))
        assert (await one.ask("_dragoman/sessions"))["result"]["sessions"] == []


async def test_removed_journal_loses_its_history_but_no_viewer(tmp_path):
    async with serve(tmp_path, tail_bytes=1_000) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"flood": 99})
        await one.prompt(session, {"say": "99"})
        for path in tmp_path.rglob("*.jsonl"):
            path.unlink()
        two = await join(served, extensions=True)
        assert "result" in await two.load(session)
        await two.prompt(session, {"say": "on"})
        assert two.said()[-1] == "on"
        assert two.said() == ["99", "on"]
        await two.announced(session, lambda news: "error" in news)


async def test_departed_viewer_is_not_asked_twice_about_its_terminal(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served, terminal=True)
        session = await one.new()
        create = {"request": ["terminal/create", {"command": "x"}]}
        wait = {"request": ["terminal/wait_for_exit", {"terminalId": "t"}]}
        prompting = one.start_prompt(session, create, wait)
        one.reply(await one.asked("terminal/create"), {"terminalId": "t"})
        asked = await one.asked("terminal/wait_for_exit")
        one.send({"method": "_dragoman/leave", "params": {"sessionId": session}})
        one.reply(asked, {"exitCode": 0})
        assert (await one.answer(prompting))["result"] == {"stopReason": "end_turn"}
        assert sum(message.get("method") == "terminal/wait_for_exit" for message in one.seen) == 1
