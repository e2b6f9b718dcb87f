"""Everything a client has received is there after a load, however the agent died."""

import os
import random
import signal

import pytest

from tests.assistant.own_process import AgentProcess

SOAK = bool(os.environ.get("DRAGOMAN_SOAK"))
SCRIPT = "- - text: 0123456789012345678901234567890123456789\n    repeat: 20000\n"


@pytest.mark.soak
@pytest.mark.timeout(3600 if SOAK else 60)
def test_kill_loses_no_update_that_was_received(tmp_path):
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
