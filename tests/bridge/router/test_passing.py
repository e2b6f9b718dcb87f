"""Messages are forwarded unchanged in both directions."""

import asyncio
import json

import pytest

from tests.bridge.viewers import RecordedViewer, agent, join, serve
from tests.waiting import until


async def test_conversation_is_forwarded(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        session = await one.new()
        assert (await one.prompt(session, {"say": "Hello"}, {"say": "you"}))["result"] == {"stopReason": "end_turn"}
        assert one.said(session) == ["Hello", "you"]


async def test_initialize_answer_has_the_agents_fields_plus_the_bridges(tmp_path):
    spec = agent(capabilities={"promptCapabilities": {"image": True}, "sessionCapabilities": {"fork": {}}, "new": None})
    async with serve(tmp_path, spec) as served:
        result = (await RecordedViewer(served).initialize())["result"]
    assert result == {
        "protocolVersion": 1,
        "agentCapabilities": {
            "promptCapabilities": {"image": True},
            "sessionCapabilities": {"fork": {}, "list": {}, "resume": {}, "title": {}, "archive": {}, "status": {}},
            "new": None,
            "loadSession": True,
        },
        "_meta": {"mine": 1},
        "strange": [None],
    }


async def test_viewer_with_our_extensions_gets_bridge_details(tmp_path):
    async with serve(tmp_path, agent(), agent("two")) as served:
        result = (await RecordedViewer(served).initialize(extensions=True))["result"]
    own = result["_meta"].pop("dragoman")
    assert result["_meta"] == {"mine": 1}
    assert {key: own[key] for key in ("agent", "agents", "cwd", "readOnly")} == {
        "agent": "one",
        "agents": [{"name": "one", "title": "one"}, {"name": "two", "title": "two"}],
        "cwd": "/work",
        "readOnly": False,
    }


@pytest.mark.parametrize("request_id", [b'"a string"', b"7", b"null", b'"7"', b"-1", b"1.5"])
async def test_request_ids_are_returned_unchanged(tmp_path, request_id):
    async with serve(tmp_path) as served:
        one = await join(served)
        one.send(b'{"jsonrpc":"2.0","id":%b,"method":"_echo","params":{"n":null}}' % request_id)
        await one.more()
        assert b'"id":%b,' % request_id in one.lines[-1]
        assert one.seen[-1]["result"] == {"n": None}


async def test_unknown_fields_nulls_and_extensions_are_forwarded_both_ways(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        params = {"a": None, "b": {"c": [1, None]}, "_meta": None}
        answer = await one.ask("_echo", params)
        assert answer["result"] == params
        assert answer["extra"] == {"kept": None}
        assert (await one.ask("_null"))["result"] is None
        assert (await one.ask("_refuse"))["error"] == {"code": -32099, "message": "no", "data": {"why": None}}
        session = await one.new()
        strange = {"sessionUpdate": "of_tomorrow", "content": None, "x": {"y": [None]}}
        await one.prompt(session, {"update": strange}, {"notify": ["_note/all", {"z": None}]})
        assert one.updates() == [strange]
        assert one.params_of("_note/all") == [{"z": None}]


async def test_top_level_members_of_a_request_reach_the_agent(tmp_path):
    log = tmp_path / "log"
    async with serve(tmp_path / "home", agent(log=str(log))) as served:
        one = await join(served)
        await one.ask("_echo", {}, trace={"id": None})
    sent = [json.loads(line) for line in log.read_text().splitlines()]
    assert [message["trace"] for message in sent if message.get("method") == "_echo"] == [{"id": None}]


async def test_lines_that_are_not_messages_are_harmless(tmp_path):
    garbage = ["Loading model…", "{", '{"jsonrpc":"2.0","id":99,"result":1}', "[]", '{"jsonrpc":"2.0"}', "\x00"]
    async with serve(tmp_path) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, *({"line": line} for line in garbage), {"say": "still here"})
        assert one.said() == ["still here"]


async def test_duplicate_answer_is_forwarded_once(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        assert (await one.ask("_twice"))["result"] == 1
        await one.ask("_echo")
        assert [message.get("result") for message in one.seen].count(2) == 0


async def test_message_with_a_lone_surrogate_is_repaired(tmp_path):
    line = (
        '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"%s","update":'
        r'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\ud83d"}}}}'
    )
    async with serve(tmp_path) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"line": line % session})
        assert one.said() == ["\N{REPLACEMENT CHARACTER}"]
        one.send(line.replace("session/update", "_echo").replace('"jsonrpc"', '"id":5,"jsonrpc"').encode())
        assert (await one.answer(5))["result"]["update"]["content"]["text"] == "\N{REPLACEMENT CHARACTER}"


async def test_line_of_many_megabytes_is_forwarded(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"large": 48 * 1024 * 1024})
        assert [len(text) for text in one.said()] == [48 * 1024 * 1024]
        two = await join(served)
        await two.load(session)
        assert [len(text) for text in two.said()] == [48 * 1024 * 1024]


async def test_line_beyond_the_limit_is_dropped(tmp_path):
    async with serve(tmp_path, max_line_bytes=100_000) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"large": 200_000}, {"say": "after"})
        assert one.said() == ["after"]


async def test_requests_before_initialize_are_refused(tmp_path):
    async with serve(tmp_path) as served:
        one = RecordedViewer(served)
        error = (await one.ask("session/new"))["error"]
        assert error["code"] == -32600
        assert "initialize" in error["data"]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"no json", -32700),
        (b"[]", -32600),
        (b'{"jsonrpc":"2.0"}', -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"x"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', -32700),
    ],
)
async def test_malformed_viewer_message_gets_a_json_rpc_error(tmp_path, line, code):
    async with serve(tmp_path) as served:
        one = await join(served)
        one.send(line)
        await one.more()
        assert one.seen[-1]["error"]["code"] == code


async def test_viewer_message_that_is_too_long_is_refused(tmp_path):
    async with serve(tmp_path, max_message_bytes=1_000) as served:
        one = await join(served)
        one.send({"id": 1, "method": "_echo", "params": {"x": "y" * 1_000}})
        await one.more()
        assert "1000 bytes" in one.seen[-1]["error"]["data"]


async def test_id_of_a_running_request_cannot_be_reused(tmp_path):
    gate = tmp_path / "gate"
    async with serve(tmp_path / "home") as served:
        one = await join(served)
        session = await one.new()
        running = one.start_prompt(session, {"until": str(gate)})
        one.send({"id": running, "method": "_echo"})
        refused = await one.answer(running)
        assert "still running" in refused["error"]["data"]
        gate.touch()
        await one.until(lambda message: message.get("result") == {"stopReason": "end_turn"})


async def test_too_many_requests_at_once_are_refused(tmp_path):
    gate = tmp_path / "gate"
    async with serve(tmp_path / "home", max_requests=3) as served:
        one = await join(served)
        session = await one.new()
        prompts = [one.start_prompt(session, {"until": str(gate)}) for _ in range(3)]
        assert "3 requests" in (await one.ask("_echo"))["error"]["data"]
        gate.touch()
        for prompt in prompts:
            await one.answer(prompt)
        assert "result" in await one.ask("_echo")


async def test_updates_around_the_answer_to_session_new_follow_it(tmp_path):
    async with serve(tmp_path, agent(early=True, late=True)) as served:
        one = await join(served)
        session = await one.new()
        await until(lambda: served.sessions.by_id[session].history.end == 3)
        await one.until(lambda message: message.get("method") == "session/update")
        while len(one.said()) < 2:
            await one.more()
        assert one.said(session) == ["early", "late"]
        kinds = [message.get("method", "answer") for message in one.seen[1:]]
        assert kinds == ["answer", "session/update", "session/update"]


async def test_viewer_cancels_its_own_request_at_the_agent(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        session = await one.new()
        prompt = one.start_prompt(session, {"hear": "$/cancel_request"})
        one.send({"method": "$/cancel_request", "params": {"requestId": prompt, "why": None}})
        await one.answer(prompt)
        cancel = json.loads(one.said()[0])
        assert cancel["params"]["why"] is None
        assert cancel["params"]["requestId"] != prompt


async def test_request_without_params_reaches_the_agent_unchanged(tmp_path):
    log = tmp_path / "log"
    async with serve(tmp_path / "home", agent(log=str(log))) as served:
        one = await join(served)
        one.send(b'{"jsonrpc":"2.0","id":1,"method":"_null"}')
        one.send(b'{"jsonrpc":"2.0","id":2,"method":"_null","params":null}')
        await one.answer(2)
    sent = [json.loads(line) for line in log.read_text().splitlines()]
    params = [message.get("params", "absent") for message in sent if message.get("method") == "_null"]
    assert params == ["absent", None]


async def test_each_agent_has_its_process(tmp_path):
    from tests.bridge.viewers import bridge_of

    async with bridge_of(tmp_path, agent("one"), agent("two")) as bridge:
        assert bridge.agent("three") is None
        assert bridge.agent() is bridge.agent("one")
        one, two = await asyncio.gather(join(bridge.agent("one")), join(bridge.agent("two")))
        sessions = await one.new(), await two.new()
        await two.prompt(sessions[1], {"say": "for two"})
        assert two.said() == ["for two"]
        assert one.said() == []
        assert sessions[0] not in bridge.agent("two").sessions.by_id
