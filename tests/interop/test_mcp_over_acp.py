"""MCP over ACP with the official TypeScript SDK, as client with our agent, and as agent with our client."""

import asyncio
import json
import subprocess
import sys

import pytest

from dragoman.client import connect_url
from dragoman.errors import ErrorCode
from dragoman.mcp.era import MODERN_VERSIONS
from dragoman.mcp.serving.function_call import Progress
from tests.client.driving import agent_of, read, text
from tests.interop.bridge import bridge
from tests.interop.peers import PEERS, needs_node
from tests.interop.serving import standing
from tests.mcp.function_tools import Functions

pytestmark = needs_node


def our_agent(tmp_path, replies):
    """Return the command of our agent, whose model calls these tools."""
    script, profile = tmp_path / "script.yaml", tmp_path / "agent.yaml"
    script.write_text(json.dumps(replies))
    profile.write_text(json.dumps({"permissions": {"mode": "yolo", "allow_yolo": True}}))
    return [sys.executable, "-m", "dragoman", "agent", "--agent", str(profile), "--model", f"script:{script}"]


def converse(tmp_path, prompts, *options):
    """Prompt an agent with the SDK's client, and return its report."""
    asked = [word for prompt in prompts for word in ("--prompt", prompt)]
    command = ["node", str(PEERS / "typescript_mcp_client.mjs"), "--cwd", str(tmp_path), *asked, *options]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    return json.loads(done.stdout)


def use(tool, server="inside", **arguments):
    return {"tool": {"name": f"{server}__{tool}", "arguments": arguments}}


def calls(prompt):
    """Return the last status and all texts of a prompt's tool calls."""
    found = {}
    for update in prompt["updates"]:
        if update["sessionUpdate"] in ("tool_call", "tool_call_update"):
            call = found.setdefault(update["toolCallId"], {"status": None, "shown": []})
            call["status"] = update.get("status") or call["status"]
            call["shown"] += [each["content"]["text"] for each in update.get("content") or [] if "content" in each]
    return list(found.values())


@pytest.mark.basic
def test_our_agent_uses_the_server_in_an_sdk_client(tmp_path):
    replies = [[use("echo", text="grüezi"), use("count"), use("ask"), use("fail")], [{"text": "done"}]]
    report = converse(tmp_path, ["go"], "--", *our_agent(tmp_path, replies))
    assert report["advertised"]["acp"]
    echo, count, ask, fail = calls(report["prompts"][0])
    assert (echo["status"], echo["shown"][-1]) == ("completed", "grüezi")
    assert count["shown"] == ["1 of 2", "2 of 2", "counted"]
    assert ask["shown"][-1] == "size XL"
    assert fail["status"] == "failed"
    assert "the scale is broken" in fail["shown"][-1]
    assert report["methods"][0] == "server/discover"
    assert report["methods"].count("tools/call") == 5  # one per tool, and one more with the answer to its question
    assert "subscriptions/listen" in report["methods"]
    assert "initialize" not in report["methods"]


def test_tool_added_by_the_server_is_available_in_the_next_turn(tmp_path):
    replies = [[use("grow")], [{"text": "waited"}], [use("grown")], [{"text": "done"}]]
    report = converse(tmp_path, ["go", "on"], "--", *our_agent(tmp_path, replies))
    assert calls(report["prompts"][1])[0]["shown"][-1] == "I am new"


def test_a_cancelled_turn_cancels_the_call_in_the_client(tmp_path):
    agent = our_agent(tmp_path, [[use("wait")], [{"text": "never"}]])
    report = converse(tmp_path, ["go"], "--cancel", "--", *agent)
    assert report["prompts"][0]["stopReason"] == "cancelled"
    assert report["cancelled"]


def test_server_in_an_sdk_client_is_used_through_our_bridge(tmp_path):
    replies = [[use("echo", text="grüezi"), use("count"), use("ask")], [{"text": "done"}]]
    with standing(bridge(*our_agent(tmp_path, replies)), tmp_path / "home") as server:
        report = converse(tmp_path, ["go"], "--at", server["acp"], "--token", server["token"])
    echo, count, ask = calls(report["prompts"][0])
    assert (echo["shown"][-1], ask["shown"][-1]) == ("grüezi", "size XL")
    assert count["shown"] == ["1 of 2", "2 of 2", "counted"]


async def test_functions_in_our_client_work_through_the_bridge_after_reconnecting(tmp_path):
    replies = [[use("where", "functions")], [{"text": "done"}]] * 2
    with standing(bridge(*our_agent(tmp_path, replies)), tmp_path / "home") as server:

        async def ask(words, session_id=None):
            def where() -> str:
                """Return the place."""
                return words

            async with asyncio.timeout(50), connect_url(server["acp"], token=server["token"]) as agent:
                if session_id is None:
                    session = await agent.new_session(str(tmp_path), tools=[where])
                else:
                    session = await agent.load_session(session_id, str(tmp_path), tools=[where])
                [call] = (await session.run("go")).tool_calls
                return session.id, call.content[-1].content.text

        session_id, first = await ask("at home")
        _, second = await ask("abroad", session_id)
        assert (first, second) == ("at home", "abroad")


async def test_sdk_agent_uses_functions_in_our_client(tmp_path):
    functions = Functions()
    agent = ["node", str(PEERS / "typescript_mcp_agent.mjs")]
    async with agent_of(agent) as connected:
        session = await connected.new_session(str(tmp_path), tools=functions.all())

        async def ask(method, **options):
            return json.loads(text(await read(session.prompt(json.dumps({"method": method, **options})))))

        found = (await ask("server/discover"))["result"]
        assert found["supportedVersions"] == list(MODERN_VERSIONS)
        listed = (await ask("tools/list"))["result"]["tools"]
        assert "greet" in [tool["name"] for tool in listed]
        called = await ask("tools/call", params={"name": "greet", "arguments": {"name": "Zoë"}})
        assert called["result"]["content"][0]["text"] == "grüezi Zoë"
        counting = {"name": "count", "arguments": {"to": 2}, "_meta": {"progressToken": 7}}
        counted = await ask("tools/call", params=counting)
        # The SDK does not wait for the handlers of earlier notifications before a response, so the last may be lost.
        assert counted["notifications"][0]["params"]["progress"] == 1
        assert (await ask("prompts/list"))["error"]["code"] == ErrorCode.METHOD_NOT_FOUND
        assert (await ask("tools/list", server="made-up"))["refused"] == ErrorCode.MCP_SERVER_UNAVAILABLE


async def test_sdk_agent_cancels_a_function_in_our_client(tmp_path):
    stopped = asyncio.Event()

    async def begin(progress: Progress) -> None:
        """Start, and never end."""
        progress(1)
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    agent = ["node", str(PEERS / "typescript_mcp_agent.mjs")]
    async with agent_of(agent) as connected:
        session = await connected.new_session(str(tmp_path), tools=[begin])
        params = {"name": "begin", "arguments": {}, "_meta": {"progressToken": 1}}
        asked = json.dumps({"method": "tools/call", "params": params, "cancel": True})
        answer = json.loads(text(await read(session.prompt(asked))))
        assert answer["refused"] == ErrorCode.REQUEST_CANCELLED
        await stopped.wait()
