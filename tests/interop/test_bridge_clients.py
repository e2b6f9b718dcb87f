"""The official SDKs are the client of our bridge, over HTTP and WebSocket; agents behind it speak stdio."""

import asyncio
import json
import sys

import pytest

from dragoman.testing import steps
from tests.interop.bridge import bridge, scripted_bridge
from tests.interop.peers import PEERS, node_peer, python_peer
from tests.interop.serving import served

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


@pytest.fixture
def ours(tmp_path):
    script = tmp_path / "script.yaml"
    script.write_text(SCRIPT)
    return bridge(sys.executable, "-m", "dragoman", "agent", "--model", f"script:{script}")


async def converse(client, way, server, cwd, *options):
    command = [*client, "--cwd", str(cwd), *options, "--", way, server["acp"], server["token"]]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    report = json.loads(output)
    assert process.returncode == 0, report
    for part in [report, *report["prompts"]]:
        for name in ("loaded", "updates"):
            part[name] = said(part.get(name) or [])
    return report


def said(updates):
    """Leave out what is no part of the conversation, and comes whenever it comes."""
    return [update for update in updates if update["sessionUpdate"].endswith(("_chunk", "tool_call", "call_update"))]


def texts(updates):
    return [update["content"]["text"] for update in updates]


async def test_a_prompt_arrives_whole_and_in_order(client, way, ours, tmp_path):
    async with served(ours) as server:
        report = await converse(client, way, server, tmp_path, "--prompt", "hi")
        [prompt] = report["prompts"]
        assert report["initialize"]["agentInfo"]["name"] == "dragoman"
        assert texts(prompt["updates"]) == ["hm", "one ", "two"]
        assert prompt["stopReason"] == "end_turn"


async def test_a_running_turn_is_cancelled_and_the_session_goes_on(client, way, tmp_path):
    agent = scripted_bridge([steps.Say("waiting"), steps.WaitForCancel()])
    async with served(agent) as server:
        report = await converse(client, way, server, tmp_path, "--prompt", "wait", "--cancel-after", "1")
        assert report["prompts"][0]["stopReason"] == "cancelled"


@pytest.mark.parametrize(
    ("answer", "outcome", "reason"),
    [
        ("yes", "outcome: selected yes", "end_turn"),
        ("no", "outcome: selected no", "end_turn"),
        ("cancel", "outcome: cancelled", "cancelled"),
    ],
)
async def test_a_permission_request_is_answered(client, way, answer, outcome, reason, tmp_path):
    async with served(scripted_bridge([steps.AskPermission()])) as server:
        options = ("--prompt", "go", "--answer", answer)
        [prompt] = (await converse(client, way, server, tmp_path, *options))["prompts"]
        assert (prompt["stopReason"], prompt["updates"][-1]["content"]["text"]) == (reason, outcome)
        assert len(prompt["permissions"]) == 1


async def test_a_load_replays_the_conversation_and_goes_on(client, way, ours, tmp_path):
    async with served(ours) as server:
        first = await converse(client, way, server, tmp_path, "--prompt", "hi")
        options = ("--load", first["sessionId"], "--prompt", "wait", "--cancel-after", "1")
        second = await converse(client, way, server, tmp_path, *options)
        assert texts(second["loaded"]) == ["hi", "hm", "one ", "two"]
        assert second["prompts"][0]["stopReason"] == "cancelled"


async def test_a_session_of_one_sdk_is_loaded_by_the_other(client, way, ours, tmp_path):
    async with served(ours) as server:
        maker = [sys.executable, str(PEERS / "python_url_client.py")]
        first = await converse(maker, "websocket", server, tmp_path, "--prompt", "hi")
        second = await converse(client, way, server, tmp_path, "--load", first["sessionId"])
        assert texts(second["loaded"]) == ["hi", "hm", "one ", "two"]


async def test_nobody_gets_in_without_the_token(client, way, tmp_path):
    async with served(scripted_bridge([steps.Say("a")])) as server:
        command = [*client, "--cwd", str(tmp_path), "--", way, server["acp"], "wrong"]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        output, _ = await process.communicate()
        assert process.returncode == 1
        assert "401" in json.loads(output)["error"] or way == "websocket"
