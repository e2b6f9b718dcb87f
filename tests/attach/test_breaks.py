"""What an editor sees of a dropped network and of a bridge that is started again."""

import json
import sys

import pytest

from tests.attach.rig import rigged
from tests.bridge.viewers import AGENT, OPTIONS


def text_of(answer):
    return answer["error"]["message"]


async def test_a_turn_that_ends_while_the_network_is_down_is_delivered_once_and_whole(tmp_path):
    gate = tmp_path / "gate"
    async with rigged(tmp_path) as rig, rig.editor() as editor:
        await editor.initialize()
        session = await editor.new(rig.bridge.work)
        prompt = editor.prompt(session, {"say": "one"}, {"until": str(gate)}, {"flood": 500}, {"say": "two"})
        await editor.says("one")
        rig.proxy.cut()
        await editor.told("trying again")
        gate.touch()
        rig.proxy.mend()
        assert (await editor.answered(prompt))["result"] == {"stopReason": "end_turn"}
        assert editor.said() == ["one", *map(str, range(500)), "two"]
        assert editor.updates("user_message_chunk") == []
        assert len(rig.bridge.seen("session/prompt")) == 1
        assert "dragoman" not in json.dumps(editor.seen[1:])
        assert await editor.close() == 0


async def test_a_killed_bridge_costs_the_turn_and_not_the_session(tmp_path):
    async with rigged(tmp_path) as rig, rig.editor() as editor:
        await editor.initialize()
        session = await editor.new(rig.bridge.work)
        prompt = editor.prompt(session, {"say": "before"}, {"until": str(tmp_path / "never")})
        await editor.says("before")
        await rig.bridge.kill()
        await editor.told("trying again")
        await rig.bridge.start()
        assert "the bridge ended while the agent worked on this prompt" in text_of(await editor.answered(prompt))
        again = editor.prompt(session, {"say": "after"})
        assert (await editor.answered(again))["result"] == {"stopReason": "end_turn"}
        assert editor.said() == ["before", "after"]
        assert len(rig.bridge.seen("session/prompt")) == 2


async def test_the_end_of_a_turn_is_found_in_the_journal_of_a_bridge_that_was_started_again(tmp_path):
    gate = tmp_path / "gate"
    async with rigged(tmp_path) as rig, rig.editor() as editor, rig.direct_editor() as other:
        await editor.initialize()
        session = await editor.new(rig.bridge.work)
        prompt = editor.prompt(session, {"say": "one"}, {"until": str(gate)}, {"say": "two"}, {"stop": "max_tokens"})
        await editor.says("one")
        rig.proxy.cut()
        await editor.told("trying again")
        await other.initialize()
        await other.load(session, rig.bridge.work)
        gate.touch()
        await other.until(lambda message: "dragoman/turn" in json.dumps(message))
        await rig.bridge.kill()
        await rig.bridge.start()
        rig.proxy.mend()
        assert (await editor.answered(prompt))["result"] == {"stopReason": "max_tokens"}
        assert editor.said() == ["one", "two"]


async def test_what_is_sent_while_the_bridge_is_away_waits_and_is_carried_out_once(tmp_path):
    async with rigged(tmp_path) as rig, rig.editor() as editor:
        await editor.initialize()
        session = await editor.new(rig.bridge.work)
        rig.proxy.cut()
        await editor.told("trying again")
        prompt = editor.prompt(session, {"say": "late"})
        listed = editor.request("session/list")
        await editor.told("trying again")
        rig.proxy.mend()
        assert (await editor.answered(prompt))["result"] == {"stopReason": "end_turn"}
        assert "sessions" in (await editor.answered(listed))["result"]
        assert editor.said() == ["late"]
        assert len(rig.bridge.seen("session/prompt")) == 1


async def test_a_bridge_that_stays_away_fails_what_waits_in_words(tmp_path):
    async with rigged(tmp_path) as rig, rig.editor("--timeout", "0.2") as editor:
        await editor.initialize()
        session = await editor.new(rig.bridge.work)
        rig.proxy.cut()
        await editor.told("trying again")
        refused = text_of(await editor.answered(editor.prompt(session, {"say": "never"})))
        assert f"the bridge at {rig.url}/acp did not take it for 0.2 s" in refused
        rig.proxy.mend()
        await editor.told("connected again")
        assert "result" in await editor.answered(editor.prompt(session, {"say": "again"}))
        assert editor.said() == ["again"]


async def test_a_cancel_while_the_bridge_is_away_ends_the_turn_for_the_editor_and_later_at_the_agent(tmp_path):
    gate = tmp_path / "gate"
    async with rigged(tmp_path) as rig, rig.editor() as editor:
        await editor.initialize()
        session = await editor.new(rig.bridge.work)
        prompt = editor.prompt(session, {"say": "one"}, {"until": str(gate)}, {"cancel": True})
        await editor.says("one")
        rig.proxy.cut()
        await editor.told("trying again")
        editor.notify("session/cancel", {"sessionId": session})
        assert (await editor.answered(prompt))["result"] == {"stopReason": "cancelled"}
        rig.proxy.mend()
        gate.touch()
        assert "result" in await editor.answered(editor.prompt(session, {"say": "next"}))
        assert len(rig.bridge.seen("session/cancel")) == 1


async def test_a_question_stays_with_the_person_over_a_break(tmp_path):
    async with rigged(tmp_path) as rig, rig.editor() as editor:
        await editor.initialize()
        session = await editor.new(rig.bridge.work)
        prompt = editor.prompt(session, {"ask": OPTIONS})
        question = await editor.asked("session/request_permission")
        rig.proxy.cut()
        await editor.told("trying again")
        editor.answer(question, {"outcome": {"outcome": "selected", "optionId": "yes"}})
        rig.proxy.mend()
        await editor.answered(prompt)
        assert '"optionId": "yes"' in editor.said()[0]
        asked = [message for message in editor.seen if message.get("method") == "session/request_permission"]
        assert asked == [question]


async def test_a_question_that_somebody_else_answered_during_a_break_is_taken_back(tmp_path):
    async with rigged(tmp_path) as rig, rig.editor() as editor, rig.direct_editor() as other:
        await editor.initialize()
        session = await editor.new(rig.bridge.work)
        prompt = editor.prompt(session, {"ask": OPTIONS})
        question = await editor.asked("session/request_permission")
        rig.proxy.cut()
        await editor.told("trying again")
        await other.initialize()
        await other.load(session, rig.bridge.work)
        elsewhere = await other.asked("session/request_permission")
        other.answer(elsewhere, {"outcome": {"outcome": "selected", "optionId": "no"}})
        await other.until(lambda message: '\\"no\\"' in json.dumps(message))
        rig.proxy.mend()
        taken_back = await editor.until(lambda message: message.get("method") == "$/cancel_request")
        assert taken_back["params"] == {"requestId": question["id"]}
        assert (await editor.answered(prompt))["result"] == {"stopReason": "end_turn"}


async def test_a_load_that_was_cut_off_goes_on_where_it_was(tmp_path):
    async with rigged(tmp_path) as rig, rig.direct_editor() as other, rig.editor() as editor:
        await other.initialize()
        session = await other.new(rig.bridge.work)
        await other.answered(other.prompt(session, {"flood": 20_000}))
        await editor.initialize()
        load = editor.request("session/load", editor.load_params(session, rig.bridge.work))
        await editor.says("10")
        rig.proxy.cut()
        await editor.told("trying again")
        rig.proxy.mend()
        assert "result" in await editor.answered(load)
        assert editor.said() == list(map(str, range(20_000)))


async def test_a_request_that_may_have_been_carried_out_is_not_sent_again(tmp_path):
    async with rigged(tmp_path) as rig, rig.editor() as editor:
        await editor.initialize(elicitation={"form": {}})
        work = editor.request("_elicit", {})
        await editor.asked("elicitation/create")
        rig.proxy.cut()
        assert "nobody knows whether _elicit was carried out" in text_of(await editor.answered(work))
        rig.proxy.mend()
        assert "result" in await editor.ask("session/list")
        assert len(rig.bridge.seen("_elicit")) == 1


@pytest.mark.parametrize("version", [1, 2])
async def test_an_editor_of_version_2_goes_on_over_a_break_with_agents_of_both_versions(tmp_path, version):
    gate = tmp_path / "gate"
    settings = {} if version == 1 else {"command": [sys.executable, str(AGENT.with_name("agent_v2.py"))]}
    async with rigged(tmp_path, **settings) as rig, rig.editor() as editor:
        assert (await editor.initialize(2))["result"]["protocolVersion"] == 2
        session = await editor.new(rig.bridge.work)
        prompt = editor.prompt(session, {"say": "one"}, {"until": str(gate)}, {"say": "two"})
        assert "messageId" in (await editor.answered(prompt))["result"]
        await editor.until(lambda message: "one" in json.dumps(message.get("params", {}).get("update", {})))
        rig.proxy.cut()
        await editor.told("trying again")
        gate.touch()
        rig.proxy.mend()
        await editor.until(lambda message: state_of(message) == "idle" and "two" in json.dumps(editor.seen))
        texts = "".join(
            text for update in editor.updates("agent_message_chunk") for text in [update["content"]["text"]]
        )
        assert texts == "onetwo"


def state_of(message):
    update = message.get("params", {}).get("update", {}) if message.get("method") == "session/update" else {}
    return update.get("state") if update.get("sessionUpdate") == "state_update" else None
