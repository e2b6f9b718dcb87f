"""The newer methods and updates of ACP v1, with the official TypeScript SDK as the client and as the agent."""

import json
import subprocess
import sys

import pytest

from dragoman.client import connect
from dragoman.client.events import (
    CompactionChanged,
    NoticeReceived,
    SessionMessageChanged,
    SubagentChanged,
    SubagentEvent,
)
from tests.interop.peers import PEERS, needs_node

pytestmark = needs_node


@pytest.mark.basic
def test_sdk_client_uses_them_with_our_agent(tmp_path):
    (tmp_path / "script.yaml").write_text("- - text: Bonjour.\n- - text: In short.\n")
    agent = [sys.executable, "-m", "dragoman", "agent", "--model", f"script:{tmp_path}/script.yaml"]
    command = ["node", str(PEERS / "typescript_newer_client.mjs"), str(tmp_path), *agent]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    report = json.loads(done.stdout)
    session_id = report["sessionId"]
    capabilities = report["initialize"]["agentCapabilities"]
    assert {"archive", "status", "title", "systemPrompt"} <= capabilities["sessionCapabilities"].keys()
    assert [method["id"] for method in report["initialize"]["authMethods"]] == ["none"]
    assert report["authStatus"]["state"] == "not_required"
    assert report["title"]["title"] == "My title"
    assert (report["open"]["status"], report["saved"]["status"]) == ("open", "saved")
    assert report["listed"]["sessions"] == []
    [archived] = report["archived"]["sessions"]
    assert (archived["sessionId"], archived["title"], archived["archived"]) == (session_id, "My title", True)
    [again] = report["again"]["sessions"]
    assert (again["sessionId"], again["archived"]) == (session_id, False)
    assert report["unknown"]["code"] == -32002
    assert report["unknown"]["data"]["sessionId"] == "nobody"
    compactions = [each for each in report["updates"] if each["sessionUpdate"] == "compaction_update"]
    assert [each["status"] for each in compactions] == ["in_progress", "completed"]
    assert compactions[-1]["summary"] == [{"type": "text", "text": "In short."}]


async def test_our_client_uses_them_with_the_sdk_agent(tmp_path):
    async with connect(["node", str(PEERS / "typescript_newer_agent.mjs")]) as agent:
        assert agent.capabilities.meta["client"]["subagents"] == {}
        assert agent.capabilities.meta["client"]["session"].keys() == {"configOptions", "notices", "compaction"}
        assert (await agent.auth_status()).state == "unauthenticated"
        await agent.authenticate("badge")
        assert (agent.auth.state, agent.auth.accounts[0].label) == ("authenticated", "Test account")
        session = await agent.new_session(tmp_path, system_prompt="Speak French.")
        events = [event async for event in session.prompt("go")]
        instructions = {"mode": "append", "content": [{"type": "text", "text": "Speak French."}]}
        assert json.loads(events[-1].text) == instructions
        [notice] = [event for event in events if isinstance(event, NoticeReceived)]
        assert (notice.severity, notice.title, notice.description) == ("warning", "Slow today", "The model is busy.")
        last = [event.compaction for event in events if isinstance(event, CompactionChanged)][-1]
        assert (last.status, last.text) == ("completed", "In short.")
        began, ended = [event.subagent for event in events if isinstance(event, SubagentChanged)]
        assert (began.title, began.is_idle, ended.is_idle) == ("Reader", False, True)
        assert [event.event.text for event in events if isinstance(event, SubagentEvent)] == ["I read."]
        assert [event.message.text for event in events if isinstance(event, SessionMessageChanged)] == ["Read it."]
        assert await session.set_title(" Mine ") == session.title == "Mine"
        assert await session.status() == "open"
        await session.archive()
        assert await agent.status(session.id) == "saved"
        assert [info async for info in agent.list_sessions()] == []
        assert [info.title async for info in agent.list_sessions(archived="only")] == ["Mine"]
        await agent.unarchive(session.id)
        assert [info.archived async for info in agent.list_sessions()] == [False]
