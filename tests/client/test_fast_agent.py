"""fast-agent with its passthrough model, which repeats what it is told, driven by our client."""

import asyncio
from pathlib import Path

import pytest

from dragoman.client import (
    Asked,
    MissingCapability,
    Text,
    ToolChanged,
    UserText,
    allow_all,
    deny_all,
)
from dragoman.protocol import v1
from tests.client.driving import agent_of, collect, done, read, text

INSTALLED = Path(__file__).parents[2] / ".cache" / "peers" / "fast-agent"
PROGRAM = INSTALLED / "bin" / "fast-agent-acp"
COMMAND = [str(PROGRAM), "--model", "passthrough"]


def why_missing():
    reason = INSTALLED / "missing"
    return reason.read_text().strip() if reason.exists() else "make .cache/peers/fast-agent/.made installs it"


pytestmark = pytest.mark.skipif(
    not PROGRAM.exists(), reason=f"fast-agent is not here and was not tried as a peer: {why_missing()}"
)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home and a directory of its own: fast-agent keeps its sessions and settings there."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def call(tool, arguments="{}"):
    """Return the prompt that has the passthrough model call a tool of ours."""
    return f"***CALL_TOOL functions__{tool} {arguments}"


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def test_it_says_who_it_is_and_what_it_can(home):
    async with agent_of(COMMAND, cwd=home) as agent:
        assert agent.info.name == "fast-agent-acp"
        assert agent.capabilities.load_session
        assert agent.capabilities.prompt_capabilities.image


async def test_a_prompt_comes_back(home):
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
        said = [(type(event), event.text) for event in loaded.history if isinstance(event, (UserText, Text))]
        assert said == [(UserText, "remember this"), (Text, "remember this")]
        assert await loaded.ask("and go on") == "and go on"


async def test_a_function_of_ours_is_called_when_the_policy_allows_it(home):
    async with agent_of(COMMAND, cwd=home, policy=allow_all()) as agent:
        session = await agent.new_session(home, tools=[add])
        events = await read(session.prompt(call("add", '{"a": 1, "b": 2}')))
    assert [event.decision.verdict for event in events if isinstance(event, Asked)] == ["allow"]
    assert [event.call.status for event in events if isinstance(event, ToolChanged)][-1] == "completed"
    assert done(events).text == "3"


async def test_a_function_of_ours_is_not_called_when_the_policy_denies_it(home):
    called = []

    def note() -> None:
        """Take note."""
        called.append(True)

    async with agent_of(COMMAND, cwd=home, policy=deny_all()) as agent:
        session = await agent.new_session(home, tools=[note])
        events = await read(session.prompt(call("note")))
    assert [event.decision.verdict for event in events if isinstance(event, Asked)] == ["deny"]
    assert "declined permission" in done(events).text
    assert not called


async def test_a_turn_is_cancelled_with_the_function_that_it_waits_for(home):
    begun, ended = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        """Wait until somebody has had enough."""
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


async def test_what_it_cannot_do_is_refused_before_it_is_sent(home):
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
            with pytest.raises(MissingCapability) as caught:
                await attempt
            assert caught.value.capability == capability
        assert await session.ask("still here") == "still here"
