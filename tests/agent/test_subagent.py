"""A subagent is shown as a separate session, or as a tool call to clients without subagents."""

import asyncio
import sys

import pytest

from dragoman.agent import Turn
from dragoman.client import connect
from dragoman.client.events import SessionMessageChanged, SubagentChanged, SubagentEvent, TextChunk
from dragoman.errors import ProcessDiedError
from dragoman.protocol import v1
from dragoman.protocol.methods import SESSION_LOAD
from dragoman.testing import ScriptedClient
from dragoman.wire import memory_pair
from tests.agent.connecting import make_agent


def leading_agent(tmp_path):
    agent = make_agent(tmp_path)

    @agent.on_prompt
    async def answer(turn: Turn) -> None:
        async with turn.subagent("Reader", description="Reads notes") as reader:
            await reader.instruct("Read it.")
            await reader.say("I look.")
            if turn.text == "wait":
                await asyncio.Event().wait()
            if turn.text == "fail":
                raise OSError("no such note")
            await reader.report("Three lines.")
        await turn.say("It has three lines.")

    return agent


async def test_client_sees_the_session_and_messages_of_a_subagent(tmp_path):
    async with leading_agent(tmp_path).connect() as remote:
        session = await remote.new_session(tmp_path)
        events = [event async for event in session.prompt("go")]
        kinds = (SubagentChanged, SubagentEvent, SessionMessageChanged, TextChunk)
        shown = [event for event in events if isinstance(event, kinds)]
        began, told, told_child, said, reported, reported_child, ended, answer = shown
        child = began.subagent.session_id
        assert (began.subagent.title, began.subagent.description, began.is_new) == ("Reader", "Reads notes", True)
        assert (told.message.text, told.message.sender_session_id, told.message.recipient_session_id) == (
            "Read it.",
            session.id,
            child,
        )
        assert told_child.event.update.sender_message_id == told.message.message_id
        assert said.event.text == "I look."
        assert (reported.message.text, reported.message.recipient_session_id) == ("Three lines.", session.id)
        assert reported_child.event.update.recipient_message_id == reported.message.message_id
        assert (ended.subagent.is_idle, ended.subagent.state.stop_reason) == (True, "end_turn")
        assert answer.text == events[-1].text == "It has three lines."
    async with leading_agent(tmp_path).connect() as remote:
        loaded = await remote.load_session(session.id, tmp_path)
        assert [message.text for message in loaded.entities.messages.values()] == ["Read it.", "Three lines."]
        assert loaded.entities.subagents[child] == ended.subagent
        assert not any(isinstance(event, SubagentEvent) for event in loaded.history)


@pytest.mark.parametrize(
    ("prompt", "status", "shown"), [("go", "completed", "Three lines."), ("fail", "failed", "no such note")]
)
async def test_client_without_subagents_sees_a_tool_call(tmp_path, prompt, status, shown):
    async with Talking(tmp_path) as client:
        session_id = await client.new_session(str(tmp_path))
        await asyncio.gather(client.prompt(session_id, prompt), return_exceptions=True)
        live = calls(client)
    assert {type(update) for update in live} == {v1.ToolCall, v1.ToolCallProgress}
    assert (live[0].title, live[0].name, live[0].status) == ("Reader", "subagent", "in_progress")
    assert live[1].raw_input == {"message": "Read it."}
    assert live[-1].status == status
    [content] = [update.content for update in live if update.content][-1]
    assert shown in content.content.text
    async with Talking(tmp_path) as client:
        load = v1.LoadSessionRequest(session_id=session_id, cwd=str(tmp_path), mcp_servers=[])
        await client.connection.call(SESSION_LOAD, load)
        assert calls(client) == live
    async with leading_agent(tmp_path).connect() as remote:
        loaded = await remote.load_session(session_id, tmp_path)
        assert loaded.tool_calls == {}
        [subagent] = loaded.entities.subagents.values()
        assert subagent.state.stop_reason == ("end_turn" if prompt == "go" else "error")


async def test_cancelled_turn_ends_its_subagent(tmp_path):
    async with leading_agent(tmp_path).connect() as remote:
        session = await remote.new_session(tmp_path)
        async for event in session.prompt("wait"):
            if isinstance(event, SubagentEvent) and isinstance(event.event, TextChunk):
                session.cancel()
        [subagent] = session.entities.subagents.values()
        assert subagent.state.stop_reason == "cancelled"


class Talking:
    """A client without subagents, connected to the agent."""

    def __init__(self, tmp_path):
        near, far = memory_pair()
        self._serving = asyncio.ensure_future(leading_agent(tmp_path).serve(far))
        self._client = ScriptedClient(near)

    async def __aenter__(self):
        await self._client.__aenter__()
        await self._client.initialize()
        return self._client

    async def __aexit__(self, *error):
        await self._client.__aexit__(*error)
        await self._serving


def calls(client):
    kinds = v1.ToolCall | v1.ToolCallProgress | v1.SubagentUpdate | v1.SessionMessage
    return [each.update for each in client.updates if isinstance(each.update, kinds)]


PROGRAM = """
import os, signal, sys
from dragoman.agent import Agent

agent = Agent("dying", home=sys.argv[1])


@agent.on_prompt
async def answer(turn):
    async with turn.subagent("Reader") as reader:
        await reader.say("I look.")
        os.kill(os.getpid(), signal.SIGKILL)

agent.run()
"""


async def test_subagent_of_a_dead_process_is_not_running_after_a_load(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, str(tmp_path / "program.py"), str(tmp_path / "home")]
    async with connect(command) as agent:
        session = await agent.new_session(tmp_path)
        with pytest.raises(ProcessDiedError):
            await session.ask("die")
    async with connect(command) as agent:
        loaded = await agent.load_session(session.id, tmp_path)
        [subagent] = loaded.entities.subagents.values()
        assert (subagent.is_idle, subagent.state.stop_reason) == (True, "cancelled")
