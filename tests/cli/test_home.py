"""A home that is not this user's alone: every command that uses it says so, once."""

import os
import subprocess
import sys

import pytest

from dragoman.cli import COMMANDS, WITHOUT_HOME, main
from dragoman.cli.check import own_home
from dragoman.cli.home_warning import warn_of_others
from dragoman.home import home
from dragoman.store import find_address

WARNING = "dragoman: warning: "
TIMEOUT_S = 60


@pytest.fixture
def given_home(tmp_path, monkeypatch):
    directory = tmp_path / "home"
    directory.mkdir(mode=0o700)
    monkeypatch.setenv("DRAGOMAN_HOME", str(directory))
    return directory


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777, 0o1777])
def test_a_home_that_others_can_write_is_warned_of(given_home, capsys, mode):
    given_home.chmod(mode)
    warn_of_others()
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"{WARNING}{given_home}, ")
    assert f"chmod go-w {given_home}" in said.err
    assert said.err.count("\n") == 1


def test_a_home_of_another_user_is_warned_of(given_home, capsys, monkeypatch):
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    warn_of_others()
    said = capsys.readouterr().err
    assert f"belongs to another user (uid {owner})" in said
    assert "set DRAGOMAN_HOME" in said


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o500])
def test_a_home_that_others_can_at_most_read_is_not(given_home, capsys, mode):
    given_home.chmod(mode)
    warn_of_others()
    assert capsys.readouterr().err == ""


def test_a_home_that_is_not_there_yet_is_not(given_home, capsys):
    given_home.rmdir()
    warn_of_others()
    assert capsys.readouterr().err == ""


def test_the_home_is_what_the_environment_says_or_a_directory_of_the_user(given_home, monkeypatch):
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


def test_the_agent_goes_on_after_the_warning(given_home):
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


def test_help_is_not_preceded_by_a_warning(given_home, capsys):
    given_home.chmod(0o777)
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    assert WARNING not in capsys.readouterr().err


def test_a_check_of_our_own_agent_has_its_settings_and_leaves_no_session(given_home, monkeypatch):
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
