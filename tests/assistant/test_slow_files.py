"""A slow file blocks only the request that needs it."""

import os
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from dragoman.store import encode_cwd
from tests.assistant.own_process import AgentProcess

SLOW_FILES = str(Path(__file__).with_name("slow_files.py"))
SCRIPT = "- - tool: {name: write_file, arguments: {path: notes.txt, content: milk}}\n- - text: done\n"


@pytest.fixture
def gate(tmp_path):
    os.mkfifo(tmp_path / "gate")
    return tmp_path / "gate"


@contextmanager
def agent_with_slow(file, gate, tmp_path, monkeypatch):
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    (tmp_path / "script.yaml").write_text(SCRIPT)
    (tmp_path / "other").mkdir()
    agent = AgentProcess(tmp_path / "script.yaml", python=(SLOW_FILES, str(gate), str(file)))

    def give_up():
        agent.kill()
        with suppress(FileNotFoundError):
            os.close(os.open(gate, os.O_RDONLY | os.O_NONBLOCK))

    watchdog = threading.Timer(40, give_up)
    watchdog.start()
    try:
        yield agent
    finally:
        watchdog.cancel()
        agent.end()


@contextmanager
def held(gate):
    """Wait until a process opens the slow file, and block it inside this context."""
    descriptor = os.open(gate, os.O_WRONLY)
    gate.unlink()
    try:
        yield
    finally:
        os.close(descriptor)


def test_slow_agent_file_blocks_no_other_session(gate, tmp_path, monkeypatch):
    project = tmp_path / "project"
    project.mkdir()
    with agent_with_slow(project / "dragoman.yaml", gate, tmp_path, monkeypatch) as agent:
        agent.send("session/new", cwd=str(project), mcpServers=[])
        with held(gate):
            agent.send("session/new", cwd=str(tmp_path / "other"), mcpServers=[])
            assert agent.answer()["sessionId"]
            agent.send("session/list")
            assert "sessions" in agent.answer()
        while (message := agent.read()).get("id") != 2:
            pass
        assert message["result"]["sessionId"]


def test_slow_approvals_file_blocks_no_other_session(gate, tmp_path, monkeypatch):
    project = tmp_path / "project"
    project.mkdir()
    file = tmp_path / "home" / "permissions" / f"{encode_cwd(str(project))}.json"
    with agent_with_slow(file, gate, tmp_path, monkeypatch) as agent:
        agent.send("session/new", cwd=str(project), mcpServers=[])
        session_id = agent.answer()["sessionId"]
        agent.send("session/prompt", sessionId=session_id, prompt=[{"type": "text", "text": "go"}])
        with held(gate):
            agent.send("session/new", cwd=str(tmp_path / "other"), mcpServers=[])
            assert agent.answer()["sessionId"]
        while agent.read().get("method") != "session/request_permission":
            pass


def test_slow_model_file_blocks_no_other_session(gate, tmp_path, monkeypatch):
    file = tmp_path / "slow.yaml"
    file.write_text("- - text: hello\n")
    with agent_with_slow(file, gate, tmp_path, monkeypatch) as agent:
        agent.send("session/new", cwd=str(tmp_path / "other"), mcpServers=[])
        session_id = agent.answer()["sessionId"]
        agent.send("session/prompt", sessionId=session_id, prompt=[{"type": "text", "text": f"/model script:{file}"}])
        with held(gate):
            agent.send("session/new", cwd=str(tmp_path / "other"), mcpServers=[])
            assert agent.answer()["sessionId"]


def test_slow_model_file_of_a_loaded_session_blocks_no_other(gate, tmp_path, monkeypatch):
    file, cwd = tmp_path / "slow.yaml", str(tmp_path / "other")
    file.write_text("- - text: hello\n")
    with agent_with_slow(file.with_name("nothing.yaml"), gate, tmp_path, monkeypatch) as agent:
        agent.send("session/new", cwd=cwd, mcpServers=[])
        session_id = agent.answer()["sessionId"]
        agent.send("session/prompt", sessionId=session_id, prompt=[{"type": "text", "text": f"/model script:{file}"}])
        agent.answer()
    (tmp_path / "other").rmdir()
    with agent_with_slow(file, gate, tmp_path, monkeypatch) as agent:
        agent.send("session/load", sessionId=session_id, cwd=cwd, mcpServers=[])
        with held(gate):
            agent.send("session/new", cwd=cwd, mcpServers=[])
            assert agent.answer()["sessionId"]
