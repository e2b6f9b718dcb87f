"""The exit codes of all commands: 2 for a wrong command line or a missing thing (docs/ci.md)."""

import json

import pytest

from dragoman.cli import COMMANDS
from dragoman.testing import steps
from tests.commands import dragoman, scripted

NOWHERE = "http://127.0.0.1:1/acp"
SCRIPTED = ["--", *scripted([steps.Say("hello")])]

WRONG_OPTIONS = [[name, "--nonsense"] for name in COMMANDS]

OWN_AGENT = [["agent"], ["run", "hi"], ["chat"], ["serve"]]
WRONG_MODELS = [
    [*command, "--model", model] for command in OWN_AGENT for model in ("zzz", "zzz:y", "script:/missing.yaml")
]
MISSING_AGENT_FILES = [
    [*command, "--agent", "/missing.yaml"] for command in [*OWN_AGENT, ["mcp"], ["login"], ["logout"]]
]

WRONG_NAMES = [
    ["zzz"],
    ["run"],
    ["run", "hi", "--"],
    ["run", "hi", "--file", "/missing"],
    ["run", "hi", "--mcp", "/missing.json"],
    ["run", "hi", "--policy", "zzz"],
    ["run", "hi", "--format", "zzz"],
    ["run", "hi", "--session", "zzz"],
    ["run", "hi", "--continue"],
    ["run", "hi", "--url", "zzz"],
    ["run", "hi", "--url", NOWHERE, "--token-file", "/missing"],
    ["run", "hi", "--session", "zzz", *SCRIPTED],
    ["run", "hi", "--model", "zzz", *SCRIPTED],
    ["chat", "--"],
    ["chat", "--cwd", "/missing"],
    ["chat", "--mcp", "/missing.json"],
    ["chat", "--session", "zzz"],
    ["chat", "--continue"],
    ["chat", "--url", "zzz"],
    ["chat", "--session", "zzz", *SCRIPTED],
    ["chat", "--model", "zzz", *SCRIPTED],
    ["sessions", "zzz"],
    ["sessions", "show"],
    ["sessions", "show", "zzz"],
    ["sessions", "load", "zzz"],
    ["sessions", "fork", "zzz"],
    ["sessions", "export", "zzz"],
    ["sessions", "delete", "zzz"],
    ["sessions", "show", "zzz", *SCRIPTED],
    ["serve", "--agents-file", "/missing.json"],
    ["serve", "--port", "99999"],
    ["serve", "--host", "zzz.invalid"],
    ["serve", "--cwd", "/missing"],
    ["serve", "--", "zzz-agent"],
    ["check", "zzz"],
    ["check", "agent", "--", "zzz-agent"],
    ["check", "agent", "--baseline", "/missing", "--", "true"],
    ["check", "client"],
    ["check", "trace", "/missing"],
    ["tap"],
    ["tap", "--record", "/missing/record", "--", "true"],
    ["mcp", "zzz"],
    ["mcp", "--mcp", "/missing.json"],
    ["mcp", "--cwd", "/missing"],
    ["mcp", "add", "one"],
    ["mcp", "add", "one", "ftp://a"],
    ["mcp", "remove", "zzz"],
    ["editor", "zzz"],
    ["login", "zzz"],
    ["login", "--model", "zzz"],
    ["logout", "zzz"],
    ["completion", "zzz"],
]

NO_AGENT = [
    ["run", "hi", "--", "zzz-agent"],
    ["run", "hi", "--", "true"],
    ["run", "hi", "--url", NOWHERE],
    ["chat", "--", "zzz-agent"],
    ["chat", "--", "true"],
    ["chat", "--url", NOWHERE],
    ["sessions", "list", "--", "zzz-agent"],
    ["sessions", "list", "--url", NOWHERE],
]


def words(arguments):
    return " ".join(arguments)[:60]


@pytest.mark.parametrize("arguments", [*WRONG_OPTIONS, *WRONG_MODELS, *MISSING_AGENT_FILES, *WRONG_NAMES], ids=words)
def test_wrong_command_line_or_missing_thing_is_2(arguments, tmp_path):
    done = dragoman(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "dragoman" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", NO_AGENT, ids=words)
def test_unusable_agent_is_1(arguments, tmp_path):
    done = dragoman(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"dragoman {arguments[0]}: ")


def test_tap_of_a_missing_command_has_the_shells_code(tmp_path):
    assert dragoman("tap", "--", "zzz-agent", cwd=tmp_path).returncode == 127


@pytest.mark.parametrize("command", [["run", "hi"], ["chat"]], ids=words)
def test_unknown_model_in_the_environment_is_2(command, tmp_path, monkeypatch):
    monkeypatch.setenv("DRAGOMAN_MODEL", "zzz:y")
    done = dragoman(*command, cwd=tmp_path)
    assert (done.returncode, done.stderr.count("zzz:y")) == (2, 1)


@pytest.mark.parametrize(
    "arguments", [["--model", "zzz"], ["--agent", "/missing.yaml"], ["--session", "zzz"]], ids=words
)
def test_json_has_the_exit_code(arguments, tmp_path):
    done = dragoman("run", "hi", "--format", "json", *arguments, cwd=tmp_path)
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["exit_code"], answer["text"]) == (2, 2, "")
    assert done.stderr == f"dragoman run: {answer['error']}\n"


@pytest.mark.parametrize("command", [["run", "hi"], ["chat"], ["serve"]], ids=words)
def test_invalid_agent_file_is_2(command, tmp_path):
    (tmp_path / "wrong.yaml").write_text("modle: x\n")
    done = dragoman(*command, "--agent", "wrong.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("did you mean model?") == 1
