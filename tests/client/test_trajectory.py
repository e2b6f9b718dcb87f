"""Recordings are read back unchanged and without secrets, even if their end is torn."""

import json
import stat
import subprocess
import sys

import pytest

from dragoman.client import Recorder, connect_sync, read_trajectory
from dragoman.client.errors import RecordingError, TrajectoryError
from dragoman.client.events import TextChunk
from dragoman.protocol import v1
from dragoman.testing import steps
from dragoman.wire import Oversized
from tests.client.driving import END, agent_of, chunk, read, session_with
from tests.commands import raw, scripted

CANARY = "canary-4711"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trajectory.jsonl"


def lines(*messages):
    return b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in messages)


async def test_both_sides_of_a_conversation_are_recorded_in_order(path):
    async with session_with(scripted([steps.Say("one"), steps.Say("two")]), record=path) as session:
        live = [event.text for event in await read(session.prompt("go")) if isinstance(event, TextChunk)]
    records = list(read_trajectory(path))
    assert [record.seq for record in records] == list(range(1, len(records) + 1))
    asked = [record.method for record in records if record.kind == "sent"]
    assert asked == ["initialize", "session/new", "session/prompt"]
    updates = [record.update.update for record in records if record.method == "session/update"]
    said = [update.content.text for update in updates if isinstance(update, v1.AgentMessageChunk)]
    assert said == live == ["one", "two"]
    assert records[-1].message["result"] == {"stopReason": "end_turn"}
    assert records[0].time <= records[-1].time


def test_the_synchronous_client_records_too(path):
    with connect_sync(scripted(), record=path) as agent:
        agent.new_session("/")
    assert [record.method for record in read_trajectory(path)] == ["initialize", None, "session/new", None]


async def test_lines_that_are_not_messages_are_noise(path):
    command = raw({}, ["garbage", '{"half": ', chunk("x"), END])
    async with session_with(command, record=path) as session:
        await read(session.prompt("go"))
    noise = [record.noise for record in read_trajectory(path) if record.kind == "noise"]
    assert noise == ["garbage", '{"half":']


def test_oversized_lines_and_split_characters_are_recorded(path):
    with Recorder(path) as recorder:
        recorder.received([Oversized(5), b'{"jsonrpc":"2.0","method":"x","params":{"a":"\\ud83d"}}'])
    first, second = read_trajectory(path)
    assert first.noise == "a line of more than 5 bytes"
    assert second.message["params"] == {"a": "\ufffd"}


async def test_the_secrets_of_servers_are_not_in_the_file(path):
    capabilities = {"mcpCapabilities": {"http": True}}
    servers = [
        v1.McpServerStdio(
            name="one",
            command="some-server",
            args=[f"--key={CANARY}"],
            env=[v1.EnvVariable(name="KEY", value=CANARY)],
        ),
        v1.McpServerHttp(
            name="two",
            url=f"https://me:{CANARY}@two.example/mcp?key={CANARY}",
            headers=[v1.HttpHeader(name="Authorization", value=f"Bearer {CANARY}")],
        ),
    ]
    async with agent_of(raw(capabilities=capabilities), record=path) as agent:
        await agent.new_session("/", mcp_servers=servers)
    assert CANARY not in path.read_text()
    [asked] = [record.message["params"] for record in read_trajectory(path) if record.method == "session/new"]
    one, two = asked["mcpServers"]
    assert (one["name"], one["command"], one["args"]) == ("one", "some-server", ["[hidden]"])
    assert one["env"] == [{"name": "KEY", "value": "[hidden]"}]
    assert two["url"] == "https://two.example/mcp"
    assert two["headers"] == [{"name": "Authorization", "value": "[hidden]"}]


def test_the_environment_of_a_terminal_is_not_in_the_file(path):
    with Recorder(path) as recorder:
        params = {"command": "make", "env": [{"name": "KEY", "value": CANARY}]}
        recorder.received([lines({"id": 1, "method": "terminal/create", "params": params})])
        recorder.received([lines({"id": 2, "method": "x", "params": {"env": {"KEY": CANARY}, "headers": CANARY}})])
    first, second = read_trajectory(path)
    assert first.message["params"] == {"command": "make", "env": [{"name": "KEY", "value": "[hidden]"}]}
    assert second.message["params"] == {"env": {"KEY": "[hidden]"}, "headers": "[hidden]"}
    assert CANARY not in path.read_text()


def test_only_the_owner_may_read_it(path):
    with Recorder(path):
        pass
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def written(path):
    """Write three blocks, the last with two records, and return the bytes."""
    with Recorder(path, "agent") as recorder:
        recorder.sent(lines({"id": 1, "method": "a"}))
        recorder.received([b'{"jsonrpc":"2.0","id":1,"result":{}}'])
        recorder.sent(lines({"method": "b"}, {"method": "c"}))
    return path.read_bytes()


def test_recording_has_the_format_of_a_session_log(path):
    content = written(path)
    header, seal, *rest = content.split(b"\n")[:-1]
    assert json.loads(header)["trajectory"]["agent"] == "agent"
    assert json.loads(seal)["seal"]["last"] == 0
    assert [next(iter(json.loads(line))) for line in rest] == [
        "sent",
        "seal",
        "jsonrpc",
        "seal",
        "sent",
        "sent",
        "seal",
    ]
    assert rest[2] == b'{"jsonrpc":"2.0","id":1,"result":{}}'


def test_truncated_file_returns_its_complete_records(path):
    content = written(path)
    header_end = content.index(b"\n", content.index(b"\t")) + 1
    for cut in range(header_end, len(content) + 1):
        path.write_bytes(content[:cut])
        whole = [line for line in content[header_end:cut].split(b"\n")[:-1] if not line.startswith(b"\t")]
        assert [record.seq for record in read_trajectory(path)] == list(range(1, len(whole) + 1)), content[:cut]


def test_flipped_bit_never_yields_a_false_record(path):
    content = written(path)
    good = list(read_trajectory(path))
    for place in range(len(content) - 1):  # without its last newline the file counts as truncated
        path.write_bytes(content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :])
        found = []
        with pytest.raises(TrajectoryError):
            found.extend(read_trajectory(path))
        assert found == good[: len(found)]


def test_damage_is_reported_after_the_good_records(path):
    content = written(path)
    path.write_bytes(content.replace(b'"method": "b"', b'"method": "B"'))
    records = read_trajectory(path)
    assert [next(records).seq, next(records).seq] == [1, 2]
    with pytest.raises(TrajectoryError, match="the file is damaged after record 2") as damaged:
        next(records)
    assert damaged.value.line == 7


def test_missing_block_is_reported(path):
    header, seal, _, _, *rest = written(path).splitlines(keepends=True)
    path.write_bytes(b"".join([header, seal, *rest]))
    with pytest.raises(TrajectoryError, match="the file is damaged after record 0: a checksum does not match"):
        list(read_trajectory(path))


def test_unusual_message_is_recorded_byte_for_byte(path):
    odd = b'{ "id": 1, "result": {"a": null}, "jsonrpc": "2.0" }'
    with Recorder(path) as recorder:
        recorder.received([odd, b'{"jsonrpc":"2.0","method":"x"}'])
    assert b'{"received":' + odd + b"}\n" in path.read_bytes()
    assert [(record.kind, record.message) for record in read_trajectory(path)] == [
        ("received", json.loads(odd)),
        ("received", {"jsonrpc": "2.0", "method": "x"}),
    ]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not a trajectory header"),
        (b'{"dragoman":1,"session":{}}\n', "not a trajectory header"),
        (b'{"dragoman":3,"trajectory":{"agent":"","created":""}}\n', "it has format 3"),
        (b'{"dragoman":1,"trajectory":{"agent":"","created":""}}\n', "its header is damaged"),
    ],
)
def test_file_that_is_not_a_trajectory_is_refused(content, words, path):
    path.write_bytes(content)
    with pytest.raises(TrajectoryError, match=words):
        list(read_trajectory(path))


def test_missing_recording_is_reported(path):
    with pytest.raises(TrajectoryError, match="No such file"):
        list(read_trajectory(path))


async def test_existing_file_is_never_overwritten(path):
    path.write_text("precious")
    with pytest.raises(RecordingError, match="use a file that does not exist yet"):
        async with agent_of(scripted(), record=path):
            pass
    assert path.read_text() == "precious"


async def test_conversation_continues_when_recording_fails(path):
    # RLIMIT_FSIZE applies to a whole process, so a child process sets it.
    code = """
import asyncio, json, resource, signal, sys
from dragoman.client import connect
from dragoman.client.errors import RecordingError

async def main():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    async with connect(json.loads(sys.argv[1]), record=sys.argv[2]) as agent:
        session = await agent.new_session("/")
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
        print(await session.ask("x" * 5000))

try:
    asyncio.run(main())
except RecordingError as error:
    print(error)
"""
    command = json.dumps(scripted([steps.Say("an answer")]))
    done = subprocess.run(
        [sys.executable, "-c", code, command, str(path)], capture_output=True, text=True, timeout=30, check=False
    )
    answer, failure = done.stdout.splitlines()
    assert answer == "an answer"
    assert failure.startswith(f"cannot record to {path}: File too large")
    assert [record.method for record in read_trajectory(path)][:3] == ["initialize", None, "session/new"]
