"""The official SDKs' clients with our bridge, over HTTP and WebSocket. The agents use stdio."""

import asyncio
import json
import subprocess
import sys

import pytest

from dragoman.testing import steps
from tests.interop.bridge import bridge, scripted_bridge
from tests.interop.peers import PEERS, node_peer, python_peer
from tests.interop.serving import standing

pytestmark = [
    pytest.mark.parametrize("client", [python_peer("python_url_client.py"), node_peer("typescript_url_client.mjs")]),
    pytest.mark.parametrize("way", ["websocket", "http"]),
]

SCRIPT = """
- - thought: hm
  - text: "one "
  - text: two
- - text: waiting
  - delay_s: 600
- - text: done
"""


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ours")
    script = folder / "script.yaml"
    script.write_text(SCRIPT)
    command = bridge(sys.executable, "-m", "dragoman", "agent", "--model", f"script:{script}")
    with standing(command, folder) as server:
        yield server


@pytest.fixture(scope="module")
def asking(tmp_path_factory):
    """Start a bridge for an agent that requests permission in each turn."""
    with standing(scripted_bridge([steps.AskPermission()]), tmp_path_factory.mktemp("asking")) as server:
        yield server


@pytest.fixture(scope="module")
def made(ours, tmp_path_factory):
    """Create a session with the Python SDK over WebSocket."""
    cwd = str(tmp_path_factory.mktemp("made"))
    options = ["--cwd", cwd, "--prompt", "hi", "--", "websocket", ours["acp"], ours["token"]]
    done = subprocess.run(
        [sys.executable, PEERS / "python_url_client.py", *options], stdout=subprocess.PIPE, check=True
    )
    return {**json.loads(done.stdout), "cwd": cwd}


async def converse(client, way, server, cwd, *options):
    command = [*client, "--cwd", str(cwd), *options, "--", way, server["acp"], server["token"]]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    report = json.loads(output)
    assert process.returncode == 0, report
    for part in [report, *report["prompts"]]:
        for name in ("loaded", "updates"):
            part[name] = conversation_of(part.get(name) or [])
    return report


def conversation_of(updates):
    """Leave out updates that are not part of the conversation, and may come at any time."""
    return [update for update in updates if update["sessionUpdate"].endswith(("_chunk", "tool_call", "call_update"))]


def texts(updates):
    return [update["content"]["text"] for update in updates]


@pytest.mark.basic
async def test_prompt_arrives_in_order_and_load_replays_it(client, way, ours, tmp_path):
    first = await converse(client, way, ours, tmp_path, "--prompt", "hi")
    [prompt] = first["prompts"]
    assert first["initialize"]["agentInfo"]["name"] == "dragoman"
    assert texts(prompt["updates"]) == ["hm", "one ", "two"]
    assert prompt["stopReason"] == "end_turn"
    options = ("--load", first["sessionId"], "--prompt", "wait", "--cancel-after", "1")
    second = await converse(client, way, ours, tmp_path, *options)
    assert texts(second["loaded"]) == ["hi", "hm", "one ", "two"]
    assert second["prompts"][0]["stopReason"] == "cancelled"


async def test_a_permission_request_is_answered(client, way, asking, tmp_path):
    expected = {
        "yes": ("end_turn", "outcome: selected yes"),
        "no": ("end_turn", "outcome: selected no"),
        "cancel": ("cancelled", "outcome: cancelled"),
    }
    options = [("--prompt", "go", "--answer", answer) for answer in expected]
    reports = await asyncio.gather(*(converse(client, way, asking, tmp_path, *each) for each in options))
    prompts = [prompt for report in reports for prompt in report["prompts"]]
    said_last = [(prompt["stopReason"], prompt["updates"][-1]["content"]["text"]) for prompt in prompts]
    assert said_last == list(expected.values())
    assert [len(prompt["permissions"]) for prompt in prompts] == [1, 1, 1]


async def test_a_session_of_one_sdk_is_loaded_by_the_other(client, way, ours, made):
    report = await converse(client, way, ours, made["cwd"], "--load", made["sessionId"])
    assert texts(report["loaded"]) == ["hi", "hm", "one ", "two"]


async def test_client_without_the_token_is_refused(client, way, asking, tmp_path):
    command = [*client, "--cwd", str(tmp_path), "--", way, asking["acp"], "wrong"]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert process.returncode == 1
    assert "401" in json.loads(output)["error"] or way == "websocket"
