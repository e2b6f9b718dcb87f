"""A viewer of version 1 on an agent of version 2 sees an agent of version 1."""

import json

import msgspec
import pytest

from dragoman.protocol import methods
from dragoman.protocol.decode import decode_params
from tests.bridge.versions.pairs import agent_v2, both_on, finished, join_v2, texts
from tests.bridge.viewers import OPTIONS, join, serve
from tests.waiting import until


def assert_sound(viewer):
    """Decode all messages to a viewer strictly as version 1."""
    for message in viewer.seen:
        if message.get("method") in methods.METHODS:
            decode_params(methods.METHODS[message["method"]], msgspec.json.encode(message["params"]))


async def test_agent_that_refuses_version_1_is_asked_for_version_2(tmp_path):
    async with serve(tmp_path, agent_v2()) as served:
        one = await join(served)
        result = one.seen[0]["result"]
        assert result["protocolVersion"] == 1
        assert result["agentInfo"]["name"] == "two"
        assert result["agentCapabilities"]["loadSession"] is True


@pytest.mark.parametrize("echoes_first", [False, True])
async def test_prompt_is_answered_when_the_work_has_ended(tmp_path, echoes_first):
    async with serve(tmp_path, agent_v2(echoes_first=echoes_first)) as served:
        one = await join(served)
        session = await one.new()
        answer = await one.prompt(session, {"say": "a"}, {"call": "c"}, {"say": "b"})
        assert answer["result"]["stopReason"] == "end_turn"
        assert one.said() == ["a", "b"]
        assert texts(one, "user_message_chunk") == [], "its own prompt, which it shows itself"
        assert finished(one) == {"c": ("Look", "completed", ["one"])}
        assert_sound(one)


async def test_error_of_a_prompt_is_its_answer(tmp_path):
    async with serve(tmp_path, agent_v2()) as served:
        one = await join(served)
        session = await one.new()
        answer = await one.prompt(session, {"refuse": {"code": -32000, "message": "log in first"}})
        assert answer["error"]["message"] == "log in first"
        assert (await one.prompt(session, {"say": "b"}))["result"]["stopReason"] == "end_turn"


async def test_concurrent_prompts_are_answered_by_their_ends(tmp_path):
    async with serve(tmp_path, agent_v2()) as served:
        one = await join(served)
        session = await one.new()
        first = one.start_prompt(session, {"say": "1"})
        second = one.start_prompt(session, {"say": "2"})
        assert (await one.answer(first))["result"]["stopReason"] == "end_turn"
        assert (await one.answer(second))["result"]["stopReason"] == "end_turn"
        ids = [message["id"] for message in one.seen if message.get("id") in (first, second)]
        assert ids == [first, second]


@pytest.mark.parametrize("first", [1, 2])
async def test_both_versions_see_the_same_conversation(tmp_path, first):
    async with serve(tmp_path, agent_v2()) as served:
        session, one, two = await both_on(served, first=first)
        await one.prompt(session, {"say": "x"}, {"call": "c"}, {"say": "y"})
        await two.until(lambda _: "xy" in texts(two) and two.states()[-1]["state"] == "idle")
        await two.turn(session, {"say": "z"})
        await one.until(lambda _: "z" in one.said())
        assert one.said() == ["x", "y", "z"]
        assert texts(two) == ["xy", "z"]
        assert finished(one) == finished(two)
        assert len(texts(two, "user_message_chunk")) == 2
        assert texts(one, "user_message_chunk") == texts(two, "user_message_chunk")[1:]
        assert_sound(one)


async def test_messages_between_version_2_peers_are_forwarded_unchanged(tmp_path):
    strange = {
        "sessionUpdate": "agent_message_chunk",
        "messageId": "m",
        "content": {"type": "text", "text": "é", "x": None},
    }
    async with serve(tmp_path, agent_v2()) as served:
        two = await join_v2(served)
        session = await two.new()
        await two.turn(session, {"update": strange})
        expected = json.dumps(
            {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": strange}},
            separators=(",", ":"),
        )
        assert expected.encode() in two.lines


def records(viewer):
    """Return the journalled updates, each with its cursor."""
    marked = [each for each in viewer.params_of("session/update") if "_meta" in each]
    return [(each["_meta"]["dragoman"]["cursor"], each["update"]) for each in marked]


async def test_replay_and_cursor_work_with_version_2(tmp_path):
    async with serve(tmp_path, agent_v2()) as served:
        one = await join(served, extensions=True)
        session = await one.new()
        await one.prompt(session, {"say": "a"}, {"call": "c"}, {"say": "b"})
        again = await join(served, extensions=True)
        await again.load(session)
        kept = [each for each in again.updates() if "content" in each]
        assert kept == [each for each in one.updates() if "content" in each]
        marked = records(one)
        for at, (cursor, _) in enumerate(marked):
            third = await join(served, extensions=True)
            await third.load(session, after=cursor)
            assert records(third) == marked[at + 1 :]


async def test_permission_is_asked_in_both_versions_and_settled_by_either(tmp_path):
    async with serve(tmp_path, agent_v2()) as served:
        session, one, two = await both_on(served)
        prompt = one.start_prompt(session, {"ask": OPTIONS})
        asked = await one.asked()
        assert asked["params"]["toolCall"]["toolCallId"] == "c1"
        assert asked["params"]["options"] == OPTIONS
        theirs = await two.asked()
        assert theirs["params"]["title"] == "May I?"
        one.choose(asked)
        await two.until(lambda message: message.get("method") == "$/cancel_request")
        assert (await one.answer(prompt))["result"]["stopReason"] == "end_turn"
        two.forget()
        one.start_prompt(session, {"ask": OPTIONS})
        two.choose(await two.asked(), "no")
        await one.until(lambda _: any('"no"' in text for text in one.said()))


async def test_cancelling_answers_the_prompt(tmp_path):
    async with serve(tmp_path, agent_v2()) as served:
        one = await join(served)
        session = await one.new()
        prompt = one.start_prompt(session, {"say": "a"}, {"cancel": True})
        await one.until(lambda _: one.said() == ["a"])
        one.send({"method": "session/cancel", "params": {"sessionId": session}})
        assert (await one.answer(prompt))["result"]["stopReason"] == "cancelled"
        prompt = one.start_prompt(session, {"say": "b"}, {"cancel": True})
        await one.until(lambda _: one.said() == ["a", "b"])
        one.send({"method": "$/cancel_request", "params": {"requestId": prompt}})
        assert (await one.answer(prompt))["result"]["stopReason"] == "cancelled"


async def test_work_that_the_agent_starts_unprompted_is_announced(tmp_path):
    gate = tmp_path / "gate"
    async with serve(tmp_path, agent_v2()) as served:
        one = await join(served, extensions=True)
        session = await one.new()
        await one.prompt(session, {"say": "a"}, {"later": str(gate)})
        await one.announced(session, lambda facts: facts["state"] == "idle")
        one.forget()
        gate.touch()
        await one.announced(session, lambda facts: facts["state"] == "running")
        await one.until(lambda _: one.said() == ["by myself"])
        late = await join_v2(served)
        await late.resume(session)
        assert late.states()[-1]["state"] == "running"
        (tmp_path / "gate.end").touch()
        await one.announced(session, lambda facts: facts["state"] == "idle")
        await late.until(lambda _: late.states()[-1]["state"] == "idle")


async def test_modes_are_available_to_version_1_viewers(tmp_path):
    async with serve(tmp_path, agent_v2()) as served:
        one = await join(served)
        opened = await one.ask("session/new", {"cwd": "/work", "mcpServers": []})
        assert opened["result"]["modes"]["currentModeId"] == "ask"
        session = opened["result"]["sessionId"]
        answer = await one.ask("session/set_mode", {"sessionId": session, "modeId": "code"})
        assert "error" not in answer
        again = await join(served)
        loaded = await again.load(session)
        assert loaded["result"]["modes"]["currentModeId"] == "code"
        await again.until(
            lambda _: any(each["sessionUpdate"] == "available_commands_update" for each in again.updates())
        )


async def test_agent_exit_fails_the_prompt_and_is_journalled(tmp_path):
    async with serve(tmp_path, agent_v2()) as served:
        session, one, two = await both_on(served)
        prompt = one.start_prompt(session, {"say": "a"}, {"exit": 3})
        failed = await one.answer(prompt)
        assert "exited with code 3" in failed["error"]["message"]
        await two.until(lambda _: two.states()[-1].get("stopReason") == "error")
        assert served.sessions.by_id[session].info.turns == 0


async def test_invalid_params_are_explained_in_the_viewers_version(tmp_path):
    async with serve(tmp_path, agent_v2()) as served:
        one = await join(served)
        refused = await one.ask("session/new", {"cwd": "/work"})
        assert refused["error"]["code"] == -32602
        assert "mcpServers" in refused["error"]["message"]
        server = {"type": "sse", "name": "x", "url": "http://x", "headers": []}
        refused = await one.ask("session/new", {"cwd": "/work", "mcpServers": [server]})
        assert refused["error"]["data"]["path"] == "params.mcpServers[0].type"


async def test_session_continues_after_the_agent_exits(tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    async with serve(tmp_path, agent_v2(store=str(store)), backoff_min_s=0.01) as served:
        session, one, two = await both_on(served)
        await one.prompt(session, {"say": "a"})
        failed = await one.prompt(session, {"exit": 3})
        assert "error" in failed
        await until(lambda: served.host.is_ready)
        assert (await one.prompt(session, {"say": "b"}))["result"]["stopReason"] == "end_turn"
        assert one.said() == ["a", "b"]
        await two.until(lambda _: texts(two) == ["a", "b"])
