"""`dragoman tap` between a real client and a real agent: bytes pass unchanged, whatever happens."""

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import time

import pytest

from dragoman.client import connect, read_trajectory
from dragoman.testing import steps
from tests.client.driving import read
from tests.commands import scripted

TAP = [sys.executable, "-m", "dragoman", "tap"]
ECHO = [sys.executable, "-c", "import shutil,sys; shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)"]
DEADLINE_S = 30


def python(program):
    return [sys.executable, "-c", program]


def tap(*arguments, agent=ECHO, given=b"", env=None):
    return subprocess.run(
        [*TAP, *arguments, "--", *agent],
        input=given,
        capture_output=True,
        timeout=DEADLINE_S,
        check=False,
        env={**os.environ, **(env or {})},
    )


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def await_end(pid):
    deadline = time.monotonic() + DEADLINE_S
    while is_running(pid):
        assert time.monotonic() < deadline, f"{pid} runs on"
        os.sched_yield()


GIVEN = {
    "nothing": b"",
    "blank": b"\n\n",
    "half a line": b"no newline",
    "torn": b'{"jsonrpc":"2.0",\n"id":1}\r\n',
    "all bytes": bytes(range(256)) * 5000,
    "long": b"\xff\xfe" + b"x" * 3_000_000 + b"\n",
}


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
@pytest.mark.parametrize(
    "mode", [("--live",), *(pytest.param(mode, marks=pytest.mark.extended) for mode in ((), ("--record",)))], ids=str
)
def test_every_byte_passes_unchanged_both_ways(given, mode, tmp_path):
    options = [*mode, str(tmp_path / "out.jsonl")] if mode == ("--record",) else mode
    done = tap(*options, given=given)
    assert done.stdout == given
    assert done.returncode == 0


def test_recording_reads_back_like_the_clients_own(tmp_path):
    lines = [b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}', b"garbage"]
    path = tmp_path / "out.jsonl"
    tap("--record", str(path), given=b"\n".join(lines) + b"\n{half")
    kinds = [
        (record.kind, record.message.get("method") or record.noise or record.event) for record in read_trajectory(path)
    ]
    assert kinds[0][1].startswith("started in ")
    assert ("sent", "initialize") in kinds
    assert ("received", "initialize") in kinds
    assert ("sent_noise", "garbage") in kinds
    assert ("noise", "garbage") in kinds
    assert ("event", "stdin closed") in kinds
    assert ("event", "torn line of the agent: {half") in kinds
    assert kinds[-1] == ("event", "exited 0")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_message_with_an_invalid_envelope_is_recorded_completely(tmp_path):
    path = tmp_path / "out.jsonl"
    tap("--record", str(path), given=b'{"id":1,"method":"initialize"}\n')
    assert [record.message for record in read_trajectory(path) if record.kind == "sent"] == [
        {"id": 1, "method": "initialize"}
    ]


def test_secrets_are_in_no_file_and_not_on_stderr(tmp_path):
    out, findings = tmp_path / "out.jsonl", tmp_path / "findings.jsonl"
    server = {"name": "s", "command": "/x", "args": ["--k", "canary-1"], "env": [{"name": "A", "value": "canary-2"}]}
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "session/new",
        "params": {
            "cwd": "/",
            "mcpServers": [server],
            "_meta": {"apiKey": "canary-3", "text": "sk-canary456789012345678", "n": "Bearer canary-7777"},
        },
    }
    given = json.dumps(message).encode() + b"\nnoise with canary-environment-5 in it\n"
    arguments = ["--live", "--record", str(out), "--findings", str(findings)]
    done = tap(*arguments, given=given, env={"SOME_API_KEY": "canary-environment-5"})
    assert done.stdout == given
    written = out.read_bytes() + findings.read_bytes() + done.stderr
    assert b"canary" not in written
    assert b"[hidden]" in out.read_bytes()
    assert findings.read_bytes()


def test_secrets_are_kept_on_request(tmp_path):
    out = tmp_path / "out.jsonl"
    given = b'{"jsonrpc":"2.0","method":"_x","params":{"apiKey":"canary-3"}}\n'
    tap("--keep-secrets", "--record", str(out), given=given)
    assert b"canary-3" in out.read_bytes()


def test_violation_is_shown_live_and_written_with_its_proof(tmp_path):
    findings = tmp_path / "findings.jsonl"
    done = tap("--live", "--findings", str(findings), agent=python("print('Starting up!')"))
    assert done.stdout == b"Starting up!\n"
    assert b"dragoman tap: fail ACP-WIRE-001" in done.stderr
    [finding] = [each for each in map(json.loads, findings.read_bytes().splitlines()) if each["id"] == "ACP-WIRE-001"]
    assert finding["verdict"] == "fail"
    assert finding["fix"]
    assert [each["line"] for each in finding["evidence"]] == ["Starting up!"]
    assert stat.S_IMODE(findings.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            {"id": 0, "method": "initialize", "params": {"protocolVersion": 1, "capabilities": {}}},
            "fail ACP-INIT-109 initialize has capabilities, which version 1 calls clientCapabilities",
        ),
        (
            {"id": 1, "method": "session/cancel", "params": {"sessionId": "s"}},
            "fail ACP-WIRE-123 session/cancel came with an id; expected a notification; Send session/cancel and the",
        ),
    ],
)
def test_frequent_client_mistake_is_shown_with_its_fix(message, words):
    done = tap("--live", agent=scripted([]), given=json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    assert words in done.stderr.decode()


def test_summary_groups_repeated_violations_at_the_end():
    done = tap("--live", agent=python("for _ in range(50): print('noise')"))
    lines = done.stderr.decode().splitlines()
    assert "50 messages" in next(line for line in lines if "messages in" in line)
    assert sum("fail ACP-WIRE-001" in line for line in lines) == 3 + 1
    assert "(50 times)" in next(line for line in lines if "ACP-WIRE-001 (" in line)


@pytest.mark.parametrize(("program", "code"), [("exit(0)", 0), ("exit(7)", 7)])
def test_exit_code_is_the_agents(program, code):
    assert tap(agent=python(program)).returncode == code


def test_agent_killed_by_a_signal_gives_the_shells_code():
    assert tap(agent=python("import os; os.kill(os.getpid(), 11)")).returncode == 128 + 11


def test_missing_command_gives_the_shells_code():
    done = tap(agent=["/no/such/agent"])
    assert done.returncode == 127
    assert b"/no/such/agent" in done.stderr
    assert b"messages in" not in done.stderr


def test_missing_command_argument_is_a_usage_error():
    done = subprocess.run(TAP, capture_output=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 2
    assert b"-- AGENT COMMAND" in done.stderr


def test_recording_uses_the_next_name_and_never_overwrites(tmp_path):
    out, findings = tmp_path / "out.jsonl", tmp_path / "findings"
    for path in (out, tmp_path / "out-2.jsonl", findings):
        path.write_text("precious")
    done = tap("--record", str(out), "--findings", str(findings), agent=python("print('noise')"))
    assert done.returncode == 0
    assert f"{out} already exists; writing to {tmp_path / 'out-3.jsonl'}".encode() in done.stderr
    assert {path.name for path in tmp_path.iterdir() if path.read_text() == "precious"} == {
        "out.jsonl",
        "out-2.jsonl",
        "findings",
    }
    assert "noise" in [record.noise for record in read_trajectory(tmp_path / "out-3.jsonl")]
    assert b"ACP-WIRE-001" in (tmp_path / "findings-2").read_bytes()


def test_two_parallel_taps_never_share_a_file(tmp_path):
    command = [*TAP, "--record", str(tmp_path / "out.jsonl"), "--", *ECHO]
    both = [subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1) for _ in range(2)]
    for number, process in enumerate(both):
        process.communicate(b"noise %d\n" % number, timeout=DEADLINE_S)
    recorded = [[record.noise for record in read_trajectory(path)] for path in tmp_path.iterdir()]
    assert sorted(noise for each in recorded for noise in set(each) - {""}) == ["noise 0", "noise 1"]


@pytest.mark.parametrize("place", ["", "/dev/null"])
def test_output_that_is_not_a_file_is_refused(place, tmp_path):
    done = tap("--record", place or str(tmp_path))
    assert done.returncode == 2
    assert b"use a file that does not exist yet" in done.stderr


def test_stderr_passes_through():
    done = tap(agent=python("import sys; sys.stderr.write('hello from the agent\\n')"))
    assert b"hello from the agent\n" in done.stderr


def test_agent_inherits_environment_and_directory(tmp_path):
    done = subprocess.run(
        [*TAP, "--", *python("import os; print(os.environ['A_KEY'], os.getcwd())")],
        capture_output=True,
        cwd=tmp_path,
        env={**os.environ, "A_KEY": "value"},
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.stdout == f"value {tmp_path}\n".encode()


def test_client_sees_the_end_of_an_agent_with_a_surviving_child():
    process = subprocess.Popen([*TAP, "--", *python("print('last', flush=True)")], stdin=-1, stdout=-1, stderr=-1)
    with process:
        assert process.stdout.read() == b"last\n"
        assert process.wait(DEADLINE_S) == 0


def test_closed_stdin_still_receives_a_slow_answer():
    answer = "import sys,time; sys.stdin.read(); time.sleep(3); print('late')"  # longer than a stop would allow
    assert tap(agent=python(answer)).stdout == b"late\n"


STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(os.getpid(), other.pid, flush=True)
time.sleep(600)
"""


@contextlib.contextmanager
def stubborn(*options):
    command = [*TAP, *options, "--", *python(STUBBORN)]
    with subprocess.Popen(command, stdin=-1, stdout=-1, stderr=subprocess.DEVNULL) as process:
        yield process, [int(pid) for pid in process.stdout.readline().split()]


def test_no_process_survives_the_client():
    with stubborn() as (process, pids):
        process.stdin.close()
        process.stdout.close()
        process.wait(DEADLINE_S)
        for pid in pids:
            await_end(pid)


def test_killed_tap_leaves_no_process_and_a_complete_recording(tmp_path):
    path = tmp_path / "out.jsonl"
    with stubborn("--record", str(path)) as (process, pids):
        process.kill()
        process.wait(DEADLINE_S)
        for pid in pids:
            await_end(pid)
    said = f"{pids[0]} {pids[1]}"
    deadline = time.monotonic() + DEADLINE_S
    while said not in [record.noise for record in read_trajectory(path)]:  # the writer ends a moment after us
        assert time.monotonic() < deadline
        os.sched_yield()


def test_terminated_tap_ends_the_agent():
    program = "import os,time; print(os.getpid(), flush=True); time.sleep(600)"
    process = subprocess.Popen([*TAP, "--", *python(program)], stdin=-1, stdout=-1, stderr=-1)
    with process:
        pid = int(process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 128 + signal.SIGTERM
    await_end(pid)


LIMITED = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_full_disk_is_reported_once_and_everything_passes(tmp_path):
    given = b"x" * 1000 + b"\n"
    command = [*python(LIMITED), *TAP, "--record", str(tmp_path / "out.jsonl"), "--", *ECHO]
    done = subprocess.run(command, input=given * 1000, capture_output=True, timeout=DEADLINE_S, check=False)
    assert done.stdout == given * 1000
    assert done.returncode == 0
    assert done.stderr.count(b"cannot record to") == 1
    assert b"1,000 to the agent, 1,000 from it" in done.stderr


def test_unread_stderr_blocks_nothing():
    """The pipe of stderr is full, and the agent still receives and sends everything."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writing, b"x" * 4096)
    os.set_blocking(writing, True)
    given = b"noise\n" * 20_000
    done = subprocess.run(
        [*TAP, "--live", "--", *ECHO], input=given, stdout=-1, stderr=writing, timeout=DEADLINE_S, check=False
    )
    os.close(writing)
    os.close(reading)
    assert done.stdout == given
    assert done.returncode == 0


async def test_real_client_talks_to_a_real_agent_through_tap(tmp_path):
    path = tmp_path / "out.jsonl"
    agent = scripted([steps.Say("one"), steps.Say("two")])
    async with connect([*TAP, "--record", str(path), "--", *agent]) as remote:
        session = await remote.new_session(str(tmp_path))
        assert await session.ask("go") == "onetwo"
        await read(session.prompt("again"))
    methods = [record.method for record in read_trajectory(path) if record.kind == "sent"]
    assert methods == ["initialize", "session/new", "session/prompt", "session/prompt"]
