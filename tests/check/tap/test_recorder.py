"""The recorder of a tap records immediately, judges later, and counts unjudged messages."""

import json

from dragoman.check.tap import recorder
from dragoman.check.tap.feed import Frame, FrameKind
from dragoman.check.tap.recorder import FindingLog, TapRecorder
from dragoman.check.tap.recording import Recording, Redaction, keep_all
from dragoman.check.trace import read_trace
from dragoman.recording.recorder import TrajectoryFile
from dragoman.recording.trajectory import read_trajectory

NOISE = b"no message\n"
UPDATE = b'{"jsonrpc":"2.0","method":"_extension","params":{}}\n'


def recorder_to(path=None):
    recording = None if path is None else Recording(TrajectoryFile(path, "agent"), keep_all)
    return TapRecorder(recording, FindingLog(-1, live=False, clean_all=keep_all))


def agent(data, time_ns=1_000_000_000):
    return Frame(FrameKind.AGENT, time_ns, data)


def test_lines_torn_over_frames_are_one_message(tmp_path):
    tap_recorder = recorder_to(tmp_path / "out")
    for at in range(0, len(UPDATE), 7):
        tap_recorder.process(agent(UPDATE[at : at + 7]))
    assert any("1 messages" in line for line in tap_recorder.finish())
    [record] = read_trajectory(tmp_path / "out")
    assert record.message == json.loads(UPDATE)


def test_recorded_times_are_those_of_the_bytes(tmp_path):
    tap_recorder = recorder_to(tmp_path / "out")
    tap_recorder.process(agent(UPDATE, 5_000_000_000))
    tap_recorder.process(agent(UPDATE, 7_500_000_000))
    tap_recorder.finish()
    assert [record.time for record in read_trajectory(tmp_path / "out")] == [5000, 7500]


def test_nothing_is_judged_after_a_reported_gap(tmp_path):
    tap_recorder = recorder_to(tmp_path / "out")
    tap_recorder.process(agent(UPDATE + b'{"half of a mess'))
    tap_recorder.process(Frame(FrameKind.SKIPPED, 1, b"1234"))
    tap_recorder.process(agent(b'age":1}\n' + NOISE))
    said = "\n".join(tap_recorder.finish())
    assert "1,234 bytes came too fast" in said
    assert "ACP-WIRE-001" not in said
    assert "no violation in the part that was judged" in said
    records = list(read_trajectory(tmp_path / "out"))
    assert [record.kind for record in records] == ["received", "event", "noise"]
    assert records[1].event == "skipped 1234 bytes"


def test_slow_judge_stops_and_counts_missed_messages(tmp_path, monkeypatch):
    monkeypatch.setattr(recorder, "MAX_WAITING_BYTES", 1000)
    tap_recorder = recorder_to(tmp_path / "out")
    tap_recorder.process(agent(UPDATE * 100))
    said = "\n".join(tap_recorder.finish())
    assert "100 messages came too fast to be judged" in said
    assert "dragoman check trace" in said
    assert len(list(read_trajectory(tmp_path / "out"))) == 100


def test_tap_and_trace_of_its_recording_agree(tmp_path):
    tap_recorder = recorder_to(tmp_path / "out")
    tap_recorder.process(agent(NOISE))
    assert any("ACP-WIRE-001" in line for line in tap_recorder.finish())
    [conversation] = read_trace(tmp_path / "out").conversations
    assert [entry.line for entry in conversation.entries] == [b"no message"]


def test_tokens_are_redacted_by_name_and_form(monkeypatch):
    monkeypatch.setenv("OTHER_TOKEN", "canary-of-the-environment")
    clean_all = Redaction().clean_all
    line = {
        "apiKey": 'canary"quoted',
        "access_token": "canary",
        "Authorization": "Basic canary",
        "text": "key sk-canary4567890123456789 and ghp_canarycanarycanarycanary, canary-of-the-environment",
        "header": "Bearer canary.canary",
        "progressToken": "kept",
        "inputTokens": 12,
    }
    [cleaned] = map(json.loads, clean_all([json.dumps(line).encode()]))
    assert "canary" not in json.dumps(cleaned)
    assert cleaned["progressToken"] == "kept"
    assert cleaned["inputTokens"] == 12


def test_each_kind_of_secret_is_redacted(monkeypatch):
    monkeypatch.setenv("OTHER_TOKEN", "canary-of-the-environment")
    prefixes = ("sk-", "sk_live_", "pk_", "rk-", "ghp_", "github_pat_", "glpat-", "xoxb-", "hf_", "npm_", "pypi-")
    for name, value in [
        ("env", {"A": "canary"}),
        ("headers", [{"name": "A", "value": "canary"}]),
        ("mcpServers", [{"name": "a", "args": ["canary"]}]),
        ("PASSWORD", "canary"),
        *(("text", f"{prefix}canary-canary") for prefix in prefixes),
        ("text", "AKIACANARYCANARYCANARY"),
        ("other", "canary-of-the-environment"),
    ]:
        [cleaned] = Redaction().clean_all([json.dumps({name: value}).encode()])
        assert b"canary" not in cleaned.lower(), value
        assert json.loads(cleaned)
