"""Recordings in different formats are read as the same conversation, and invalid ones are reported with the line."""

import gzip
import json
from pathlib import Path

import pytest

from dragoman.check.trace import TraceError, check_trace, read_trace
from dragoman.client import Recorder
from tests.table import each_row

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": 1, "clientCapabilities": {}},
}
INITIALIZED = {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": 1, "agentCapabilities": {}}}
NEW = {"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}}
MADE = {"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "s"}}
PROMPT = {
    "jsonrpc": "2.0",
    "id": 3,
    "method": "session/prompt",
    "params": {"sessionId": "s", "prompt": [{"type": "text", "text": "go"}]},
}
UPDATE = {
    "jsonrpc": "2.0",
    "method": "session/update",
    "params": {
        "sessionId": "s",
        "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hi"}},
    },
}
ENDED = {"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "end_turn"}}
TALK = [
    ("client", INITIALIZE),
    ("agent", INITIALIZED),
    ("client", NEW),
    ("agent", MADE),
    ("client", PROMPT),
    ("agent", UPDATE),
    ("agent", ENDED),
]


@pytest.fixture
def write(tmp_path):
    def write(*objects, end="\n", name="trace"):
        path = tmp_path / name
        lines = (each if isinstance(each, str) else json.dumps(each) for each in objects)
        path.write_text("\n".join(lines) + end)
        return path

    return write


def said(conversation):
    return [(entry.sender, json.loads(entry.line)) for entry in conversation.entries if not entry.event]


def one(path):
    [conversation] = read_trace(path).conversations
    return conversation


def test_byte_order_mark_is_skipped(write):
    assert said(one(write("\ufeff" + json.dumps(INITIALIZE), *[message for _, message in TALK[1:]]))) == TALK


def failures(path):
    return {each.id: each.verdict for each in check_trace(path, ("agent",)).results if each.verdict in ("fail", "warn")}


def directed(*talk):
    return [{"from": sender, "message": message} for sender, message in talk]


CANCEL = ("client", {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}})


@pytest.mark.parametrize(("between", "verdict"), [([], None), ([("agent", UPDATE)], "warn")])
def test_untimed_work_after_a_cancel_is_a_warning(write, between, verdict):
    path = write(*directed(*TALK[:-1], CANCEL, *between, TALK[-1]))
    assert failures(path).get("ACP-CANCEL-001") == verdict


def test_untimed_request_is_forgotten_if_later_ones_were_answered(write):
    def ask(number):
        return "client", {"jsonrpc": "2.0", "id": number, "method": "session/list", "params": {}}

    def answer(number):
        return "agent", {"jsonrpc": "2.0", "id": number, "result": {"sessions": []}}

    later = [each for number in (6, 7, 8) for each in (ask(number), answer(number))]
    assert failures(write(*directed(*TALK, ask(5), *later))).get("ACP-WIRE-011") == "fail"
    assert "ACP-WIRE-011" not in failures(write(*directed(*TALK, ask(5), *later[:-1])))


def test_message_before_the_first_initialize_is_early(write):
    assert failures(write(*directed(("agent", UPDATE), *TALK))).get("ACP-NEW-003") == "fail"
    assert "ACP-NEW-003" not in failures(write(*directed(("agent", UPDATE), ("agent", ENDED), *TALK)))


def test_our_own_trajectory(tmp_path):
    path = tmp_path / "trajectory"
    with Recorder(path) as recorder:
        for sender, message in TALK:
            line = json.dumps(message).encode()
            recorder.sent(line + b"\n") if sender == "client" else recorder.received([line])
    assert read_trace(path).format == "dragoman"
    assert said(one(path)) == TALK


def test_our_own_trajectory_with_a_torn_end(tmp_path):
    path = tmp_path / "trajectory"
    with Recorder(path) as recorder:
        recorder.sent(json.dumps(INITIALIZE).encode())
        recorder.received([json.dumps(INITIALIZED).encode()])
    content = path.read_bytes()
    last_seal = content.rindex(b"\t")
    for cut, count in ((last_seal - 20, 1), (last_seal, 2), (last_seal + 20, 2)):
        path.write_bytes(content[:cut])
        trace = read_trace(path)
        assert trace.torn
        assert said(trace.conversations[0]) == TALK[:count]


def test_altered_trajectory_is_reported_with_its_line(tmp_path):
    path = tmp_path / "trajectory"
    with Recorder(path) as recorder:
        recorder.sent(json.dumps(INITIALIZE).encode())
        recorder.received([json.dumps(INITIALIZED).encode()])
    path.write_bytes(path.read_bytes().replace(b'"result"', b'"resulT"'))
    with pytest.raises(TraceError) as caught:
        read_trace(path)
    assert caught.value.line == 5


SPELLINGS = {
    "dir in/out": ("dir", "out", "in", "message"),
    "direction outbound/inbound": ("direction", "outbound", "inbound", "msg"),
    "from client/agent": ("from", "client", "agent", "payload"),
    "arrows": ("dir", "->", "<-", "data"),
    "real arrows": ("direction", "→", "←", "message"),
    "whole arrows": ("direction", "client->agent", "agent->client", "message"),
    "send/recv": ("type", "send", "recv", "data"),
    "sent/received": ("event", "sent", "received", "message"),
    "stdin/stdout": ("source", "stdin", "stdout", "line"),
    "the inspector of the bridge": ("direction", "to_agent", "from_agent", "message"),
    "capitals": ("direction", "CLIENT_TO_AGENT", "AGENT_TO_CLIENT", "message"),
}


@each_row("spelling", SPELLINGS.values())
def test_direction_in_any_spelling(spelling, write):
    name, client, agent, message_name = spelling
    path = write(*({name: client if sender == "client" else agent, message_name: message} for sender, message in TALK))
    assert read_trace(path).format == "directed"
    assert said(one(path)) == TALK


def test_in_and_out_from_the_agents_view(write):
    path = write(*({"dir": "in" if sender == "client" else "out", "message": message} for sender, message in TALK))
    assert said(one(path)) == TALK


def test_messages_as_text_keep_invalid_json(write):
    lines = [{"dir": "client", "line": json.dumps(INITIALIZE)}, {"dir": "agent", "line": "Starting up!"}]
    assert [entry.line for entry in one(write(*lines)).entries] == [json.dumps(INITIALIZE).encode(), b"Starting up!"]


def test_direction_inside_the_message_is_removed(write):
    path = write({"from": "client", "ts": 12.0, **INITIALIZE}, {"from": "agent", "ts": 12.5, **INITIALIZED})
    assert said(one(path)) == TALK[:2]


@pytest.mark.parametrize("times", [(1763240000.0, 1763240001.5), (1763240000000, 1763240001500), (3.0, 4.5)])
def test_times_count_from_the_first_message(times, write):
    path = write(*({"dir": "out", "time": at, "message": INITIALIZE} for at in times))
    assert [entry.at_s for entry in one(path).entries] == [0.0, 1.5]


def test_times_as_dates(write):
    dates = ("2026-11-15T12:00:00Z", "2026-11-15T12:00:02.250Z")
    path = write(*({"dir": "out", "timestamp": at, "message": INITIALIZE} for at in dates))
    assert [entry.at_s for entry in one(path).entries] == [0.0, 2.25]


def test_acpx_journal_has_one_conversation_per_agent_start():
    """Recorded with acpx 0.19.1: an allowed, a denied and an allowed turn, then one after an agent restart."""
    journal = Path(__file__).parent / "data" / "acpx-0.19.1.stream.ndjson"
    first, second = read_trace(journal).conversations
    assert [sum(b'"method":"session/prompt"' in entry.line for entry in each.entries) for each in (first, second)] == [
        3,
        1,
    ]
    report = check_trace(journal)
    assert {each.id: each.detail for each in report.results if each.verdict in ("fail", "warn", "error")} == {}
    assert report.summary.passed > 90


def test_bare_messages_of_older_acpx_versions(write):
    path = write(*(message for _, message in TALK), name="x.stream.ndjson")
    assert read_trace(path).format == "messages"
    assert said(one(path)) == TALK


def test_bare_responses_with_the_same_id_are_distinguished(write):
    asked = {"jsonrpc": "2.0", "id": 3, "method": "fs/read_text_file", "params": {"sessionId": "s", "path": "/a"}}
    read = {"jsonrpc": "2.0", "id": 3, "result": {"content": "text"}}
    talk = [*TALK[:5], ("agent", asked), ("client", read), ("agent", ENDED)]
    assert said(one(write(*(message for _, message in talk)))) == talk


def conductor(kind, start, end, message, at=0.0, **more):
    event = {"type": kind, "ts": at, "from": start, "to": end, **more}
    if kind == "response":
        return {**event, "id": message["id"], "is_error": False, "payload": message["result"]}
    event |= {"protocol": "acp", "method": message["method"], "params": message["params"], **more}
    return event | ({"id": message["id"]} if "id" in message else {})


def test_a_trace_of_the_conductor(write):
    path = write(
        conductor("request", "Client", "Agent", INITIALIZE),
        conductor("response", "Agent", "Client", INITIALIZED, 0.5),
        conductor("request", "Client", "Agent", NEW),
        conductor("response", "Agent", "Client", MADE),
        conductor("request", "Client", "Agent", PROMPT),
        conductor("notification", "Agent", "Client", UPDATE),
        conductor("response", "Agent", "Client", ENDED),
    )
    assert read_trace(path).format == "conductor"
    assert said(one(path)) == TALK
    assert one(path).entries[1].at_s == 0.5


def test_conductor_chain_has_one_conversation_per_pair(write):
    greeting = {**INITIALIZE, "method": "_proxy/initialize"}
    tools = {"id": "m", "method": "tools/list", "params": {}}
    path = write(
        conductor("request", "Client", "Proxy(0)", greeting),
        conductor("request", "Proxy(0)", "Agent", {**INITIALIZE, "id": "u"}),
        conductor("request", "Agent", "Proxy(0)", tools, protocol="mcp"),
        conductor("response", "Proxy(0)", "Agent", {"id": "m", "result": {}}),
        conductor("response", "Agent", "Proxy(0)", {**INITIALIZED, "id": "u"}),
        conductor("response", "Proxy(0)", "Client", INITIALIZED),
    )
    conversations = {each.name: each for each in read_trace(path).conversations}
    assert said(conversations["Client and Proxy(0)"]) == TALK[:2]
    assert [sender for sender, _ in said(conversations["Proxy(0) and Agent"])] == ["client", "agent"]


def test_a_gzipped_recording(tmp_path):
    path = tmp_path / "trace.gz"
    path.write_bytes(gzip.compress("\n".join(json.dumps(message) for _, message in TALK).encode()))
    assert said(one(path)) == TALK


def test_incomplete_last_line_is_left_out(write):
    trace = read_trace(write(INITIALIZE, INITIALIZED, '{"jsonrpc":"2.0","id":2,"meth', end=""))
    assert trace.torn
    assert said(trace.conversations[0]) == TALK[:2]


@pytest.mark.parametrize(
    ("lines", "number", "words"),
    [
        ((INITIALIZE, "garbage", INITIALIZED), 2, "expected one JSON object per line, found 'garbage'"),
        ((INITIALIZE, INITIALIZED, {"neither": "nor"}), 3, "expected a message"),
        (({"dir": "in", "message": INITIALIZED}, {"message": {}}), 2, "no sender found"),
        (({"dir": "in", "message": INITIALIZED}, {"dir": "out"}), 2, "no message found"),
        (({"weather": "fine"},), 1, "this is not a known recording"),
        (("<html>", "</html>"), 1, "expected one JSON object per line"),
    ],
)
def test_invalid_recording_is_reported_with_its_line(lines, number, words, write):
    with pytest.raises(TraceError) as caught:
        read_trace(write(*lines))
    assert caught.value.line == number
    assert words in str(caught.value)


def test_missing_and_empty_files_are_reported(write, tmp_path):
    with pytest.raises(TraceError, match="No such file"):
        read_trace(tmp_path / "missing")
    with pytest.raises(TraceError, match="the file is empty"):
        read_trace(write())


def test_recording_is_judged_on_one_or_both_sides(write):
    path = write(
        {"dir": "client", "line": json.dumps(INITIALIZE)},
        {"dir": "agent", "line": "Starting up!"},
        {"dir": "agent", "line": json.dumps(INITIALIZED)},
    )
    failed = {result.id for result in check_trace(path).results if result.verdict == "fail"}
    assert "ACP-WIRE-001" in failed
    of_client = {result.id for result in check_trace(path, ["client"]).results}
    assert "ACP-WIRE-001" not in of_client
    assert "ACP-WIRE-101" in of_client
