"""The official SDKs' version 2 clients with the real `dragoman agent`, in its own process."""

import json
import subprocess
import sys

import pytest

from tests.interop.peers import V2_CLIENTS

pytestmark = pytest.mark.parametrize("client", V2_CLIENTS)

SCRIPT = """
- - thought: hm
  - text: "one "
  - text: two
  - usage: {input: 5, output: 6}
- - tool: {name: run_command, arguments: {command: "true"}}
- - text: done
- - text: waiting
  - delay_s: 600
"""


@pytest.fixture
def our_agent(tmp_path):
    script = tmp_path / "script.yaml"
    script.write_text(SCRIPT)
    return [sys.executable, "-m", "dragoman", "agent", "--model", f"script:{script}"]


def converse(client, cwd, agent, *options):
    command = [*client, "--cwd", str(cwd), *options, "--", *agent]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    report = json.loads(done.stdout)
    for updates in (report["resumed"] or [], *(each["updates"] for each in report["prompts"])):
        updates[:] = [each for each in updates if each["sessionUpdate"] != "available_commands_update"]
    return report


def states(prompt):
    return [each["state"] for each in prompt["updates"] if each["sessionUpdate"] == "state_update"]


@pytest.mark.basic
def test_prompts_permission_cancelling_closing_and_a_resume_with_replay(client, our_agent, tmp_path):
    prompts = ("--prompt", "hi", "--prompt", "run", "--prompt", "wait", "--cancel-after", "1")
    report = converse(client, tmp_path, our_agent, *prompts)
    assert report["initialize"]["protocolVersion"] == 2
    assert report["initialize"]["info"]["name"] == "dragoman"
    said, asked, cancelled = report["prompts"]
    assert (said["stopReason"], states(said)) == ("end_turn", ["running", "idle"])
    assert (asked["stopReason"], states(asked)) == ("end_turn", ["running", "requires_action", "running", "idle"])
    assert asked["permissions"][0]["subject"]["type"] == "tool_call"
    assert (cancelled["stopReason"], states(cancelled)) == ("cancelled", ["running", "idle"])
    assert report["listed"] == [report["sessionId"]]

    resumed = converse(client, tmp_path, our_agent, "--resume", report["sessionId"])["resumed"]
    live = [
        each for prompt in report["prompts"] for each in prompt["updates"] if each["sessionUpdate"] != "state_update"
    ]
    assert resumed[-1] == {"sessionUpdate": "state_update", "state": "idle"}
    assert [each.get("messageId") for each in resumed[:-1]] == [each.get("messageId") for each in live]
    assert [each["sessionUpdate"] for each in resumed[:-1]] == [each["sessionUpdate"] for each in live]
    echoes = [each["messageId"] for each in resumed if each["sessionUpdate"].startswith("user_message")]
    assert echoes == [prompt["messageId"] for prompt in report["prompts"]]


def test_denied_permission_is_not_an_approval(client, our_agent, tmp_path):
    report = converse(client, tmp_path, our_agent, "--prompt", "hi", "--prompt", "run", "--answer", "no")
    statuses = [each["status"] for each in report["prompts"][1]["updates"] if each.get("status")]
    assert statuses[-1] == "failed"
