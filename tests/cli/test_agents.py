"""Agents by name: what the two files say, how they are listed, and how `-- NAME` finds one."""

import json
import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from dragoman import __version__
from dragoman.cli import main as run_command
from dragoman.cli.agents.known import known_agents
from dragoman.testing import dump_turns, steps
from tests.commands import dragoman, scripted


def main(arguments):
    """Run the command in this process."""
    return run_command(["agents", *arguments])


CANARY = "canary-4711"


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Put only these on the PATH."""

    def put(*names):
        for name in names:
            (tmp_path / name).write_text("#!/bin/sh\n")
            (tmp_path / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        return tmp_path

    return put


def own(home, agents):
    (home / "agents.json").write_text(json.dumps({"agents": agents}))


def registry(home, **distribution):
    agent = {"id": "some-agent", "name": "Some", "version": "1.2.0", "description": "It does.", "icon": "i.svg"}
    content = {"version": "1.0.0", "agents": [{**agent, "distribution": distribution}]}
    (home / "registry.json").write_text(json.dumps(content))


def everywhere(**entry):
    systems, machines = ("darwin", "linux", "windows"), ("aarch64", "x86_64")
    return {f"{system}-{machine}": entry for system in systems for machine in machines}


def entry(*turns):
    """Return a scripted agent as an entry of a file of agents."""
    command, *args = scripted(*turns)
    return {"command": command, "args": args}


def test_without_files_it_is_said_where_they_go(home, capsys):
    assert main([]) == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert str(home / "agents.json") in told.err
    assert str(home / "registry.json") in told.err


def test_an_agent_of_the_own_file_is_listed_without_its_secrets(home, capsys):
    own(home, {"mine": {"command": "mine", "args": ["--acp"], "env": {"KEY": CANARY}, "description": "My own."}})
    assert main([]) == 0
    text = capsys.readouterr().out
    assert "mine (agents.json): My own.\n  mine --acp\n" in text
    assert main(["--json"]) == 0
    as_json = capsys.readouterr().out
    [agent] = json.loads(as_json)
    assert (agent["command"], agent["env"]) == (["mine", "--acp"], ["KEY"])
    assert CANARY not in text + as_json


def test_the_agents_of_zed_are_taken_as_they_are(home):
    servers = {"theirs": {"type": "custom", "command": "theirs", "args": []}, "builtin": {"default_mode": "plan"}}
    (home / "agents.json").write_text(json.dumps({"agent_servers": servers}))
    assert list(known_agents(home)) == ["theirs"]


@pytest.mark.parametrize(
    ("installed", "command"),
    [(["npx", "uvx"], ["npx", "-y", "a@1", "--acp"]), (["uvx"], ["uvx", "a==1"])],
)
def test_an_agent_of_the_registry_is_started_by_what_is_installed(installed, command, home, programs):
    registry(home, npx={"package": "a@1", "args": ["--acp"]}, uvx={"package": "a==1"})
    programs(*installed)
    assert known_agents(home)["some-agent"].require_command() == command


def test_a_program_that_is_installed_counts_before_a_package(home, programs):
    registry(
        home, binary=everywhere(archive="https://a.example/a.zip", cmd="./some", args=["acp"]), npx={"package": "a"}
    )
    folder = programs("some", "npx")
    assert known_agents(home)["some-agent"].require_command() == [str(folder / "some"), "acp"]


@pytest.mark.parametrize(
    ("distribution", "words"),
    [
        ({"npx": {"package": "a"}}, "it needs npx, which is not installed"),
        ({"binary": everywhere(archive="https://a.example/a.zip", cmd="./some")}, "https://a.example/a.zip"),
        ({"binary": {"amiga-m68k": {"archive": "x", "cmd": "y"}}}, "the registry has nothing for"),
    ],
)
def test_an_agent_that_cannot_be_started_says_why(distribution, words, home, programs, capsys):
    registry(home, **distribution)
    programs()
    assert main([]) == 0
    assert words in capsys.readouterr().out


def test_a_name_after_two_dashes_is_an_agent(home):
    own(home, {"mine": entry([steps.Say("It is me.")])})
    done = dragoman("run", "hi", "--", "mine")
    assert (done.stdout, done.returncode) == ("It is me.\n", 0)


def test_the_environment_of_an_agent_reaches_it(home):
    code = "import os, runpy, sys; assert os.environ['MARK'] == 'set'; sys.argv[1:] = [os.environ['TURNS']]; "
    code += "runpy.run_module('dragoman.testing', run_name='__main__')"
    env = {"MARK": "set", "TURNS": dump_turns([[steps.Say("marked")]])}
    own(home, {"mine": {"command": sys.executable, "args": ["-c", code], "env": env}})
    assert dragoman("run", "hi", "--", "mine").stdout == "marked\n"


def test_a_command_counts_before_a_name_and_so_do_several_words(home):
    own(home, {"true": entry([steps.Say("named")]), "mine": entry([steps.Say("named")])})
    assert "named" not in dragoman("run", "hi", "--", "true").stdout
    done = dragoman("run", "hi", "--", "mine", "more")
    assert "named" not in done.stdout
    assert done.returncode != 0


def test_a_whole_command_in_quotes_is_split_into_its_words(home):
    command = scripted([steps.Say("quoted")])
    assert dragoman("run", "hi", "--", shlex.join(command)).stdout == "quoted\n"
    done = dragoman("run", "hi", "--", "no-such-agent 'a")
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot start no-such-agent: the command cannot be split into words" in done.stderr


def test_an_own_agent_counts_before_one_of_the_registry(home):
    registry(home, npx={"package": "a"})
    own(home, {"some-agent": {"command": "mine"}})
    assert known_agents(home)["some-agent"].command == ("mine",)


@pytest.mark.parametrize(
    ("text", "words"),
    [("{", "truncated"), ('{"agents": {"a": {}}}', "missing required field `command`"), ("[]", "Expected `object`")],
)
def test_a_file_that_is_wrong_is_told_with_its_name(text, words, home, capsys):
    (home / "agents.json").write_text(text)
    assert main([]) == 1
    told = capsys.readouterr().err
    assert words in told
    assert str(home / "agents.json") in told
    done = dragoman("run", "hi", "--", "no-such-agent")
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_an_agent_that_cannot_be_started_ends_the_command(home):
    registry(home, binary={"amiga-m68k": {"archive": "x", "cmd": "y"}})
    done = dragoman("run", "hi", "--", "some-agent")
    assert done.returncode == 2
    assert "the agent some-agent cannot be started: the registry has nothing for" in done.stderr


def test_an_agent_on_the_path_is_known_before_the_registry_and_after_ones_own(tmp_path, monkeypatch, programs):
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path))
    place = programs("gemini", "opencode", "claude")
    entry = {"id": "gemini", "version": "1.0.0", "distribution": {"npx": {"package": "gemini@1.0.0"}}}
    (tmp_path / "registry.json").write_text(json.dumps({"version": "1.0.0", "agents": [entry]}))
    own(tmp_path, {"opencode": {"command": "mine"}})
    found = known_agents(tmp_path)
    assert found["gemini"].command == (str(place / "gemini"), "--experimental-acp")
    assert found["opencode"].command == ("mine",)
    assert (found["claude-acp"].source, found["claude-acp"].command) == ("PATH", ())
    assert "npm install" in found["claude-acp"].problem


def test_a_copy_of_the_registry_is_taken_whole_or_not_at_all(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    entry = {"id": "one", "version": "1.0.0", "distribution": {"uvx": {"package": "one==1.0.0"}}}
    good.write_text(json.dumps({"version": "1.0.0", "agents": [entry]}))
    bad.write_text('{"agents": {}}')
    assert main(["update", str(good)]) == 0
    assert "new: one" in capsys.readouterr().out
    assert main(["update", str(bad)]) == 1
    assert "bad.json" in capsys.readouterr().err
    assert (tmp_path / "home" / "registry.json").read_bytes() == good.read_bytes()
    for wrong in ("http://registry.example/registry.json", str(tmp_path / "none")):
        with pytest.raises(SystemExit):
            main(["update", wrong])


def test_an_agent_is_checked_by_its_name(tmp_path):
    own(tmp_path, {"mine": {"command": sys.executable, "args": scripted([steps.Say("hello")])[1:]}})
    environment = {**os.environ, "DRAGOMAN_HOME": str(tmp_path)}
    assert "there is no agent 'mime'; did you mean mine?" in dragoman("agents", "check", "mime", env=environment).stderr
    assert "mine" in dragoman("agents", "check", "mine", env=environment).stdout


def test_our_entry_in_the_registry_keeps_its_rules():
    directory = Path(__file__).parent.parent.parent / "deploy" / "registry"
    entry = json.loads((directory / "agent.json").read_text())
    assert {"id", "name", "version", "description", "distribution"} <= entry.keys()
    assert re.fullmatch("[a-z][a-z0-9-]*", entry["id"])
    assert entry["version"] == __version__
    assert entry["distribution"] == {"uvx": {"package": f"dragoman=={__version__}", "args": ["agent"]}}
    icon = (directory / "icon.svg").read_text()
    assert 'width="16" height="16" viewBox="0 0 16 16"' in icon
    assert set(re.findall(r'(?:fill|stroke)="([^"]*)"', icon)) == {"currentColor"}
