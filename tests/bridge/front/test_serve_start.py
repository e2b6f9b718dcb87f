"""Errors that `dragoman serve` detects at its start. It exits with 2 and says what to do."""

import json
import logging

import pytest

from dragoman.cli import main


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys, caplog):
    """Run `dragoman serve` with these arguments and return its error message."""
    caplog.set_level(logging.WARNING, "dragoman")  # the command changes this for its process, so it is restored here
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)

    def start(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["serve", "--port", "0", *arguments])
        assert ended.value.code == 2
        assert not (tmp_path / "home").exists()
        return capsys.readouterr().err

    return start


def test_serve_rejects_an_unknown_model(refused):
    said = refused("--model", "zzz")
    assert "there is no model 'zzz'; expected guide" in said


def test_serve_rejects_an_unknown_default_model(refused, monkeypatch):
    monkeypatch.setenv("DRAGOMAN_MODEL", "nope")
    assert "there is no model 'nope'" in refused()


def test_serve_rejects_a_missing_agent_file(refused, tmp_path):
    assert "there is no such agent file; `dragoman init` writes one" in refused("--agent", str(tmp_path / "none.yaml"))


def test_serve_rejects_an_invalid_agent_file(refused, tmp_path):
    (tmp_path / "agent.yaml").write_text("model: nope\n")
    assert "nope" in refused("--agent", "agent.yaml")
    (tmp_path / "agent.yaml").write_text("[")
    assert "agent.yaml" in refused("--agent", "agent.yaml")


def test_serve_rejects_an_unusable_command(refused, tmp_path):
    assert "there is no command no-such-agent; use its full path" in refused("--", "no-such-agent", "--acp")
    assert "there is no command nowhere/agent" in refused("--", "nowhere/agent", "--acp")
    (tmp_path / "plain").write_text("")
    assert "chmod +x" in refused("--", str(tmp_path / "plain"))


def test_serve_checks_every_agent_of_a_file(refused, tmp_path):
    path = tmp_path / "agents.json"
    good = {"command": "sh"}
    path.write_text(json.dumps({"agents": {"good": good, "bad": {"command": "no-such-agent"}}}))
    assert "agent bad: there is no command no-such-agent" in refused("--agents-file", str(path))
    path.write_text(json.dumps({"agents": {"good": good, "bad": {"command": "sh", "cwd": "nowhere"}}}))
    said = refused("--agents-file", str(path))
    assert "agent bad: its cwd" in said
    assert "is not a directory" in said
