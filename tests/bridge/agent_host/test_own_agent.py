"""Our own agent and the scripted one, served by the bridge."""

import sys

from dragoman.bridge import AgentSpec
from dragoman.testing import dump_turns, steps
from tests.bridge.own_agent import kill_agent, own_agent, plain_prompt
from tests.bridge.viewers import join, serve
from tests.waiting import until


async def test_our_agent_continues_after_a_kill_and_a_bridge_restart(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    async with serve(tmp_path / "home", own_agent(tmp_path), backoff_min_s=0.01) as served:
        one = await join(served, extensions=True)
        session = await one.new(str(work))
        assert (await plain_prompt(one, session, "begin"))["result"]["stopReason"] == "end_turn"
        await kill_agent(served, one)
        assert (await plain_prompt(one, session, "a script begins anew"))["result"]["stopReason"] == "end_turn"
        prompt = one.request("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "write it"}]})
        asked = await one.asked()
        allowed = next(option for option in asked["params"]["options"] if option["kind"] == "allow_once")
        one.choose(asked, allowed["optionId"])
        await one.answer(prompt)
        assert (work / "notes.txt").read_text() == "hello"
        said = "".join(one.said(session))
    async with serve(tmp_path / "home", own_agent(tmp_path)) as served:
        two = await join(served)
        listed = (await two.ask("session/list", {"cwd": str(work)}))["result"]["sessions"]
        assert [entry["sessionId"] for entry in listed] == [session]
        answer = await two.load(session, cwd=str(work))
        assert "configOptions" in answer["result"]
        assert "".join(two.said(session)) == said


async def test_message_has_one_id_at_bridge_and_agent_after_a_refusal(tmp_path):
    spec = own_agent(tmp_path)
    (tmp_path / "script.yaml").write_text("- - text: One.\n- - text: Two.\n")
    async with serve(tmp_path / "home", spec) as served:
        one = await join(served, extensions=True)
        session = await one.new(str(tmp_path))
        words, torn = {"type": "text", "text": "begin"}, {"type": "image"}
        refused = await one.ask("session/prompt", {"sessionId": session, "prompt": [words, torn]})
        assert "error" in refused
        for _ in range(2):
            assert (await plain_prompt(one, session, "begin"))["result"]["stopReason"] == "end_turn"
        said = [each for each in one.updates(session) if each["sessionUpdate"] == "user_message_chunk"]
        names = [each["messageId"] for each in said if each["content"] == words]
        assert len(set(names)) == 3
        for ids, turns in ((names, 0), (names[1:], 0), (names[2:], 1)):
            wish = {"dragoman/fork": {"before": {"ids": ids}}}
            params = {"sessionId": session, "cwd": str(tmp_path), "mcpServers": [], "_meta": wish}
            assert (await one.ask("session/fork", params))["result"]["_meta"]["dragoman/fork"] == {"turns": turns}


async def test_scripted_agent_is_served_to_several_viewers(tmp_path):
    turns = [[steps.Say("Hello"), steps.AskPermission(), steps.Say("Goodbye")], [steps.WaitForCancel()]]
    spec = AgentSpec("scripted", (sys.executable, "-m", "dragoman.testing", dump_turns(turns)))
    async with serve(tmp_path, spec) as served:
        one, two = await join(served), await join(served)
        session = await one.new()
        await two.load(session)
        prompt = one.request("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "hi"}]})
        two.choose(await two.asked())
        assert (await one.answer(prompt))["result"] == {"stopReason": "end_turn"}
        assert one.said() == ["Hello", "outcome: selected yes", "Goodbye"]
        prompt = one.request("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "wait"}]})
        await until(lambda: served.sessions.by_id[session].info.turns == 1)
        two.send({"method": "session/cancel", "params": {"sessionId": session}})
        assert (await one.answer(prompt))["result"] == {"stopReason": "cancelled"}
