"""Programs started like CI systems and cron do, with /dev/null, a file or nothing as stdin."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.check.adversary import ClientNotStartedError, ClientOptions, check_client
from dragoman.check.adversary.run import agent_command

TIMEOUT_S = 20
HELLO = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n'
DRAGOMAN = (sys.executable, "-m", "dragoman")


def run(command, streams: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    shell = ["sh", "-c", f'exec "$@" {streams}', "sh", *command]
    return subprocess.run(shell, cwd=cwd, stdin=-1, capture_output=True, timeout=TIMEOUT_S, check=False)


@pytest.mark.parametrize("streams", ["</dev/null", "<&-", "<empty", "<&- >&- 2>&-"])
def test_adversary_without_a_peer_exits(streams, tmp_path: Path):
    (tmp_path / "empty").touch()
    done = run(agent_command("surprises", tmp_path), streams, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    [record] = tmp_path.glob("*.ndjson")
    assert [json.loads(line)[-1] for line in record.read_text().splitlines()] == ["started", "stdin closed"]


def test_adversary_answers_requests_from_a_file(tmp_path: Path):
    (tmp_path / "hello").write_bytes(HELLO)
    done = run(agent_command("surprises", tmp_path), "<hello", tmp_path)
    assert done.returncode == 0
    assert json.loads(done.stdout)["result"]["protocolVersion"] == 1


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("tap", "--", "sh", "-c", "cat; exit 7"), 7),
        (("check", "client", "--", "true"), 2),
        (("check", "agent", "--", "false"), 1),
    ],
)
def test_command_without_stdin_exits_normally(command, code, tmp_path: Path):
    done = run((*DRAGOMAN, *command), "<&-", tmp_path)
    assert done.returncode == code


async def test_silent_client_does_not_pass():
    options = ClientOptions(command=("sh", "-c", "{agent} </dev/null"), parts=frozenset({"surprises"}))
    with pytest.raises(ClientNotStartedError, match="sent nothing to the agent"):
        await check_client(options)
