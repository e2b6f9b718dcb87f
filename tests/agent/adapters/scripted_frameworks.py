"""The three frameworks with scripted models, so that one set of tests runs with each.

Import it in a test or a fixture: the frameworks take seconds.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import agents
import pydantic_ai
from agents.models.interface import Model as OpenAIModel
from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import tool as langchain_tool
from langgraph.checkpoint.memory import InMemorySaver
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseReasoningSummaryTextDeltaEvent,
    ResponseTextDeltaEvent,
)
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails, ResponseUsage
from pydantic import Field
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import DeltaThinkingPart, DeltaToolCall, FunctionModel

from dragoman.agent import Agent
from dragoman.agent.adapters import langgraph, openai_agents
from dragoman.agent.adapters import pydantic_ai as pydantic_adapter
from tests.agent.adapters.script import Script


def pieces(text: str) -> list[str]:
    return [f"{word} " for word in text.split()]


async def hang() -> None:
    await asyncio.Event().wait()


# ── pydantic-ai ───────────────────────────────────────────────────────────────────────────────────


def scripted_pydantic_model(script: Script) -> FunctionModel:
    async def stream(messages, info):
        names = [tool.name for tool in info.function_tools]
        reply = script.next([line for message in messages for line in pydantic_lines(message)], names)
        if reply.thought:
            yield {0: DeltaThinkingPart(content=reply.thought)}
        for piece in pieces(reply.text):
            yield piece
        if reply.waits:
            await hang()
        for place, (name, arguments) in enumerate(reply.calls, 1):
            yield {place: DeltaToolCall(name, json.dumps(arguments), tool_call_id=f"c{len(script.seen)}{place}")}

    return FunctionModel(stream_function=stream)


def make_pydantic(script: Script, tools: list[Callable[..., Any]], **options: Any) -> Agent:
    framework = pydantic_ai.Agent(scripted_pydantic_model(script))
    for tool in tools:
        framework.tool_plain(tool)
    return pydantic_adapter.adapt(framework, "scripted", **options)


def pydantic_lines(message) -> list[str]:
    lines = []
    for part in message.parts:
        match part:
            case UserPromptPart(content=content):
                lines += [f"user: {item}" for item in ([content] if isinstance(content, str) else content)]
            case ToolReturnPart(content=content):
                lines.append(f"tool: {content}")
            case ToolCallPart(tool_name=name):
                lines.append(f"call: {name}")
            case TextPart(content=content) if isinstance(message, ModelResponse):
                lines.append(f"agent: {content.strip()}")
            case _:
                pass
    return lines


# ── LangGraph ─────────────────────────────────────────────────────────────────────────────────────


class ScriptedChat(BaseChatModel):
    script: Any
    bound: list[str] = Field(default_factory=list)

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **kwargs):
        return ScriptedChat(script=self.script, bound=[tool.name for tool in tools])

    def _generate(self, *args, **kwargs):
        raise AssertionError("the graph is streamed")

    async def _astream(self, messages, stop=None, run_manager=None, **kwargs):
        reply = self.script.next([line for message in messages for line in langchain_lines(message)], self.bound)
        if reply.thought:
            yield chunk(content=[{"type": "reasoning", "reasoning": reply.thought}])
        for piece in pieces(reply.text):
            yield chunk(content=piece)
        if reply.waits:
            await hang()
        calls = [
            {"name": name, "args": json.dumps(arguments), "id": f"c{len(self.script.seen)}{place}", "index": place}
            for place, (name, arguments) in enumerate(reply.calls)
        ]
        usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        yield chunk(content="", tool_call_chunks=calls, usage_metadata=usage)


def chunk(**fields):
    return ChatGenerationChunk(message=AIMessageChunk(**fields))


def langchain_lines(message) -> list[str]:
    role = {"human": "user", "ai": "agent", "tool": "tool"}[message.type]
    said = [f"{role}: {str(message.text).strip()}"] if message.text else []
    return [*said, *(f"call: {call['name']}" for call in getattr(message, "tool_calls", []))]


def make_langgraph(script: Script, tools: list[Callable[..., Any]], *, checkpointer=None, **options: Any) -> Agent:
    graph = create_agent(
        ScriptedChat(script=script),
        tools=[langchain_tool(tool) for tool in tools],
        middleware=[langgraph.AcpMiddleware()],
        checkpointer=checkpointer,
    )
    return langgraph.adapt(graph, "scripted", **options)


def make_checkpointed(script: Script, tools: list[Callable[..., Any]], **options: Any) -> Agent:
    return make_langgraph(script, tools, checkpointer=InMemorySaver(), **options)


# ── OpenAI Agents ─────────────────────────────────────────────────────────────────────────────────


class ScriptedOpenAI(OpenAIModel):
    def __init__(self, script: Script) -> None:
        self.script = script

    async def get_response(self, *args, **kwargs):
        raise AssertionError("the run is streamed")

    async def stream_response(self, system_instructions, input, model_settings, tools, *args, **kwargs):  # noqa: A002 -- its name
        items = [{"role": "user", "content": input}] if isinstance(input, str) else input
        reply = self.script.next([line for item in items for line in openai_lines(item)], [tool.name for tool in tools])
        where = {"item_id": "m", "output_index": 0, "sequence_number": 0}
        if reply.thought:
            kind = "response.reasoning_summary_text.delta"
            yield ResponseReasoningSummaryTextDeltaEvent(delta=reply.thought, summary_index=0, type=kind, **where)
        for piece in pieces(reply.text):
            kind = "response.output_text.delta"
            yield ResponseTextDeltaEvent(content_index=0, delta=piece, logprobs=[], type=kind, **where)
        if reply.waits:
            await hang()
        output = []
        if reply.text:
            text = ResponseOutputText(annotations=[], text=reply.text, type="output_text")
            output.append(
                ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
            )
        output += [
            ResponseFunctionToolCall(
                arguments=json.dumps(arguments),
                call_id=f"c{len(self.script.seen)}{place}",
                name=name,
                type="function_call",
            )
            for place, (name, arguments) in enumerate(reply.calls)
        ]
        usage = ResponseUsage(
            input_tokens=10,
            input_tokens_details=InputTokensDetails(cached_tokens=0, cache_write_tokens=0),
            output_tokens=5,
            output_tokens_details=OutputTokensDetails(reasoning_tokens=0),
            total_tokens=15,
        )
        response = Response(
            id="r",
            created_at=0,
            model="scripted",
            object="response",
            output=output,
            parallel_tool_calls=False,
            tool_choice="auto",
            tools=[],
            usage=usage,
        )
        yield ResponseCompletedEvent(response=response, sequence_number=1, type="response.completed")


def openai_lines(item) -> list[str]:
    if item.get("type") == "function_call":
        return [f"call: {item['name']}"]
    if item.get("type") == "function_call_output":
        return [f"tool: {item['output']}"]
    content = item["content"]
    texts = [content] if isinstance(content, str) else [part["text"] for part in content if "text" in part]
    return [f"{'user' if item['role'] == 'user' else 'agent'}: {text.strip()}" for text in texts]


def make_openai(script: Script, tools: list[Callable[..., Any]], **options: Any) -> Agent:
    framework = agents.Agent(
        name="scripted", model=ScriptedOpenAI(script), tools=[agents.function_tool(tool) for tool in tools]
    )
    return openai_agents.adapt(framework, "scripted", run_config=agents.RunConfig(tracing_disabled=True), **options)


FRAMEWORKS = {
    "pydantic-ai": make_pydantic,
    "langgraph": make_langgraph,
    "langgraph with a checkpointer": make_checkpointed,
    "openai-agents": make_openai,
}
