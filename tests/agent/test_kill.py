"""Whatever a client has seen is there after a load, however the agent died."""

import json
import os
import random
import signal
import subprocess
import sys

import pytest

SOAK = bool(os.environ.get("DRAGOMAN_SOAK"))
SCRIPT = "- - text: 0123456789012345678901234567890123456789\n    repeat: 20000\n"


class AgentProcess:
    """`dragoman agent` in a process of its own, driven line by line."""

    def __init__(self, script):
        self._process = subprocess.Popen(
            [sys.executable, "-m", "dragoman", "agent", "--model", f"script:{script}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._last_id = 0
        self.send("initialize", protocolVersion=1)
        self.read()

    def send(self, method, **params):
        self._last_id += 1
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def read(self):
        return json.loads(self._process.stdout.readline())

    def updates(self):
        """Yield the raw updates up to the answer, or to the end of the process."""
        for line in self._process.stdout:
            message = json.loads(line) if line.endswith(b"\n") else {}
            if message.get("method") != "session/update":
                return
            if b"available_commands_update" not in line:
                yield line

    def kill(self):
        self._process.send_signal(signal.SIGKILL)

    def end(self):
        self._process.stdin.close()
        self._process.stdout.close()
        return self._process.wait(30)


@pytest.mark.soak
@pytest.mark.timeout(3600 if SOAK else 60)
def test_no_update_that_was_received_is_lost_by_a_kill(tmp_path):
    script = tmp_path / "script.yaml"
    script.write_text(SCRIPT)
    dice = random.Random(20261115)
    for _ in range(300 if SOAK else 4):
        agent = AgentProcess(script)
        agent.send("session/new", cwd=str(tmp_path), mcpServers=[])
        session_id = agent.read()["result"]["sessionId"]
        agent.send("session/prompt", sessionId=session_id, prompt=[{"type": "text", "text": "go"}])
        limit = dice.randrange(1, 19_000)
        received = []
        for number, line in enumerate(agent.updates()):
            received.append(line)
            if number == limit:
                agent.kill()
        assert agent.end() == -signal.SIGKILL
        assert len(received) > limit

        agent = AgentProcess(script)
        agent.send("session/load", sessionId=session_id, cwd=str(tmp_path), mcpServers=[])
        replayed = [line for line in agent.updates() if b"user_message_chunk" not in line]
        assert agent.end() == 0
        assert replayed[: len(received)] == received
