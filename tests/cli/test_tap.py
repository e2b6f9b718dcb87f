"""`dragoman tap` between a client and an agent, both real processes: bytes pass untouched, whatever happens."""

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


@pytest.mark.parametrize(
    "given",
    [
        b"",
        b"\n\n",
        b"no newline",
        b'{"jsonrpc":"2.0",\n"id":1}\r\n',
        bytes(range(256)) * 5000,
        b"\xff\xfe" + b"x" * 3_000_000 + b"\n",
    ],
    ids=["nothing", "blank", "half a line", "torn", "all bytes", "long"],
)
@pytest.mark.parametrize("mode", [(), ("--live",), ("--out",)], ids=["plain", "live", "out"])
def test_every_byte_passes_untouched_both_ways(given, mode, tmp_path):
    options = [*mode, str(tmp_path / "out.jsonl")] if mode == ("--out",) else mode
    done = tap(*options, given=given)
    assert done.stdout == given
    assert done.returncode == 0


def test_a_conversation_is_recorded_and_read_back_as_the_clients_own_recording(tmp_path):
    lines = [b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}', b"garbage"]
    path = tmp_path / "out.jsonl"
    tap("--out", str(path), given=b"\n".join(lines) + b"\n{half")
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


def test_a_message_that_is_an_object_but_breaks_the_envelope_is_kept_whole(tmp_path):
    path = tmp_path / "out.jsonl"
    tap("--out", str(path), given=b'{"id":1,"method":"initialize"}\n')
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
    arguments = ["--live", "--out", str(out), "--findings", str(findings)]
    done = tap(*arguments, given=given, env={"SOME_API_KEY": "canary-environment-5"})
    assert done.stdout == given
    written = out.read_bytes() + findings.read_bytes() + done.stderr
    assert b"canary" not in written
    assert b"[hidden]" in out.read_bytes()
    assert findings.read_bytes()


def test_secrets_are_kept_when_that_is_asked_for(tmp_path):
    out = tmp_path / "out.jsonl"
    given = b'{"jsonrpc":"2.0","method":"_x","params":{"apiKey":"canary-3"}}\n'
    tap("--keep-secrets", "--out", str(out), given=given)
    assert b"canary-3" in out.read_bytes()


def test_what_breaks_a_rule_is_shown_live_and_written_with_the_proof(tmp_path):
    findings = tmp_path / "findings.jsonl"
    done = tap("--live", "--findings", str(findings), agent=python("print('Starting up!')"))
    assert done.stdout == b"Starting up!\n"
    assert b"dragoman tap: fail ACP-WIRE-001" in done.stderr
    [finding] = [each for each in map(json.loads, findings.read_bytes().splitlines()) if each["id"] == "ACP-WIRE-001"]
    assert finding["verdict"] == "fail"
    assert finding["fix"]
    assert [each["line"] for each in finding["evidence"]] == ["Starting up!"]
    assert stat.S_IMODE(findings.stat().st_mode) == 0o600


def test_a_summary_comes_at_the_end_and_a_fault_that_repeats_is_one_line_of_it():
    done = tap("--live", agent=python("for _ in range(50): print('noise')"))
    lines = done.stderr.decode().splitlines()
    assert "50 messages" in next(line for line in lines if "messages in" in line)
    assert sum("fail ACP-WIRE-001" in line for line in lines) == 3 + 1
    assert "(50 times)" in next(line for line in lines if "ACP-WIRE-001 (" in line)


@pytest.mark.parametrize(("program", "code"), [("exit(0)", 0), ("exit(7)", 7)])
def test_the_exit_code_is_the_agents(program, code):
    assert tap(agent=python(program)).returncode == code


def test_an_agent_that_a_signal_ended_ends_us_as_a_shell_would():
    assert tap(agent=python("import os; os.kill(os.getpid(), 11)")).returncode == 128 + 11


def test_a_command_that_is_not_there_is_told_with_the_code_of_a_shell():
    done = tap(agent=["/no/such/agent"])
    assert done.returncode == 127
    assert b"/no/such/agent" in done.stderr
    assert b"messages in" not in done.stderr


def test_no_command_at_all_is_a_wrong_use():
    done = subprocess.run(TAP, capture_output=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 2
    assert b"-- COMMAND OF THE AGENT" in done.stderr


def test_a_recording_takes_the_next_name_and_never_overwrites_a_file(tmp_path):
    out, findings = tmp_path / "out.jsonl", tmp_path / "findings"
    for path in (out, tmp_path / "out-2.jsonl", findings):
        path.write_text("precious")
    done = tap("--out", str(out), "--findings", str(findings), agent=python("print('noise')"))
    assert done.returncode == 0
    assert f"{out} is there already; writing to {tmp_path / 'out-3.jsonl'}".encode() in done.stderr
    assert {path.name for path in tmp_path.iterdir() if path.read_text() == "precious"} == {
        "out.jsonl",
        "out-2.jsonl",
        "findings",
    }
    assert "noise" in [record.noise for record in read_trajectory(tmp_path / "out-3.jsonl")]
    assert b"ACP-WIRE-001" in (tmp_path / "findings-2").read_bytes()


def test_two_taps_at_once_never_share_a_file(tmp_path):
    command = [*TAP, "--out", str(tmp_path / "out.jsonl"), "--", *ECHO]
    both = [subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1) for _ in range(2)]
    for number, process in enumerate(both):
        process.communicate(b"noise %d\n" % number, timeout=DEADLINE_S)
    recorded = [[record.noise for record in read_trajectory(path)] for path in tmp_path.iterdir()]
    assert sorted(noise for each in recorded for noise in set(each) - {""}) == ["noise 0", "noise 1"]


@pytest.mark.parametrize("place", ["", "/dev/null"])
def test_what_is_no_file_is_refused(place, tmp_path):
    done = tap("--out", place or str(tmp_path))
    assert done.returncode == 2
    assert b"name a file that is not there yet" in done.stderr


def test_stderr_passes_through():
    done = tap(agent=python("import sys; sys.stderr.write('hello from the agent\\n')"))
    assert b"hello from the agent\n" in done.stderr


def test_the_agent_has_our_environment_and_our_directory(tmp_path):
    done = subprocess.run(
        [*TAP, "--", *python("import os; print(os.environ['A_KEY'], os.getcwd())")],
        capture_output=True,
        cwd=tmp_path,
        env={**os.environ, "A_KEY": "value"},
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.stdout == f"value {tmp_path}\n".encode()


def test_the_client_sees_the_end_when_the_agent_ends_though_it_goes_on_writing():
    process = subprocess.Popen([*TAP, "--", *python("print('last', flush=True)")], stdin=-1, stdout=-1, stderr=-1)
    with process:
        assert process.stdout.read() == b"last\n"
        assert process.wait(DEADLINE_S) == 0


def test_a_client_that_closes_our_stdin_and_reads_on_gets_all_of_a_slow_answer():
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


def test_when_the_client_dies_nobody_is_left_behind():
    with stubborn() as (process, pids):
        process.stdin.close()
        process.stdout.close()
        process.wait(DEADLINE_S)
        for pid in pids:
            await_end(pid)


def test_when_we_are_killed_nobody_is_left_behind_and_the_recording_is_whole(tmp_path):
    path = tmp_path / "out.jsonl"
    with stubborn("--out", str(path)) as (process, pids):
        process.kill()
        process.wait(DEADLINE_S)
        for pid in pids:
            await_end(pid)
    said = f"{pids[0]} {pids[1]}"
    deadline = time.monotonic() + DEADLINE_S
    while said not in [record.noise for record in read_trajectory(path)]:  # the scribe ends a moment after us
        assert time.monotonic() < deadline
        os.sched_yield()


def test_when_we_are_told_to_end_the_agent_is_too():
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


def test_a_full_disk_is_told_once_and_everything_passes(tmp_path):
    given = b"x" * 1000 + b"\n"
    command = [*python(LIMITED), *TAP, "--out", str(tmp_path / "out.jsonl"), "--", *ECHO]
    done = subprocess.run(command, input=given * 1000, capture_output=True, timeout=DEADLINE_S, check=False)
    assert done.stdout == given * 1000
    assert done.returncode == 0
    assert done.stderr.count(b"cannot record to") == 1
    assert b"1,000 to the agent, 1,000 from it" in done.stderr


def test_nobody_reading_stderr_holds_nothing_up():
    """The pipe of stderr is full, and the agent still gets and gives everything."""
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


async def test_a_real_client_talks_to_a_real_agent_through_it(tmp_path):
    path = tmp_path / "out.jsonl"
    agent = scripted([steps.Say("one"), steps.Say("two")])
    async with connect([*TAP, "--out", str(path), "--", *agent]) as remote:
        session = await remote.new_session(str(tmp_path))
        assert await session.ask("go") == "onetwo"
        await read(session.prompt("again"))
    methods = [record.method for record in read_trajectory(path) if record.kind == "sent"]
    assert methods == ["initialize", "session/new", "session/prompt", "session/prompt"]
