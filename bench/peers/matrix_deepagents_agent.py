"""deepagents-acp with a deep agent whose model is scripted. It writes a file, which must be approved."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any, Self

from acp import run_agent
from deepagents import create_deep_agent
from deepagents_acp.server import AgentServerACP, AgentSessionContext
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolCall, ToolCallChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.checkpoint.memory import MemorySaver


class ScriptedModel(BaseChatModel):
    """Calls a tool when it is asked, and sends a word when it has the result."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, *_: Any, **__: Any) -> Self:
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=reply(messages))])

    def _stream(self, messages: list[BaseMessage], *_: Any, **__: Any) -> Iterator[ChatGenerationChunk]:
        said = reply(messages)
        yield ChatGenerationChunk(message=AIMessageChunk(said.content))
        for index, call in enumerate(said.tool_calls):
            arguments = json.dumps(call["args"])
            chunk = ToolCallChunk(name=call["name"], args=arguments, id=call["id"], index=index)
            yield ChatGenerationChunk(message=AIMessageChunk("", tool_call_chunks=[chunk]))


def reply(messages: list[BaseMessage]) -> AIMessage:
    if not isinstance(messages[-1], HumanMessage):
        return AIMessage("Done.")
    arguments = {"file_path": "/summary.txt", "content": "two lines"}
    call = ToolCall(name="write_file", args=arguments, id=f"call-{len(messages)}")
    return AIMessage("I write it down.", tool_calls=[call])


def build(_: AgentSessionContext) -> Any:
    return create_deep_agent(ScriptedModel(), interrupt_on={"write_file": True}, checkpointer=MemorySaver())


if __name__ == "__main__":
    asyncio.run(run_agent(AgentServerACP(build)))
