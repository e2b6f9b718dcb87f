"""Conversations of real peers that follow the rules have no findings."""

import asyncio
import sys
from contextlib import asynccontextmanager

import pytest

from dragoman.check import AgentMemory
from dragoman.errors import RemoteError
from dragoman.proc import EVERYTHING, Supervisor
from dragoman.protocol import v1
from dragoman.protocol.methods import (
    SESSION_CLOSE,
    SESSION_DELETE,
    SESSION_LIST,
    SESSION_LOAD,
    SESSION_RESUME,
    SESSION_SET_MODE,
)
from dragoman.testing import ScriptedAgent, ScriptedClient, steps
from dragoman.wire import StdioTransport, memory_pair
from tests.check.judge.recording import Recording, introduce

PLAN = {"sessionUpdate": "plan", "entries": [{"content": "Look", "priority": "low", "status": "pending"}]}


@asynccontextmanager
async def scripted(*turns, **options):
    near, far = memory_pair()
    recording = Recording(near)
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        tasks.create_task(ScriptedAgent(far, list(turns)).serve())
        async with ScriptedClient(recording, **options) as client:
            await introduce(client)
            yield client, recording


async def test_scripted_turn_of_all_kinds_is_clean():
    turn = [steps.Think("hm"), steps.Update(PLAN), steps.Say("one "), steps.Say("two"), steps.Stop("max_tokens")]
    async with scripted(turn) as (client, recording):
        session = await client.new_session("/")
        await client.prompt(session, "go")
        await client.prompt(session, "again")
    assert recording.findings() == []


@pytest.mark.parametrize("decision", ["reject", "wait"])
async def test_scripted_denied_permission_is_clean(decision):
    async with scripted([steps.AskPermission()], decide=lambda _: decision) as (client, recording):
        session = await client.new_session("/")
        turn = asyncio.ensure_future(client.prompt(session, "go"))
        await client.wait_for(lambda c: bool(c.permissions))
        if decision == "wait":
            await client.cancel(session)
        await turn
    assert recording.findings() == []


async def test_a_scripted_cancel_and_an_unknown_session_are_clean():
    async with scripted([steps.Say("waiting"), steps.WaitForCancel()]) as (client, recording):
        session = await client.new_session("/")
        turn = asyncio.ensure_future(client.prompt(session, "go"))
        await client.wait_for(lambda c: "waiting" in c.text())
        await client.cancel(session)
        assert (await turn).stop_reason == "cancelled"
        with pytest.raises(RemoteError):
            await client.prompt("nobody", "hi")
    found = {each.rule for each in recording.findings()}
    assert found == {"ACP-PROMPT-102"}, "the client prompts a session that it did not open, and nobody else errs"


SCRIPT = """
- - thought: They want a file.
  - text: "Writing. "
  - tool: {name: write_file, arguments: {path: a.txt, content: hello}}
- - text: Done.
  - usage: {input: 12, output: 4}
- - text: waiting
  - delay_s: 30
- - text: after
"""


@asynccontextmanager
async def our_agent(tmp_path, **options):
    script = tmp_path / "script.yaml"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "dragoman", "agent", "--model", f"script:{script}"]
    async with asyncio.timeout(40), Supervisor() as supervisor:
        env = {"DRAGOMAN_HOME": str(tmp_path / "home")}
        child = await supervisor.start(command, inherit=EVERYTHING, env=env)
        recording = Recording(StdioTransport.for_child(child))
        async with ScriptedClient(recording, **options) as client:
            await introduce(client)
            yield client, recording


@pytest.fixture
def project(tmp_path):
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.mark.parametrize("decision", ["allow", "reject"])
async def test_our_agent_is_clean_through_tools_permission_and_cancel(tmp_path, project, decision):
    async with our_agent(tmp_path, decide=lambda _: decision) as (client, recording):
        session = await client.new_session(str(project))
        await client.prompt(session, "write it")
        turn = asyncio.ensure_future(client.prompt(session, "wait"))
        await client.wait_for(lambda c: "waiting" in c.text())
        await client.cancel(session)
        assert (await turn).stop_reason == "cancelled"
        await client.prompt(session, "go on")
    assert recording.findings() == []


async def test_our_agent_is_clean_when_a_permission_is_pending_at_the_cancel(tmp_path, project):
    async with our_agent(tmp_path, decide=lambda _: "wait") as (client, recording):
        session = await client.new_session(str(project))
        turn = asyncio.ensure_future(client.prompt(session, "write it"))
        await client.wait_for(lambda c: bool(c.permissions))
        await client.cancel(session)
        assert (await turn).stop_reason == "cancelled"
    assert recording.findings() == []


async def test_our_agent_is_clean_over_two_connections(tmp_path, project):
    memory = AgentMemory()
    async with our_agent(tmp_path, decide=lambda _: "allow") as (client, recording):
        session = await client.new_session(str(project))
        await client.prompt(session, "write it")
        await client.connection.call(SESSION_LIST, v1.ListSessionsRequest(cwd=str(project)))
        await client.connection.call(SESSION_SET_MODE, v1.SetSessionModeRequest(session_id=session, mode_id="plan"))
        await client.connection.call(SESSION_CLOSE, v1.CloseSessionRequest(session_id=session))
    assert recording.findings(memory) == []
    async with our_agent(tmp_path) as (client, recording):
        request = {"session_id": session, "cwd": str(project), "mcp_servers": []}
        await client.connection.call(SESSION_LOAD, v1.LoadSessionRequest(**request))
        await client.connection.call(SESSION_RESUME, v1.ResumeSessionRequest(**request))
        await client.connection.call(SESSION_LIST, v1.ListSessionsRequest())
        await client.connection.call(SESSION_DELETE, v1.DeleteSessionRequest(session_id=session))
        await client.connection.call(SESSION_DELETE, v1.DeleteSessionRequest(session_id=session))
        await client.connection.call(SESSION_LIST, v1.ListSessionsRequest())
    judge = recording.judge(memory)
    assert judge.findings == []
    kept = ("ACP-LOAD-001", "ACP-LOAD-004", "ACP-RESUME-001", "ACP-CLOSE-002", "ACP-DELETE-001", "ACP-DELETE-002")
    assert all(judge.occasions[rule] for rule in kept)
