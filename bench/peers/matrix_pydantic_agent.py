"""pydantic-acp with an agent whose model is scripted. It reads a file and writes one, with approval."""

from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

from pydantic_acp import run_acp
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

CALLS = (
    ("read_file", {"path": "notes.txt"}),
    ("write_file", {"path": "summary.txt", "content": "two lines"}),
)

NUMBERS = count(1)
"""Counts calls, for unique IDs. The number of messages is no use, because it shrinks after a cancelled turn."""


def next_part(messages: list[ModelMessage]) -> TextPart | ToolCallPart:
    last = messages[-1].parts if isinstance(messages[-1], ModelRequest) else ()
    results = [part for part in last if isinstance(part, ToolReturnPart)]
    if not results:
        return ToolCallPart(*CALLS[0], tool_call_id=f"call-{next(NUMBERS)}")
    if results[-1].tool_name == CALLS[0][0]:
        return ToolCallPart(*CALLS[1], tool_call_id=f"call-{next(NUMBERS)}")
    return TextPart("Done.")


def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    return ModelResponse(parts=[next_part(messages)])


async def stream(messages: list[ModelMessage], _: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    part = next_part(messages)
    if isinstance(part, TextPart):
        yield part.content
    else:
        yield {0: DeltaToolCall(name=part.tool_name, json_args=part.args_as_json_str(), tool_call_id=part.tool_call_id)}


agent = Agent(FunctionModel(answer, stream_function=stream), output_type=[str, DeferredToolRequests])


@agent.tool_plain
def read_file(path: str) -> str:
    return Path(path).name


@agent.tool_plain(requires_approval=True)
def write_file(path: str, content: str) -> str:
    return f"{len(content)} characters would be in {Path(path).name}"


if __name__ == "__main__":
    run_acp(agent)
