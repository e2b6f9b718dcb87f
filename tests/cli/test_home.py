"""A home that other users can access causes one warning per command."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.cli import COMMANDS, WITHOUT_HOME, main, warn_of_shared_home
from dragoman.cli.check import own_home
from dragoman.home import home
from dragoman.store import find_address
from tests.commands import dragoman

WARNING = "dragoman: warning: "
TIMEOUT_S = 60

NOTES_AGENT = Path(__file__).parents[2] / "examples/notes_agent.py"


@pytest.fixture
def given_home(tmp_path, monkeypatch):
    directory = tmp_path / "home"
    directory.mkdir(mode=0o700)
    monkeypatch.setenv("DRAGOMAN_HOME", str(directory))
    return directory


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777, 0o1777])
def test_home_writable_by_others_causes_a_warning(given_home, capsys, mode):
    given_home.chmod(mode)
    warn_of_shared_home()
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"{WARNING}{given_home}, ")
    assert f"chmod go-w {given_home}" in said.err
    assert said.err.count("\n") == 1


def test_home_of_another_user_causes_a_warning(given_home, capsys, monkeypatch):
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    warn_of_shared_home()
    said = capsys.readouterr().err
    assert f"belongs to another user (uid {owner})" in said
    assert "set DRAGOMAN_HOME" in said


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o500])
def test_home_only_readable_by_others_causes_no_warning(given_home, capsys, mode):
    given_home.chmod(mode)
    warn_of_shared_home()
    assert capsys.readouterr().err == ""


def test_missing_home_causes_no_warning(given_home, capsys):
    given_home.rmdir()
    warn_of_shared_home()
    assert capsys.readouterr().err == ""


def test_home_comes_from_the_environment_or_the_users_directory(given_home, monkeypatch):
    assert home() == given_home
    monkeypatch.delenv("DRAGOMAN_HOME")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert str(home()) == "/home/somebody/.dragoman"


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_that_uses_the_home_warns_once(given_home, command):
    given_home.chmod(0o777)
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", command, "--no-such-option"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        cwd=given_home,
    )
    assert done.stderr.count(WARNING) == (command not in WITHOUT_HOME)
    assert WARNING not in done.stdout


def test_agent_continues_after_the_warning(given_home):
    given_home.chmod(0o777)
    hello = '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n'
    new = '{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}\n'
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", "agent"],
        input=hello + new,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    )
    assert done.stderr.count(WARNING) == 1
    assert '"sessionId"' in done.stdout


def test_help_prints_no_warning(given_home, capsys):
    given_home.chmod(0o777)
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    assert WARNING not in capsys.readouterr().err


def test_check_of_our_agent_uses_its_settings_and_leaves_no_session(given_home, monkeypatch):
    monkeypatch.setenv("DRAGOMAN_STORE", "postgresql://db/sessions")
    (given_home / "preferences.json").write_text("{}")
    (given_home / "projects").mkdir()
    with own_home():
        there = home()
        assert find_address(None) is None
        assert [path.name for path in there.iterdir()] == ["preferences.json"]
        (there / "projects").mkdir()
    assert (home(), find_address(None)) == (given_home, "postgresql://db/sessions")
    assert not there.exists()
    assert sorted(path.name for path in given_home.iterdir()) == ["preferences.json", "projects"]


@pytest.fixture(params=["~/.dragoman", pytest.param("DRAGOMAN_HOME", marks=pytest.mark.extended)])
def environment(request, tmp_path):
    """Return the environment of a user whose home is .dragoman in the test's directory."""
    given = {**os.environ, "HOME": str(tmp_path)}
    if request.param == "DRAGOMAN_HOME":
        return {**given, "DRAGOMAN_HOME": str(tmp_path / ".dragoman")}
    del given["DRAGOMAN_HOME"]
    return given


@pytest.mark.extended
def test_check_leaves_no_kit_agent_session_in_the_home(environment, tmp_path):
    agent = [sys.executable, str(NOTES_AGENT)]
    command = ["check", "agent", "--no-prompt", "--format", "json", "--", *agent]
    done = dragoman(*command, env=environment, cwd=tmp_path)
    assert json.loads(done.stdout)["summary"]["pass"]
    assert not (tmp_path / ".dragoman").exists()


PLUGIN_TEST = """
def test_it(acp_agent):
    assert acp_agent.check(prompt=False).summary.passed
"""


@pytest.mark.extended
@pytest.mark.parametrize("environment", ["DRAGOMAN_HOME"], indirect=True)
def test_pytest_fixture_leaves_no_session_in_the_home(environment, tmp_path):
    (tmp_path / "test_it.py").write_text(PLUGIN_TEST)
    command = [sys.executable, "-m", "pytest", "-q", "--acp-agent", f"{sys.executable} {NOTES_AGENT}", "test_it.py"]
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout
    assert not (tmp_path / ".dragoman").exists()
