"""A viewer of version 2 on an agent of version 1 sees an agent of version 2."""

import json

import msgspec

from dragoman.protocol import methods_v2
from dragoman.protocol.decode import decode_params, decode_result
from tests.bridge.versions.pairs import ViewerOfV2, both_on, finished, join_v2, texts
from tests.bridge.viewers import LOADING, OPTIONS, agent, join, serve

CHUNK = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "b"}}


def assert_sound(viewer):
    """Decode all messages to a viewer strictly as version 2."""
    for message in viewer.seen:
        if message.get("method") in methods_v2.METHODS:
            decode_params(methods_v2.METHODS[message["method"]], msgspec.json.encode(message["params"]))


async def test_viewer_is_answered_in_its_own_version(tmp_path):
    async with serve(tmp_path, agent(capabilities=LOADING)) as served:
        one = await join_v2(served)
        result = one.seen[0]["result"]
        assert result["protocolVersion"] == 2
        assert result["info"]["name"] == "unknown"
        assert "session" in result["capabilities"]
        decode_result(methods_v2.REQUESTS["initialize"], msgspec.json.encode(result))


async def test_agent_of_version_1_gets_capabilities_in_its_version(tmp_path):
    log = tmp_path / "log"
    async with serve(tmp_path, agent(log=str(log))) as served:
        await join_v2(served, elicitation={"form": {}})
        params = json.loads(log.read_text().splitlines()[0])["params"]
        assert params["protocolVersion"] == 2
        assert params["clientCapabilities"]["elicitation"] == params["capabilities"]["elicitation"] == {"form": {}}


async def test_turn_is_reported_by_states(tmp_path):
    async with serve(tmp_path) as served:
        one = await join_v2(served)
        session = await one.new()
        answer = await one.turn(session, {"say": "a"}, {"update": CHUNK})
        kinds = [each["sessionUpdate"] for each in one.updates()]
        assert kinds == [
            "state_update",
            "user_message_chunk",
            "agent_message_chunk",
            "agent_message_chunk",
            "state_update",
        ]
        assert answer["result"]["messageId"] == one.updates()[1]["messageId"]
        assert one.updates()[2]["messageId"] == one.updates()[3]["messageId"] != answer["result"]["messageId"]
        assert [each["state"] for each in one.states()] == ["running", "idle"]
        assert one.states("idle")[0]["stopReason"] == "end_turn"
        assert_sound(one)


async def test_prompt_that_the_agent_refuses_gets_its_error(tmp_path):
    error = {"code": -32000, "message": "log in first"}
    async with serve(tmp_path) as served:
        one = await join_v2(served)
        session = await one.new()
        answer = await one.turn(session, {"error": error})
        assert answer["error"] == error
        assert "stopReason" not in one.states("idle")[0]


async def test_error_after_work_ends_the_turn(tmp_path):
    async with serve(tmp_path) as served:
        one = await join_v2(served)
        session = await one.new()
        answer = await one.turn(session, {"say": "a"}, {"error": {"code": -32603, "message": "broken"}})
        assert "messageId" in answer["result"]
        assert one.states("idle")[0]["error"]["message"] == "broken"


async def test_second_prompt_is_held_until_the_turn_has_ended(tmp_path):
    gate = tmp_path / "gate"
    async with serve(tmp_path) as served:
        one = await join_v2(served)
        session = await one.new()
        first = one.start_prompt(session, {"say": "1"}, {"until": str(gate)})
        second = one.start_prompt(session, {"say": "2"})
        await one.answer(first)
        assert not any(message.get("id") == second for message in one.seen)
        gate.touch()
        await one.answer(second)
        await one.until(lambda _: len(one.states("idle")) == 2)
        assert texts(one) == ["1", "2"]


async def test_held_prompt_can_be_withdrawn(tmp_path):
    gate = tmp_path / "gate"
    async with serve(tmp_path) as served:
        one = await join_v2(served)
        session = await one.new()
        await one.answer(one.start_prompt(session, {"say": "1"}, {"until": str(gate)}))
        held = one.start_prompt(session, {"say": "2"})
        one.send({"method": "$/cancel_request", "params": {"requestId": held}})
        assert (await one.answer(held))["error"]["code"] == -32800
        gate.touch()


async def test_invalid_params_are_explained_in_the_viewers_version(tmp_path):
    async with serve(tmp_path) as served:
        one = await join_v2(served)
        refused = await one.ask("session/new", {"cwd": "/work", "mcpServers": [{"name": "x", "command": "x"}]})
        assert refused["error"]["code"] == -32602
        assert refused["error"]["data"]["path"].startswith("params.mcpServers[0]")
        session = await one.new()
        refused = await one.ask("session/prompt", {"sessionId": session, "prompt": [{"type": "smell", "of": "roses"}]})
        assert refused["error"]["data"]["path"] == "params.prompt[0].type"
        unknown = await one.resume("nobody")
        assert unknown["error"]["code"] == -32002
        assert unknown["error"]["data"]["sessionId"] == "nobody"


async def test_initialize_without_info_is_refused(tmp_path):
    async with serve(tmp_path) as served:
        one = ViewerOfV2(served)
        refused = await one.ask("initialize", {"protocolVersion": 2, "capabilities": {}})
        assert refused["error"]["code"] == -32602
        assert "info" in refused["error"]["data"]["path"] + refused["error"]["data"]["problem"]


async def test_modes_are_shown_as_an_option(tmp_path):
    async with serve(tmp_path) as served:
        one = await join_v2(served)
        opened = await one.ask("session/new", {"cwd": "/work"})
        option = opened["result"]["configOptions"][0]
        assert (option["configId"], option["currentValue"]) == ("mode", "ask")
        session = opened["result"]["sessionId"]
        params = {"sessionId": session, "configId": "mode", "type": "id", "value": "code"}
        answer = await one.ask("session/set_config_option", params)
        assert answer["result"]["configOptions"][0]["currentValue"] == "code"
        again = await join_v2(served)
        resumed = await again.resume(session)
        assert resumed["result"]["configOptions"][0]["currentValue"] == "code"


async def test_both_versions_see_the_same_conversation(tmp_path):
    call = {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Look", "kind": "read", "status": "pending"}
    content = [{"type": "content", "content": {"type": "text", "text": "found"}}]
    done = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed", "content": content}
    async with serve(tmp_path) as served:
        session, one, two = await both_on(served)
        await one.prompt(session, {"say": "x"}, {"update": call}, {"update": done}, {"say": "y"})
        await two.until(lambda _: len(two.states("idle")) == 2)  # the first one is the snapshot
        await two.turn(session, {"say": "z"})
        await one.until(lambda _: "z" in one.said())
        assert texts(two) == ["x", "y", "z"]
        assert one.said() == ["x", "y", "z"]
        assert finished(one) == finished(two) == {"c": ("Look", "completed", ["found"])}
        assert [each["stopReason"] for each in two.states("idle")[1:]] == ["end_turn", "end_turn"]
        assert texts(one, "user_message_chunk") == texts(two, "user_message_chunk")[-1:]
        assert_sound(two)


async def test_replay_ends_with_the_state_and_repeats_the_ids(tmp_path):
    gate = tmp_path / "gate"
    async with serve(tmp_path) as served:
        one = await join_v2(served)
        session = await one.new()
        await one.answer(one.start_prompt(session, {"say": "a"}, {"until": str(gate)}, {"say": "b"}))
        await one.until(lambda _: texts(one) == ["a"])
        again = await join_v2(served)
        await again.resume(session)
        assert [each["state"] for each in again.states()] == ["running"]
        assert again.updates()[-1]["sessionUpdate"] == "state_update"
        gate.touch()
        await again.until(lambda _: again.states("idle"))
        await one.until(lambda _: one.states("idle"))

        def messages(viewer):
            return [each for each in viewer.updates() if each["sessionUpdate"] != "state_update"]

        assert messages(again) == messages(one)


async def test_cursor_continues_at_its_position(tmp_path):
    async with serve(tmp_path) as served:
        one = await join_v2(served, extensions=True)
        session = await one.new()
        await one.turn(session, {"say": "a"}, {"say": "b"}, {"say": "c"})
        chunks = [
            each for each in one.params_of("session/update") if each["update"].get("content", {}).get("text") == "a"
        ]
        cursor = chunks[0]["_meta"]["dragoman"]["cursor"]
        again = await join_v2(served, extensions=True)
        await again.resume(session, after=cursor)
        assert again.said() == ["b", "c"]
        ids = {each["messageId"] for each in again.updates() if each["sessionUpdate"] == "agent_message_chunk"}
        assert ids == {chunks[0]["update"]["messageId"]}


async def test_permission_is_asked_in_both_versions_and_settled_by_either(tmp_path):
    async with serve(tmp_path) as served:
        session, one, two = await both_on(served)
        prompt = one.start_prompt(session, {"ask": OPTIONS})
        asked = await two.asked()
        assert asked["params"]["subject"]["toolCall"]["toolCallId"] == "c1"
        assert asked["params"]["title"] == "Do it"
        assert two.states()[-1]["state"] == "requires_action"
        await one.asked()
        two.choose(asked)
        await one.until(lambda message: message.get("method") == "$/cancel_request")
        assert (await one.answer(prompt))["result"] == {"stopReason": "end_turn"}
        assert '"optionId": "yes"' in one.said()[0]
        one.forget()
        second = two.start_prompt(session, {"ask": OPTIONS})
        one.choose(await one.asked())
        await two.answer(second)


async def test_outcome_unknown_to_version_1_is_not_an_approval(tmp_path):
    async with serve(tmp_path) as served:
        one = await join_v2(served)
        session = await one.new()
        one.start_prompt(session, {"ask": OPTIONS})
        one.reply(await one.asked(), {"outcome": {"outcome": "postponed"}})
        await one.until(lambda _: one.states("idle"))
        assert '"cancelled"' in texts(one)[0]


async def test_cancelling_ends_the_turn_as_cancelled(tmp_path):
    async with serve(tmp_path) as served:
        one = await join_v2(served)
        session = await one.new()
        await one.answer(one.start_prompt(session, {"say": "a"}, {"cancel": True}))
        one.send({"method": "session/cancel", "params": {"sessionId": session}})
        await one.until(lambda _: one.states("idle"))
        assert one.states("idle")[0]["stopReason"] == "cancelled"


async def test_closing_cancels_the_turn_of_an_agent_that_cannot_close(tmp_path):
    async with serve(tmp_path) as served:
        one = await join_v2(served)
        session = await one.new()
        await one.answer(one.start_prompt(session, {"say": "a"}, {"cancel": True}))
        held = one.start_prompt(session, {"say": "b"})
        assert (await one.ask("session/close", {"sessionId": session}))["result"] == {}
        assert (await one.answer(held))["error"]["code"] == -32800
        await one.until(lambda _: one.states("idle"))
        assert one.states("idle")[0]["stopReason"] == "cancelled"


async def test_agent_exit_ends_the_turn_with_an_error(tmp_path):
    async with serve(tmp_path) as served:
        one = await join_v2(served)
        session = await one.new()
        await one.answer(one.start_prompt(session, {"say": "a"}, {"exit": 3}))
        await one.until(lambda _: one.states("idle"))
        assert one.states("idle")[0]["stopReason"] == "error"


async def test_version_2_can_be_turned_off(tmp_path, monkeypatch):
    monkeypatch.setenv("DRAGOMAN_ACP_V2", "0")
    async with serve(tmp_path) as served:
        one = await join_v2(served)
        assert one.seen[0]["result"]["protocolVersion"] == 1


async def test_version_1_client_that_asks_for_more_gets_version_1(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        answer = await one.ask("initialize", {"protocolVersion": 9, "clientCapabilities": {}})
        assert answer["result"]["protocolVersion"] == 1
