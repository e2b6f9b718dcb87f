"""An attached editor across network failures and restarts of the bridge."""

import json
import sys

import pytest

from tests.attach.rig import rigged
from tests.bridge.viewers import AGENT, OPTIONS


def text_of(answer):
    return answer["error"]["message"]


async def test_turn_that_ends_during_an_outage_is_delivered_once(tmp_path):
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


async def test_killed_bridge_loses_the_turn_but_not_the_session(tmp_path):
    async with rigged(tmp_path) as rig, rig.editor() as editor:
        await editor.initialize()
        session = await editor.new(rig.bridge.work)
        prompt = editor.prompt(session, {"say": "before"}, {"until": str(tmp_path / "never")})
        await editor.says("before")
        await rig.bridge.kill()
        await editor.told("trying again")
        await rig.bridge.start()
        assert "the bridge stopped while the agent worked on this prompt" in text_of(await editor.answered(prompt))
        again = editor.prompt(session, {"say": "after"})
        assert (await editor.answered(again))["result"] == {"stopReason": "end_turn"}
        assert editor.said() == ["before", "after"]
        assert len(rig.bridge.seen("session/prompt")) == 2


async def test_restarted_bridge_delivers_the_turns_end_from_its_journal(tmp_path):
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


async def test_messages_during_an_outage_are_delivered_once(tmp_path):
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


async def test_waiting_requests_fail_if_the_bridge_stays_away(tmp_path):
    async with rigged(tmp_path) as rig, rig.editor("--reconnect-timeout", "0.2") as editor:
        await editor.initialize()
        session = await editor.new(rig.bridge.work)
        rig.proxy.cut()
        await editor.told("trying again")
        refused = text_of(await editor.answered(editor.prompt(session, {"say": "never"})))
        assert f"the bridge at {rig.url}/acp did not accept it for 0.2 s" in refused
        rig.proxy.mend()
        await editor.told("connected again")
        assert "result" in await editor.answered(editor.prompt(session, {"say": "again"}))
        assert editor.said() == ["again"]


@pytest.mark.extended
async def test_cancel_during_an_outage_reaches_the_agent_later(tmp_path):
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


async def test_open_question_survives_a_broken_connection(tmp_path):
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


@pytest.mark.extended
async def test_question_answered_elsewhere_during_a_break_is_withdrawn(tmp_path):
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


@pytest.mark.extended
async def test_interrupted_load_continues_at_its_cursor(tmp_path):
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


@pytest.mark.extended
async def test_unrepeatable_request_is_not_sent_again(tmp_path):
    async with rigged(tmp_path) as rig, rig.editor() as editor:
        await editor.initialize(elicitation={"form": {}})
        work = editor.request("_elicit", {})
        await editor.asked("elicitation/create")
        rig.proxy.cut()
        assert "it is unknown whether _elicit was carried out" in text_of(await editor.answered(work))
        rig.proxy.mend()
        assert "result" in await editor.ask("session/list")
        assert len(rig.bridge.seen("_elicit")) == 1


@pytest.mark.parametrize("version", [1, pytest.param(2, marks=pytest.mark.extended)])
async def test_version_2_editor_survives_a_break_with_both_agent_versions(tmp_path, version):
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
