"""Our client with fast-agent and its passthrough model, which echoes the prompt."""

import asyncio
from pathlib import Path

import pytest

from dragoman.client.errors import MissingCapabilityError
from dragoman.client.events import PermissionRequested, TextChunk, ToolCallChanged, UserTextChunk
from dragoman.client.policies import allow_all, deny_all
from dragoman.protocol import v1
from tests.client.driving import agent_of, collect, done, read, text

INSTALLED = Path(__file__).parents[2] / ".cache" / "peers" / "fast-agent"
PROGRAM = INSTALLED / "bin" / "fast-agent-acp"
COMMAND = [str(PROGRAM), "--model", "passthrough"]


def why_missing():
    reason = INSTALLED / "missing"
    return reason.read_text().strip() if reason.exists() else "make .cache/peers/fast-agent/.made installs it"


pytestmark = [
    pytest.mark.extended,  # each test starts fast-agent, which takes 3 s of processor time
    pytest.mark.skipif(
        not PROGRAM.exists(), reason=f"fast-agent is not here and was not tried as a peer: {why_missing()}"
    ),
]


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A separate home and directory, because fast-agent stores its sessions and settings there."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def call(tool, arguments="{}"):
    """Return the prompt by which the passthrough model calls our tool."""
    return f"***CALL_TOOL functions__{tool} {arguments}"


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def test_fast_agent_reports_name_and_capabilities(home):
    async with agent_of(COMMAND, cwd=home) as agent:
        assert agent.info.name == "fast-agent-acp"
        assert agent.capabilities.load_session
        assert agent.capabilities.prompt_capabilities.image


async def test_fast_agent_echoes_a_prompt(home):
    async with agent_of(COMMAND, cwd=home) as agent:
        session = await agent.new_session(home)
        events = await read(session.prompt("hello there"))
    assert (text(events), done(events).text, done(events).stop_reason) == ("hello there", "hello there", "end_turn")


async def test_a_session_is_listed_and_loaded_with_its_history(home):
    async with agent_of(COMMAND, cwd=home) as agent:
        session = await agent.new_session(home)
        await session.ask("remember this")
        assert session.id in [info.session_id async for info in agent.list_sessions()]
    async with agent_of(COMMAND, cwd=home) as agent:
        loaded = await agent.load_session(session.id, home)
        said = [(type(event), event.text) for event in loaded.history if isinstance(event, (UserTextChunk, TextChunk))]
        assert said == [(UserTextChunk, "remember this"), (TextChunk, "remember this")]
        assert await loaded.ask("and go on") == "and go on"


async def test_function_is_called_when_the_policy_allows_it(home):
    async with agent_of(COMMAND, cwd=home, policy=allow_all()) as agent:
        session = await agent.new_session(home, tools=[add])
        events = await read(session.prompt(call("add", '{"a": 1, "b": 2}')))
    assert [event.decision.verdict for event in events if isinstance(event, PermissionRequested)] == ["allow"]
    assert [event.call.status for event in events if isinstance(event, ToolCallChanged)][-1] == "completed"
    assert done(events).text == "3"


async def test_function_is_not_called_when_the_policy_denies_it(home):
    called = []

    def note() -> None:
        """Record a call."""
        called.append(True)

    async with agent_of(COMMAND, cwd=home, policy=deny_all()) as agent:
        session = await agent.new_session(home, tools=[note])
        events = await read(session.prompt(call("note")))
    assert [event.decision.verdict for event in events if isinstance(event, PermissionRequested)] == ["deny"]
    assert "declined permission" in done(events).text
    assert not called


async def test_cancelled_turn_cancels_its_running_function(home):
    begun, ended = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        """Wait until the call is cancelled."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    events = []
    async with agent_of(COMMAND, cwd=home, policy=allow_all()) as agent:
        session = await agent.new_session(home, tools=[wait])
        reading = asyncio.create_task(collect(session.prompt(call("wait")), events))
        await begun.wait()
        session.cancel()
        await reading
        await ended.wait()
        assert done(events).stop_reason == "cancelled"
        assert done(await read(session.prompt("go on"))).stop_reason == "end_turn"


async def test_unsupported_request_is_refused_before_sending(home):
    async with agent_of(COMMAND, cwd=home) as agent:
        session = await agent.new_session(home)
        refused = {
            "agentCapabilities.auth.logout": agent.logout(),
            "agentCapabilities.sessionCapabilities.close": session.close(),
            "agentCapabilities.sessionCapabilities.delete": session.delete(),
            "agentCapabilities.sessionCapabilities.fork": session.fork(),
            "agentCapabilities.sessionCapabilities.additionalDirectories": agent.new_session(
                home, additional_directories=["/"]
            ),
            "agentCapabilities.promptCapabilities.audio": session.ask(
                [v1.AudioContent(data="", mime_type="audio/wav")]
            ),
        }
        for capability, attempt in refused.items():
            with pytest.raises(MissingCapabilityError) as caught:
                await attempt
            assert caught.value.capability == capability
        assert await session.ask("still here") == "still here"
