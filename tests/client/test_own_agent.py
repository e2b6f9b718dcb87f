"""The client with our own agent, through the whole life of a session."""

import sys

import pytest

from dragoman.client import connect_sync
from dragoman.client.events import CommandsChanged, TextChunk, ToolCallChanged, UserTextChunk
from dragoman.errors import RemoteError
from tests.client.driving import agent_of, done, read, text

SCRIPT = """
- - thought: hm
  - text: "one "
  - text: two
  - usage: {input: 5, output: 6}
- - tool: {name: read_file, arguments: {path: notes.txt}}
- - text: read
- - text: three
"""


@pytest.fixture
def command(tmp_path):
    script = tmp_path / "script.yaml"
    script.write_text(SCRIPT)
    (tmp_path / "notes.txt").write_text("A note.\n")
    return [sys.executable, "-m", "dragoman", "agent", "--model", f"script:{script}"]


async def test_turn_has_thoughts_text_title_and_usage(command, tmp_path):
    async with agent_of(command) as agent:
        session = await agent.new_session(tmp_path)
        events = await read(session.prompt("hello"))
        assert text(events) == done(events).text == "one two"
        assert session.title == "hello"
        assert session.usage.used == 11


async def test_tool_call_updates_are_merged(command, tmp_path):
    async with agent_of(command) as agent:
        session = await agent.new_session(tmp_path)
        await session.ask("hello")
        events = await read(session.prompt("read the notes"))
        changes = [event.call for event in events if isinstance(event, ToolCallChanged)]
        assert changes[0].status == "pending"
        assert changes[-1].status == "completed"
        assert changes[-1] == session.tool_calls[changes[-1].tool_call_id]
        assert changes[-1].raw_input == {"path": "notes.txt"}


async def test_load_returns_the_whole_history_in_order(command, tmp_path):
    async with agent_of(command) as agent:
        session = await agent.new_session(tmp_path)
        live = await read(session.prompt("hello"))
        session_id = session.id
    async with agent_of(command) as agent:
        loaded = await agent.load_session(session_id, tmp_path)
        assert isinstance(loaded.history[0], UserTextChunk)
        assert loaded.history[0].text == "hello"
        replayed = [event for event in loaded.history[1:] if not isinstance(event, CommandsChanged)]
        assert replayed == [event for event in live[:-1] if not isinstance(event, CommandsChanged)]
        assert loaded.title == "hello"
        assert (await read(loaded.prompt("go on")))[-1].stop_reason == "end_turn"


async def test_resume_has_no_replay(command, tmp_path):
    async with agent_of(command) as agent:
        session = await agent.new_session(tmp_path)
        await session.ask("hello")
    async with agent_of(command) as agent:
        resumed = await agent.resume_session(session.id, tmp_path)
        assert resumed.history == []
        assert not any(isinstance(event, TextChunk) for event in resumed.events_between_turns)


async def test_sessions_are_listed_closed_and_deleted(command, tmp_path):
    async with agent_of(command) as agent:
        ids = set()
        for _ in range(3):
            session = await agent.new_session(tmp_path)
            await session.ask("hello")
            ids.add(session.id)
        assert {info.session_id async for info in agent.list_sessions(tmp_path)} == ids
        await session.close()
        await agent.delete(session.id)
        assert {info.session_id async for info in agent.list_sessions()} == ids - {session.id}


async def test_fork_keeps_the_directory_and_is_independent(command, tmp_path):
    async with agent_of(command) as agent:
        session = await agent.new_session(tmp_path)
        await session.ask("hello")
        fork = await session.fork()
        assert fork.id != session.id
        assert fork.cwd == str(tmp_path)
        assert (await read(fork.prompt("go on")))[-1].stop_reason == "end_turn"


async def test_failed_load_leaves_no_open_session(command, tmp_path):
    async with agent_of(command) as agent:
        with pytest.raises(RemoteError):
            await agent.load_session("there-is-none", tmp_path)
        assert agent.open_sessions == ()


async def test_a_mode_can_be_set(command, tmp_path):
    async with agent_of(command) as agent:
        session = await agent.new_session(tmp_path)
        other = next(mode.id for mode in session.modes.available_modes if mode.id != session.modes.current_mode_id)
        await session.set_mode(other)
        assert session.modes.current_mode_id == other


def test_synchronous_client_drives_our_agent(command, tmp_path):
    with connect_sync(command) as agent:
        session = agent.new_session(tmp_path)
        events = list(session.prompt("hello"))
        assert text(events) == "one two"
        assert [info.session_id for info in agent.list_sessions(tmp_path)] == [session.id]
        session.close()
        assert agent.load_session(session.id, tmp_path).session.history[0].text == "hello"
