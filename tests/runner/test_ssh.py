"""An agent over ssh, with a real sshd on this machine."""

import json
import os
import shlex
import sys

import pytest

from tests.attach.rig import rigged
from tests.bridge.viewers import AGENT
from tests.commands import start_dragoman
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("over_ssh")


def agent_there(log, before=""):
    """Return a shell command that does something and then starts the agent."""
    agent = shlex.join([sys.executable, str(AGENT), json.dumps({"log": str(log)})])
    return ["sh", "-c", f"{before} {agent}"]


def is_alive(pid_file):
    try:
        os.kill(int(pid_file.read_text()), 0)
    except ProcessLookupError:
        return False
    return True


def test_agent_gets_the_remote_directory_and_variables(tmp_path, monkeypatch):
    monkeypatch.setenv("A_KEY", "a 'quoted' value")
    here, there, log = tmp_path / "here", tmp_path / "there", tmp_path / "log"
    here.mkdir()
    there.mkdir()
    command = agent_there(log, f'printf %s "$A_KEY $ANOTHER" > {there}/variable;')
    place = ["--run-in", "ssh:there", "--map", f"{here}={there}", "--pass-env", "A_KEY", "--cwd", str(here)]
    ended = start_dragoman(
        "run", *place, '/steps [{"say": "from there"}]', "--", *command, env={**os.environ, "ANOTHER": "x"}
    )
    assert (ended.returncode, ended.stdout.strip()) == (0, "from there"), ended.stderr
    assert (there / "variable").read_text() == "a 'quoted' value "
    sent = [json.loads(line) for line in log.read_text().splitlines()]
    assert [message["params"]["cwd"] for message in sent if message["method"] == "session/new"] == [str(there)]


async def test_remote_agent_ends_when_the_bridge_is_killed(tmp_path):
    pid_file = tmp_path / "pid"
    command = ["sh", "-c", f"trap '' TERM; echo $$ > {pid_file}; {agent_there(tmp_path / 'log')[2]}; sleep 1000"]
    async with rigged(tmp_path, "--run-in", "ssh:there", command=command) as rig, rig.editor() as editor:
        await editor.initialize(fs={"readTextFile": True}, terminal=True)
        session = await editor.new(rig.bridge.work)
        await editor.answered(editor.prompt(session, {"say": "over ssh"}))
        assert editor.said() == ["over ssh"]
        assert "readTextFile" not in json.dumps(rig.bridge.seen("initialize"))
        assert is_alive(pid_file)
        await rig.bridge.kill()
        await until(lambda: not is_alive(pid_file))


def test_lost_ssh_connection_is_reported(tmp_path):
    command = agent_there(tmp_path / "log", "kill -9 $PPID; sleep 1000;")
    ended = start_dragoman("run", "--run-in", "ssh:there", "--cwd", str(tmp_path), "hello", "--", *command)
    assert ended.returncode == 1
    assert "the connection to there failed or was lost" in ended.stderr


def test_missing_host_and_program_are_reported(tmp_path):
    unknown = start_dragoman("run", "--run-in", "ssh:nowhere.invalid", "--cwd", str(tmp_path), "hello", "--", "agent")
    assert (unknown.returncode, "see the message from ssh" in unknown.stderr) == (1, True), unknown.stderr
    missing = start_dragoman("run", "--run-in", "ssh:there", "--cwd", str(tmp_path), "hello", "--", "no-such-agent")
    assert (missing.returncode, "no-such-agent" in missing.stderr) == (1, True), missing.stderr
