"""An agent on another machine: this one, over a real sshd."""

import json
import os
import shlex
import sys

import pytest

from tests.attach.rig import rigged
from tests.bridge.viewers import AGENT
from tests.commands import dragoman
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("over_ssh")


def agent_there(log, before=""):
    """Return the command of an agent that is started by a shell which does something before."""
    agent = shlex.join([sys.executable, str(AGENT), json.dumps({"log": str(log)})])
    return ["sh", "-c", f"{before} {agent}"]


def is_alive(pid_file):
    try:
        os.kill(int(pid_file.read_text()), 0)
    except ProcessLookupError:
        return False
    return True


def test_an_agent_has_the_directory_and_the_variables_of_the_other_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("A_KEY", "a 'quoted' value")
    here, there, log = tmp_path / "here", tmp_path / "there", tmp_path / "log"
    here.mkdir()
    there.mkdir()
    command = agent_there(log, f'printf %s "$A_KEY $ANOTHER" > {there}/variable;')
    place = ["--in", "ssh:there", "--map", f"{here}={there}", "--env", "A_KEY", "--cwd", str(here)]
    ended = dragoman(
        "run", *place, '/steps [{"say": "from there"}]', "--", *command, env={**os.environ, "ANOTHER": "x"}
    )
    assert (ended.returncode, ended.stdout.strip()) == (0, "from there"), ended.stderr
    assert (there / "variable").read_text() == "a 'quoted' value "
    sent = [json.loads(line) for line in log.read_text().splitlines()]
    assert [message["params"]["cwd"] for message in sent if message["method"] == "session/new"] == [str(there)]


async def test_an_agent_there_is_gone_when_the_bridge_is_killed_also_one_that_hangs(tmp_path):
    pid_file = tmp_path / "pid"
    command = ["sh", "-c", f"trap '' TERM; echo $$ > {pid_file}; {agent_there(tmp_path / 'log')[2]}; sleep 1000"]
    async with rigged(tmp_path, "--in", "ssh:there", command=command) as rig, rig.editor() as editor:
        await editor.initialize(fs={"readTextFile": True}, terminal=True)
        session = await editor.new(rig.bridge.work)
        await editor.answered(editor.prompt(session, {"say": "over ssh"}))
        assert editor.said() == ["over ssh"]
        assert "readTextFile" not in json.dumps(rig.bridge.seen("initialize"))
        assert is_alive(pid_file)
        await rig.bridge.kill()
        await until(lambda: not is_alive(pid_file))


def test_the_loss_of_the_connection_is_told_in_words(tmp_path):
    command = agent_there(tmp_path / "log", "kill -9 $PPID; sleep 1000;")
    ended = dragoman("run", "--in", "ssh:there", "--cwd", str(tmp_path), "hello", "--", *command)
    assert ended.returncode == 1
    assert "there is no connection to there any more, or there never was" in ended.stderr


def test_a_host_that_is_not_there_and_a_missing_program_are_told_in_words(tmp_path):
    unknown = dragoman("run", "--in", "ssh:nowhere.invalid", "--cwd", str(tmp_path), "hello", "--", "agent")
    assert (unknown.returncode, "ssh has said why" in unknown.stderr) == (1, True), unknown.stderr
    missing = dragoman("run", "--in", "ssh:there", "--cwd", str(tmp_path), "hello", "--", "no-such-agent")
    assert (missing.returncode, "no-such-agent" in missing.stderr) == (1, True), missing.stderr
