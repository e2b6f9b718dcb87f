"""`--run-in sandbox`: any agent in the sandbox of this machine."""

import json
import os
import subprocess
import sys

import pytest

from tests.bridge.viewers import AGENT
from tests.commands import DRAGOMAN, start_dragoman
from tests.sandbox.machine import WITHOUT_BWRAP

pytestmark = pytest.mark.usefixtures("sandboxed")


def agent_after(script, log):
    """Return a command that runs a shell script and then an agent."""
    return ["sh", "-c", f'{script}; exec "$@"', "sh", sys.executable, str(AGENT), json.dumps({"log": str(log)})]


@pytest.fixture
def place(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    (tmp_path / "state").mkdir()
    monkeypatch.setenv("A_KEY", "a value")
    monkeypatch.setenv("OTHER_TOKEN", "another")
    return tmp_path


def run(place, script, *options, **settings):
    options = ["--run-in", "sandbox", "--cwd", str(place / "work"), *options]
    command = agent_after(script, place / "work/log")
    return start_dragoman("run", *options, '/steps [{"say": "from inside"}]', "--", *command, **settings)


def test_agent_changes_only_its_directory_and_listed_paths(place):
    script = 'echo "$A_KEY $OTHER_TOKEN" > variables; touch ../beside ../state/file .envrc'
    done = run(place, script, "--pass-env", "A_KEY", "--writable", str(place / "state"))
    assert (done.returncode, done.stdout.strip()) == (0, "from inside"), done.stderr
    assert (place / "work/variables").read_text() == "a value \n"
    assert [(place / name).exists() for name in ("state/file", "beside", "work/.envrc")] == [True, False, False]
    assert (place / "work/blocked-.envrc.new").exists()
    seen = [json.loads(line) for line in (place / "work/log").read_text().splitlines()]
    assert [each["params"]["cwd"] for each in seen if each["method"] == "session/new"] == [str(place / "work")]
    [capabilities] = [each["params"]["clientCapabilities"] for each in seen if each["method"] == "initialize"]
    assert capabilities.keys().isdisjoint({"fs", "terminal"})


def test_agent_that_cannot_be_sandboxed_is_not_started(place):
    words = [
        "run",
        "hi",
        "--run-in",
        "sandbox",
        "--cwd",
        str(place / "work"),
        "--",
        "touch",
        str(place / "work/started"),
    ]
    done = subprocess.run(
        [*WITHOUT_BWRAP, *DRAGOMAN, *words],
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "the agent was not started, because there is no sandbox: bwrap is not installed" in done.stderr
    assert not (place / "work/started").exists()


def test_missing_agent_is_reported(place):
    done = start_dragoman("run", "hi", "--run-in", "sandbox", "--cwd", str(place), "--", "no-such-agent")
    assert (done.returncode, "no-such-agent" in done.stderr) == (1, True), done.stderr
