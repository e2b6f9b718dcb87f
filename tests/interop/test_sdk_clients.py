"""The official SDKs' clients with our agent.

It is the real `dragoman agent`, or our scripted agent if the client's answer to a permission request matters.
"""

import json
import subprocess
import sys

import pytest

from dragoman.testing import steps
from tests.commands import scripted
from tests.interop.peers import CLIENTS

pytestmark = pytest.mark.parametrize("client", CLIENTS)

SCRIPT = """
- - thought: hm
  - text: "one "
  - text: two
  - usage: {input: 5, output: 6}
- - text: waiting
  - delay_s: 600
- - tool: {name: fly}
- - text: done
"""


def converse(client, cwd, agent, *options):
    command = [*client, "--cwd", str(cwd), *options, "--", *agent]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    report = json.loads(done.stdout)
    report["loaded"] = conversation_of(report["loaded"] or [])
    for prompt in report["prompts"]:
        prompt["updates"] = conversation_of(prompt["updates"])
    return report


def conversation_of(updates):
    """Leave out updates that are not part of the conversation, and may come at any time."""
    return [update for update in updates if update["sessionUpdate"] != "available_commands_update"]


@pytest.fixture
def our_agent(tmp_path):
    script = tmp_path / "script.yaml"
    script.write_text(SCRIPT)
    return [sys.executable, "-m", "dragoman", "agent", "--model", f"script:{script}"]


def kinds(prompt):
    return [update["sessionUpdate"] for update in prompt["updates"]]


@pytest.mark.basic
def test_prompts_arrive_in_order_and_turns_can_be_cancelled(client, our_agent, tmp_path):
    options = ("--prompt", "hi", "--prompt", "wait", "--cancel-after", "1")
    report = converse(client, tmp_path, our_agent, *options)
    assert report["initialize"]["protocolVersion"] == 1
    assert report["initialize"]["agentInfo"]["name"] == "dragoman"
    assert report["sessionId"]
    told, cancelled = report["prompts"]
    assert told["stopReason"] == "end_turn"
    title, *chunks, usage = told["updates"]
    assert (title["sessionUpdate"], title["title"]) == ("session_info_update", "hi")
    assert kinds(told)[1:4] == ["agent_thought_chunk", "agent_message_chunk", "agent_message_chunk"]
    assert [chunk["content"]["text"] for chunk in chunks] == ["hm", "one ", "two"]
    assert (usage["sessionUpdate"], usage["used"]) == ("usage_update", 11)
    assert cancelled["stopReason"] == "cancelled"
    assert cancelled["updates"][-1]["content"]["text"] == "waiting"


def test_a_load_replays_the_conversation_in_a_new_process(client, our_agent, tmp_path):
    first = converse(client, tmp_path, our_agent, "--prompt", "hi")
    second = converse(client, tmp_path, our_agent, "--load", first["sessionId"], "--prompt", "again")
    replayed = second["loaded"]
    assert replayed[0]["sessionUpdate"] == "user_message_chunk"
    assert replayed[0]["content"] == {"type": "text", "text": "hi"}
    assert replayed[1:] == first["prompts"][0]["updates"]
    assert second["prompts"][0]["stopReason"] == "end_turn"


def test_error_message_tells_the_client_the_problem(client, our_agent, tmp_path):
    command = [*client, "--cwd", str(tmp_path), "--load", "nowhere", "--", *our_agent]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    shown = "-32002 Resource not found: there is no session nowhere; run `dragoman sessions` to list them: {"
    assert json.loads(done.stdout)["error"].startswith(shown)


@pytest.mark.parametrize(
    ("answer", "outcome", "reason", "statuses"),
    [
        ("yes", "outcome: selected yes", "end_turn", ["in_progress", "completed"]),
        ("no", "outcome: selected no", "end_turn", ["failed"]),
        ("cancel", "outcome: cancelled", "cancelled", ["failed"]),
    ],
)
def test_a_permission_request_is_answered(client, answer, outcome, reason, statuses, tmp_path):
    agent = scripted([steps.AskPermission()])
    [prompt] = converse(client, tmp_path, agent, "--prompt", "go", "--answer", answer)["prompts"]
    assert prompt["stopReason"] == reason
    assert kinds(prompt) == ["tool_call", *["tool_call_update"] * len(statuses), "agent_message_chunk"]
    assert [update["status"] for update in prompt["updates"][1:-1]] == statuses
    assert prompt["updates"][-1]["content"]["text"] == outcome
    assert prompt["permissions"][0]["toolCall"]["title"] == "Edit notes.txt"
