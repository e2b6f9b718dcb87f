"""Agents with sessions in PostgreSQL: one is killed in a turn, and another process continues its session."""

import asyncio
import json
import os
import subprocess

import pytest

from dragoman.client import connect
from dragoman.client.events import TextChunk
from dragoman.client.permission.policy import Decision
from dragoman.errors import RemoteError
from tests.commands import DRAGOMAN, start_dragoman

TALKS_ON = """
- - text: "word "
    repeat: 200
  - delay_s: 60
"""


@pytest.fixture
def agent(address, tmp_path, monkeypatch):
    """Return a function that builds the command of a scripted agent with a short lease."""

    def command(script):
        path = tmp_path / "script.yaml"
        path.write_text(script)
        return [*DRAGOMAN, "agent", "--store", address, "--model", f"script:{path}"]

    monkeypatch.setenv("DRAGOMAN_STORE_LEASE", "1.5")
    return command


class RawClient:
    """A client that sees each line and can kill its agent."""

    def __init__(self, command):
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def send(self, number, method, params):
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def call(self, number, method, params):
        self.send(number, method, params)
        while "id" not in (message := self.receive()):
            pass
        return message["result"]

    def receive(self):
        return json.loads(self._process.stdout.readline())

    def kill(self):
        """Kill the agent and return the messages that it has sent."""
        self._process.kill()
        rest = self._process.stdout.read()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()
        return [json.loads(line) for line in rest.split(b"\n")[:-1]]


def words(messages):
    updates = [message["params"]["update"] for message in messages if message.get("method") == "session/update"]
    return "".join(update["content"]["text"] for update in updates if update["sessionUpdate"] == "agent_message_chunk")


async def test_updates_sent_before_a_kill_are_in_another_process(agent, tmp_path):
    client = RawClient(agent(TALKS_ON))
    client.call(0, "initialize", {"protocolVersion": 1, "clientCapabilities": {}})
    session_id = client.call(1, "session/new", {"cwd": str(tmp_path), "mcpServers": []})["sessionId"]
    client.send(2, "session/prompt", {"sessionId": session_id, "prompt": [{"type": "text", "text": "talk"}]})
    seen = []
    while not words(seen):
        seen.append(client.receive())
    seen += client.kill()
    async with connect(agent("- - text: and on")) as other:
        async with asyncio.timeout(30):  # the lease takes 1.5 s of this
            while True:
                try:
                    session = await other.load_session(session_id, tmp_path)
                except RemoteError as error:
                    assert "in use by process" in str(error)
                    await asyncio.sleep(0.1)
                else:
                    break
        history = "".join(event.text for event in session.history if isinstance(event, TextChunk))
        assert history.startswith(words(seen))
        assert await session.ask("go on") == "and on"


async def test_permanent_decision_applies_on_another_machine(agent, tmp_path, home, monkeypatch):
    command = agent("- - tool: {name: run_command, arguments: {command: 'echo hi > made.txt'}}\n- - text: done")
    asked = []

    def reject_for_good(question):
        asked.append(question)
        return Decision("deny", "reject_always")

    for machine in ("one", "two"):
        (home / machine).mkdir(mode=0o700)
        monkeypatch.setenv("DRAGOMAN_HOME", str(home / machine))
        async with connect(command, policy=reject_for_good) as client:
            session = await client.new_session(tmp_path)
            await session.ask("go")
    assert len(asked) == 1
    assert not (tmp_path / "made.txt").exists()


def test_missing_database_is_reported_at_the_start():
    done = start_dragoman("agent", "--store", "mysql://somewhere")
    assert done.returncode == 2
    assert "expected one such as postgresql://USER@HOST/DATABASE" in done.stderr


@pytest.mark.extended
def test_sessions_move_into_a_database_and_back(postgres, tmp_path):
    address = postgres.new_database()
    one, two = ({**os.environ, "DRAGOMAN_HOME": str(tmp_path / name)} for name in ("one", "two"))
    for home in (one, two):
        os.mkdir(home["DRAGOMAN_HOME"], 0o700)
    assert start_dragoman("run", "hello", env=one).returncode == 0
    listed = start_dragoman("sessions", env=one).stdout
    assert "dragoman store init" in start_dragoman("store", "move", "--store", address, env=one).stderr
    for action in ("init", "move", "move"):
        done = start_dragoman("store", action, "--store", address, env=one)
        assert done.returncode == 0, done.stderr
    assert "0 sessions moved, 1 was already there" in done.stdout
    assert start_dragoman("sessions", env={**two, "DRAGOMAN_STORE": address}).stdout == listed
    assert start_dragoman("store", "move", "--to", "files", "--store", address, env=two).returncode == 0
    assert start_dragoman("sessions", env=two).stdout == listed
    status = json.loads(start_dragoman("store", "status", "--store", address, "--format", "json").stdout)
    assert [(scope["scope"], scope["prompted"]) for scope in status["scopes"]] == [("log", 1)]
