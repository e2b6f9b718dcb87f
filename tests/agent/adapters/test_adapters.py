"""Agents of pydantic-ai, LangGraph and the OpenAI Agents SDK as ACP agents, with scripted models."""

import asyncio
from typing import Any

import pytest

from dragoman.client.events import PermissionRequested, TextChunk, ThoughtChunk, ToolCallChanged
from dragoman.client.policies import allow_all, ask_user, deny_all
from dragoman.errors import RemoteError
from tests.agent.adapters.script import Reply, Script

pytestmark = pytest.mark.asyncio


@pytest.fixture(params=["pydantic-ai", "langgraph", "langgraph with a checkpointer", "openai-agents"])
def make(request, tmp_path):
    """Return a function that builds the agent of a script, with the same home each time, as after a restart."""
    from tests.agent.adapters.scripted_frameworks import FRAMEWORKS

    def make(script, tools=(), **options):
        return FRAMEWORKS[request.param](script, list(tools), home=tmp_path / "home", **options)

    return make


class Notes:
    """A tool that changes something."""

    def __init__(self):
        self.written = []

    def tools(self):
        def write_note(text: str) -> str:
            """Write a note."""
            self.written.append(text)
            return f"wrote {text}"

        def fail_always(text: str) -> str:
            """Fail."""
            raise ValueError(f"no room for {text}")

        return [write_note, fail_always]


async def never_answers(question):
    await asyncio.Event().wait()


async def events_of(session, prompt):
    return [event async for event in session.prompt(prompt)]


def text_of(events):
    return "".join(event.text for event in events if isinstance(event, TextChunk)).split()


def last_call(events):
    return [event.call for event in events if isinstance(event, ToolCallChanged)][-1]


async def test_text_and_thoughts_are_streamed_and_tokens_are_counted(make, tmp_path):
    script = Script([Reply("one two three", thought="hm")])
    async with make(script).connect() as remote:
        session = await remote.new_session(tmp_path)
        events = await events_of(session, "hello")
    assert [event.text for event in events if isinstance(event, TextChunk)] == ["one ", "two ", "three "]
    assert "".join(event.text for event in events if isinstance(event, ThoughtChunk)) == "hm"
    assert events[-1].stop_reason == "end_turn"
    assert events[-1].usage.output_tokens > 0
    assert script.seen == [["user: hello"]]


async def test_tool_asks_and_shows_arguments_and_result(make, tmp_path):
    notes = Notes()
    script = Script([Reply("let me", calls=[("write_note", {"text": "a"})]), Reply("done")])
    async with make(script, notes.tools()).connect(policy=allow_all()) as remote:
        events = await events_of(await remote.new_session(tmp_path), "write a")
    assert notes.written == ["a"]
    assert [event.question.tool_call.name for event in events if isinstance(event, PermissionRequested)] == [
        "write_note"
    ]
    call = last_call(events)
    assert (call.status, call.raw_input) == ("completed", {"text": "a"})
    assert [part.content.text for part in call.content] == ["wrote a"]
    assert script.seen[1][-1] == "tool: wrote a"
    assert text_of(events) == ["let", "me", "done"]


async def test_denied_call_does_not_run_and_the_model_is_informed(make, tmp_path):
    notes = Notes()
    script = Script([Reply(calls=[("write_note", {"text": "a"})]), Reply("a pity")])
    async with make(script, notes.tools()).connect(policy=deny_all()) as remote:
        events = await events_of(await remote.new_session(tmp_path), "write a")
    assert notes.written == []
    assert last_call(events).status == "failed"
    assert "not allowed" in script.seen[1][-1]
    assert text_of(events) == ["a", "pity"]


@pytest.mark.parametrize("asks", [{"other"}, lambda name, arguments: arguments["text"] != "a", False])
async def test_authors_rule_decides_which_calls_ask(make, tmp_path, asks):
    notes = Notes()
    script = Script([Reply(calls=[("write_note", {"text": "a"})]), Reply("done")])
    async with make(script, notes.tools(), asks=asks).connect(policy=deny_all()) as remote:
        events = await events_of(await remote.new_session(tmp_path), "write a")
    assert notes.written == ["a"]
    assert not [event for event in events if isinstance(event, PermissionRequested)]


async def test_tool_of_the_client_can_be_called(make, tmp_path):
    def look_up(word: str) -> str:
        """Look up a word."""
        return f"{word} is known"

    script = Script([Reply("hi")])
    async with make(script).connect(policy=allow_all()) as remote:
        session = await remote.new_session(tmp_path, tools=[look_up])
        await events_of(session, "hello")
        [name] = script.tools
        script.replies = [Reply(calls=[(name, {"word": "acp"})]), Reply("done")]
        events = await events_of(session, "look up acp")
    assert "look_up" in name
    assert last_call(events).status == "completed"
    assert script.seen[-1][-1] == "tool: acp is known"


async def test_turn_stopped_during_a_call_leaves_no_open_call(make, tmp_path):
    notes = Notes()
    script = Script([Reply("let me", calls=[("write_note", {"text": "a"})]), Reply("on we go")])
    async with make(script, notes.tools()).connect(policy=ask_user(never_answers)) as remote:
        session = await remote.new_session(tmp_path)
        async for event in session.prompt("write a"):
            if isinstance(event, ToolCallChanged) and event.is_new:
                session.cancel()
        assert event.stop_reason == "cancelled"
        await events_of(session, "go on")
    assert notes.written == []
    assert script.seen[1][-1] == "user: go on"
    assert script.seen[1].count("call: write_note") == script.seen[1].count("tool: stopped")


async def test_loaded_session_has_the_frameworks_memory(make, tmp_path):
    notes = Notes()
    first = Script([Reply("let me", calls=[("write_note", {"text": "a"})]), Reply("done")])
    async with make(first, notes.tools()).connect(policy=allow_all()) as remote:
        session = await remote.new_session(tmp_path)
        await events_of(session, "write a")
    second = Script([Reply("as I said"), Reply("again")])
    async with make(second, notes.tools()).connect(policy=allow_all()) as remote:
        session = await remote.load_session(session.id, tmp_path)
        await events_of(session, "what did you do?")
        await events_of(session, "and then?")
    earlier = ["user: write a", "agent: let me", "call: write_note", "tool: wrote a", "agent: done"]
    assert second.seen[0] == [*earlier, "user: what did you do?"]
    assert second.seen[1] == [*earlier, "user: what did you do?", "agent: as I said", "user: and then?"]


async def test_cancelled_turn_is_remembered_up_to_the_sent_text(make, tmp_path):
    script = Script([Reply("one two", waits=True), Reply("on we go")])
    async with make(script).connect() as remote:
        session = await remote.new_session(tmp_path)
        turn = session.prompt("count")
        async for event in turn:
            if isinstance(event, TextChunk) and event.text == "two ":
                session.cancel()
        assert event.stop_reason == "cancelled"
        events = await events_of(session, "go on")
    assert text_of(events) == ["on", "we", "go"]
    assert script.seen[1] == ["user: count", "agent: one two", "user: go on"]


async def test_failing_model_is_one_error_and_the_session_continues(make, tmp_path):
    script = Script([Reply(fails="the provider is down"), Reply("back")])
    async with make(script).connect() as remote:
        session = await remote.new_session(tmp_path)
        with pytest.raises(RemoteError, match="the provider is down"):
            await events_of(session, "hello")
        assert text_of(await events_of(session, "again")) == ["back"]


async def test_concurrent_sessions_do_not_mix(make, tmp_path):
    script = Script([Reply("a"), Reply("b"), Reply("c")])
    async with make(script).connect() as remote:
        one, two = await remote.new_session(tmp_path), await remote.new_session(tmp_path)
        await events_of(one, "first")
        await events_of(two, "second")
        await events_of(one, "third")
    assert script.seen == [["user: first"], ["user: second"], ["user: first", "agent: a", "user: third"]]


async def test_graph_receives_a_single_text_as_a_str(tmp_path):
    from langchain_core.messages import AIMessage
    from langgraph.graph import START, MessagesState, StateGraph

    from dragoman.agent.adapters import langgraph

    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(state["messages"][-1].content.upper())]}

    graph = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer").compile()
    async with langgraph.adapt(graph, "upper", home=tmp_path / "home").connect() as remote:
        events = await events_of(await remote.new_session(tmp_path), "hello")
    assert text_of(events) == ["HELLO"]
