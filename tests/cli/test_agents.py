"""Agents by name: the two files, the list, and how `-- NAME` finds one."""

import json
import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from dragoman import __version__
from dragoman.catalog.known import known_agents
from dragoman.cli import main as run_command
from dragoman.testing import dump_turns, steps
from tests.commands import dragoman, scripted


def main(arguments):
    """Run the command in this process."""
    return run_command(["agents", *arguments])


CANARY = "canary-4711"


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Put only these programs on PATH."""

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
    """Return a scripted agent as an entry of an agents file."""
    command, *args = scripted(*turns)
    return {"command": command, "args": args}


def test_without_files_the_output_says_where_to_put_them(home, capsys):
    assert main([]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert str(home / "agents.json") in printed.err
    assert str(home / "registry.json") in printed.err


def test_own_agent_is_listed_without_its_secrets(home, capsys):
    own(home, {"mine": {"command": "mine", "args": ["--acp"], "env": {"KEY": CANARY}, "description": "My own."}})
    assert main([]) == 0
    text = capsys.readouterr().out
    assert "mine (agents.json): My own.\n  mine --acp\n" in text
    assert main(["--format", "json"]) == 0
    as_json = capsys.readouterr().out
    [agent] = json.loads(as_json)
    assert (agent["command"], agent["env"]) == (["mine", "--acp"], ["KEY"])
    assert CANARY not in text + as_json


def test_zed_agents_are_used_unchanged(home):
    servers = {"theirs": {"type": "custom", "command": "theirs", "args": []}, "builtin": {"default_mode": "plan"}}
    (home / "agents.json").write_text(json.dumps({"agent_servers": servers}))
    assert list(known_agents(home)) == ["theirs"]


def test_registry_agent_does_not_start_before_it_is_installed(home, programs, capsys):
    registry(home, npx={"package": "a"}, binary=everywhere(archive="https://a.example/a.zip", cmd="./some"))
    programs("npx", "some")
    assert main([]) == 0
    assert "install it: dragoman agents install some-agent" in capsys.readouterr().out
    assert known_agents(home)["some-agent"].command == ()


def test_name_after_two_dashes_is_an_agent(home):
    own(home, {"mine": entry([steps.Say("It is me.")])})
    done = dragoman("run", "hi", "--", "mine")
    assert (done.stdout, done.returncode) == ("It is me.\n", 0)


def test_environment_of_an_agent_reaches_it(home):
    code = "import os, runpy, sys; assert os.environ['MARK'] == 'set'; sys.argv[1:] = [os.environ['TURNS']]; "
    code += "runpy.run_module('dragoman.testing', run_name='__main__')"
    env = {"MARK": "set", "TURNS": dump_turns([[steps.Say("marked")]])}
    own(home, {"mine": {"command": sys.executable, "args": ["-c", code], "env": env}})
    assert dragoman("run", "hi", "--", "mine").stdout == "marked\n"


def test_command_wins_over_a_name_and_so_do_several_words(home):
    own(home, {"true": entry([steps.Say("named")]), "mine": entry([steps.Say("named")])})
    assert "named" not in dragoman("run", "hi", "--", "true").stdout
    done = dragoman("run", "hi", "--", "mine", "more")
    assert "named" not in done.stdout
    assert done.returncode != 0


def test_quoted_command_line_is_split(home):
    command = scripted([steps.Say("quoted")])
    assert dragoman("run", "hi", "--", shlex.join(command)).stdout == "quoted\n"
    done = dragoman("run", "hi", "--", "no-such-agent 'a")
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot start no-such-agent: the command cannot be split into words" in done.stderr


def test_own_agent_wins_over_the_registry(home):
    registry(home, npx={"package": "a"})
    own(home, {"some-agent": {"command": "mine"}})
    assert known_agents(home)["some-agent"].command == ("mine",)


@pytest.mark.parametrize(
    ("text", "words"),
    [("{", "truncated"), ('{"agents": {"a": {}}}', "missing required field `command`"), ("[]", "Expected `object`")],
)
def test_invalid_file_is_reported_by_name(text, words, home, capsys):
    (home / "agents.json").write_text(text)
    assert main([]) == 1
    printed = capsys.readouterr().err
    assert words in printed
    assert str(home / "agents.json") in printed
    done = dragoman("run", "hi", "--", "no-such-agent")
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_unstartable_agent_ends_the_command(home):
    registry(home, binary={"amiga-m68k": {"archive": "x", "cmd": "y"}})
    done = dragoman("run", "hi", "--", "some-agent")
    assert done.returncode == 2
    assert "the agent some-agent cannot be started: it is in the registry but not installed" in done.stderr


def test_agent_on_path_comes_after_own_and_before_registry(tmp_path, monkeypatch, programs):
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


def test_registry_copy_is_replaced_completely_or_not_at_all(tmp_path, monkeypatch, capsys):
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


@pytest.mark.extended
def test_agent_is_checked_by_name(tmp_path):
    own(tmp_path, {"mine": {"command": sys.executable, "args": scripted([steps.Say("hello")])[1:]}})
    environment = {**os.environ, "DRAGOMAN_HOME": str(tmp_path)}
    assert "there is no agent 'mime'; did you mean mine?" in dragoman("agents", "check", "mime", env=environment).stderr
    assert "mine" in dragoman("agents", "check", "mine", env=environment).stdout


def test_our_registry_entry_follows_the_registry_rules():
    directory = Path(__file__).parent.parent.parent / "deploy" / "registry"
    entry = json.loads((directory / "agent.json").read_text())
    assert {"id", "name", "version", "description", "distribution"} <= entry.keys()
    assert re.fullmatch("[a-z][a-z0-9-]*", entry["id"])
    assert entry["version"] == __version__
    assert entry["distribution"] == {"uvx": {"package": f"dragoman=={__version__}", "args": ["agent"]}}
    icon = (directory / "icon.svg").read_text()
    assert 'width="16" height="16" viewBox="0 0 16 16"' in icon
    assert set(re.findall(r'(?:fill|stroke)="([^"]*)"', icon)) == {"currentColor"}
