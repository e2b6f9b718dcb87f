"""An ACP agent in another process as a tool of pydantic-ai and as a node of LangGraph."""

import asyncio
import re
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dragoman.client import connect
from dragoman.client.events import PermissionRequested, TextChunk
from dragoman.client.policies import allow_all, deny_all
from dragoman.errors import RemoteError
from dragoman.testing import steps

PAGE = Path(__file__).parents[3] / "docs" / "frameworks.md"


@asynccontextmanager
async def session_of(tmp_path, *turns, **options):
    """Start a scripted agent and open a session."""
    command = [sys.executable, "-m", "dragoman.testing", steps.dump_turns(list(turns))]
    async with connect(command, **options) as remote:
        yield await remote.new_session(tmp_path)


def model_for(*tasks):
    """Return a model of pydantic-ai that gives each task to its only tool, and answers with the results."""
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import FunctionModel

    def reply(messages, info):
        results = [part.content for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
        if results:
            return ModelResponse([TextPart(" | ".join(results))])
        [definition] = info.function_tools
        assert list(definition.parameters_json_schema["properties"]) == ["task"]
        return ModelResponse([ToolCallPart(definition.name, {"task": task}) for task in tasks])

    return FunctionModel(reply)


def lead_of(tool, *tasks):
    import pydantic_ai

    return pydantic_ai.Agent(model_for(*tasks), tools=[tool])


def graph_of(node):
    from langgraph.graph import START, MessagesState, StateGraph

    graph = StateGraph(MessagesState)
    graph.add_node("worker", node)
    graph.add_edge(START, "worker")
    return graph.compile()


# ── pydantic-ai ─────────────────────────────────────────────────────────────────────────────────────


async def test_model_gets_the_answers_of_parallel_calls(tmp_path):
    from dragoman.client.adapters.pydantic_ai import agent_tool

    streamed = []
    async with session_of(tmp_path, [steps.Say("one "), steps.Say("1")], [steps.Say("two")]) as session:
        tool = agent_tool(session, "ask_worker", "Ask the worker.", on_event=streamed.append)
        result = await lead_of(tool, "first", "second").run("go")
    assert result.output == "one 1 | two"
    assert [event.text for event in streamed if isinstance(event, TextChunk)] == ["one ", "1", "two"]


@pytest.mark.parametrize(("policy", "outcome"), [(allow_all(), "selected yes"), (deny_all(), "selected no")])
async def test_policy_of_the_connection_decides(tmp_path, policy, outcome):
    from dragoman.client.adapters.pydantic_ai import agent_tool

    seen = []

    async def on_event(event):
        seen.append(event)

    turn = [steps.AskPermission(title="Edit notes.txt", kind="edit")]
    async with session_of(tmp_path, turn, policy=policy) as session:
        tool = agent_tool(session, "ask_worker", "Ask the worker.", on_event=on_event)
        result = await lead_of(tool, "edit").run("go")
    assert result.output == f"outcome: {outcome}"
    assert any(isinstance(event, PermissionRequested) for event in seen)


async def test_model_reads_why_the_agent_failed(tmp_path):
    from dragoman.client.adapters.pydantic_ai import agent_tool

    turns = [[steps.Fail(-32603, "the disk is full")], [steps.Say("half"), steps.Stop("max_tokens")], [steps.Exit(3)]]
    async with session_of(tmp_path, *turns) as session:
        tool = agent_tool(session, "ask_worker", "Ask the worker.")
        failed, stopped, died = [(await lead_of(tool, "go").run("go")).output for _ in turns]
    assert "the disk is full" in failed
    assert stopped == "half\n\n[The agent stopped before it was done: max_tokens]"
    assert "exited with code 3" in died


async def test_cancelled_run_cancels_the_agents_turn(tmp_path):
    from dragoman.client.adapters.pydantic_ai import agent_tool

    begun = asyncio.Event()
    turns = [[steps.Say("begun"), steps.WaitForCancel()], [steps.Say("next")]]
    async with session_of(tmp_path, *turns) as session:
        tool = agent_tool(session, "ask_worker", "Ask the worker.", on_event=lambda _: begun.set())
        run = asyncio.create_task(lead_of(tool, "go").run("go"))
        await begun.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert await session.ask("again") == "next"


# ── LangGraph ───────────────────────────────────────────────────────────────────────────────────────


async def test_node_adds_the_answer_and_streams_the_events(tmp_path):
    from langchain_core.messages import HumanMessage

    from dragoman.client.adapters.langgraph import agent_node

    async with session_of(tmp_path, [steps.Say("It "), steps.Say("works")]) as session:
        graph = graph_of(agent_node(session, "worker"))
        parts = [
            part
            async for part in graph.astream({"messages": [HumanMessage("Does it?")]}, stream_mode=["custom", "values"])
        ]
    streamed = [event.text for mode, event in parts if mode == "custom" and isinstance(event, TextChunk)]
    answer = parts[-1][1]["messages"][-1]
    assert streamed == ["It ", "works"]
    assert (answer.text, answer.name, answer.response_metadata) == ("It works", "worker", {"stop_reason": "end_turn"})


async def test_node_sends_the_prompt_that_the_program_makes(tmp_path):
    from dragoman.client.adapters.langgraph import agent_node

    record = tmp_path / "record.jsonl"
    async with session_of(tmp_path, [steps.Say("ok")], record=record) as session:
        node = agent_node(session, "worker", prompt=lambda state: f"Count {len(state['messages'])}")
        await graph_of(node).ainvoke({"messages": ["a", "b"]})
    assert "Count 2" in record.read_text()


async def test_failure_of_the_agent_fails_the_node(tmp_path):
    from dragoman.client.adapters.langgraph import agent_node

    async with session_of(tmp_path, [steps.Fail(-32603, "the disk is full")]) as session:
        with pytest.raises(RemoteError, match="the disk is full"):
            await graph_of(agent_node(session, "worker")).ainvoke({"messages": ["go"]})


async def test_cancelled_graph_cancels_the_agents_turn(tmp_path):
    from dragoman.client.adapters.langgraph import agent_node

    turns = [[steps.Say("begun"), steps.WaitForCancel()], [steps.Say("next")]]
    async with session_of(tmp_path, *turns) as session:
        graph = graph_of(agent_node(session, "worker"))
        begun = asyncio.Event()

        async def run():
            async for _ in graph.astream({"messages": ["go"]}, stream_mode="custom"):
                begun.set()

        task = asyncio.create_task(run())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await session.ask("again") == "next"


# ── the documentation ───────────────────────────────────────────────────────────────────────────────


def test_documented_tool_runs(tmp_path, monkeypatch, capsys):
    section = PAGE.read_text().partition("\n### A tool of pydantic-ai\n")[2].partition("\n### ")[0]
    [program] = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    assert program.count('"openai:gpt-5"') == 1
    (tmp_path / "note.txt").write_text("buy milk\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    names = {"__name__": "lead", "scripted_model": model_for("read note.txt")}
    exec(compile(program.replace('"openai:gpt-5"', "scripted_model"), PAGE.name, "exec"), names)
    assert "buy milk" in capsys.readouterr().out
