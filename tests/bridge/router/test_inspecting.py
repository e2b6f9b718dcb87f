"""The wire inspector: every message between the bridge and its agent."""

import json

from dragoman.bridge.router.inspection import MAX_SHOWN_BYTES
from dragoman.bridge.wire_log import TO_AGENT, WireLog
from tests.bridge.viewers import join, serve
from tests.waiting import until


async def test_earlier_messages_are_shown_with_their_latency(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served, extensions=True)
        session = await one.new()
        await one.prompt(session, {"say": "x"}, {"line": "garbage"})
        entries = (await one.ask("_dragoman/inspect", {"on": True}))["result"]["entries"]
    assert [(entry["direction"], entry["kind"], entry.get("method")) for entry in entries] == [
        ("to_agent", "request", "initialize"),
        ("from_agent", "response", "initialize"),
        ("to_agent", "request", "session/new"),
        ("from_agent", "response", "session/new"),
        ("to_agent", "request", "session/prompt"),
        ("from_agent", "notification", "session/update"),
        ("from_agent", "malformed", None),
        ("from_agent", "response", "session/prompt"),
    ]
    assert [entry["n"] for entry in entries] == list(range(1, 9))
    assert all(entry["latencyMs"] >= 0 for entry in entries if entry["kind"] == "response")
    assert all(entry["size"] == len(entry["line"].encode()) for entry in entries if "mcpServers" not in entry["line"])
    assert [entry.get("sessionId") for entry in entries[4:]] == [session, session, None, session]
    assert entries[4]["id"] == entries[7]["id"]


async def test_new_messages_are_sent_while_the_inspector_is_open(tmp_path):
    async with serve(tmp_path) as served:
        one, two = await join(served, extensions=True), await join(served, extensions=True)
        session, other = await one.new(), await one.new()
        assert not served.router.inspector.is_open
        await two.ask("_dragoman/inspect", {"on": True, "sessionId": session})
        await one.prompt(other, {"say": "unseen"})
        await one.prompt(session, {"say": "seen"})
        await two.until(
            lambda message: "stopReason" in json.dumps(message) and message.get("method") == "_dragoman/wire"
        )
        entries = [entry for params in two.params_of("_dragoman/wire") for entry in params["entries"]]
        assert [entry["method"] for entry in entries] == ["session/prompt", "session/update", "session/prompt"]
        assert "latencyMs" in entries[2]
        assert (await two.ask("_dragoman/inspect", {"on": False}))["result"] == {"entries": []}
        await until(lambda: not served.router.inspector.is_open)
        await two.ask("_dragoman/inspect", {"on": True})
        await two.viewer.close()
        await until(lambda: not served.router.inspector.is_open)


async def test_secrets_are_hidden_and_long_lines_cut(tmp_path):
    server = {"name": "m", "command": "x", "args": ["hunter2"], "env": [{"name": "K", "value": "hunter2"}]}
    async with serve(tmp_path) as served:
        one = await join(served, extensions=True)
        session = await one.new(mcpServers=[server])
        await one.prompt(session, {"large": 2 * MAX_SHOWN_BYTES})
        answer = await one.ask("_dragoman/inspect", {"on": True})
    assert "hunter2" not in json.dumps(answer)
    (long,) = [entry for entry in answer["result"]["entries"] if entry.get("cut")]
    assert len(long["line"]) == MAX_SHOWN_BYTES
    assert long["size"] > 2 * MAX_SHOWN_BYTES


async def test_wrong_request_is_refused_with_the_expected_params(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served, extensions=True)
        error = (await one.ask("_dragoman/inspect", {"on": "yes"}))["error"]
        assert error["code"] == -32602
        assert "on: true or false" in error["data"]


def test_wire_log_drops_the_oldest_lines():
    log = WireLog(10, 1_000_000)
    for number in range(100):
        log.note(TO_AGENT, [b"%d\n" % number])
    assert [line for batch in log.batches() for line in batch.lines()] == [b"%d" % number for number in range(90, 100)]
    small = WireLog(1_000, 50)
    for _ in range(100):
        small.note(TO_AGENT, [b"x" * 19 + b"\n"])
    assert len(small.batches()) == 2
