"""deepagents-acp with a deep agent whose model is LangChain's fake one, created for each session as in its README."""

import asyncio
from typing import Any, Self

from acp import run_agent
from deepagents import create_deep_agent
from deepagents_acp.server import AgentServerACP, AgentSessionContext
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import MemorySaver


class FakeModel(GenericFakeChatModel):
    """Sends one text, and accepts tools without using them."""

    def bind_tools(self, *_: Any, **__: Any) -> Self:
        return self


def build(_: AgentSessionContext) -> Any:
    return create_deep_agent(FakeModel(messages=iter([AIMessage("Hello.")])), checkpointer=MemorySaver())


if __name__ == "__main__":
    asyncio.run(run_agent(AgentServerACP(build)))
