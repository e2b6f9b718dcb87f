"""Makes an ACP agent a node of a LangGraph graph whose state has `messages`.

async with connect(["my-agent"], policy=allow_reads()) as remote:
    graph = StateGraph(MessagesState)
    graph.add_node("coder", agent_node(await remote.new_session("."), "coder"))
    graph.add_edge(START, "coder")
    result = await graph.compile().ainvoke({"messages": ["What does this project do?"]})
"""

from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata
from langgraph.config import get_stream_writer

from dragoman.client.adapters.asking import Asker, answer_of
from dragoman.client.events import TurnFinished
from dragoman.client.sessions.session import Session

__all__ = ["agent_node"]

State = dict[str, Any]


def agent_node(
    session: Session, name: str, *, prompt: Callable[[State], str] | None = None
) -> Callable[[State], Awaitable[State]]:
    """Create a node that sends a prompt to an ACP agent and adds its answer to `messages`, under `name`.

    The prompt is the text of the last message, or the result of `prompt(state)`. All runs continue the same session,
    one after another. The policy of the connection decides on the agent's permission requests. The graph's stream mode
    `custom` receives each event of `dragoman.client.events`. Cancelling the run cancels the agent's turn. An error of
    the agent is an error of the node.
    """
    asker = Asker(session)

    async def ask(state: State) -> State:
        text = prompt(state) if prompt is not None else str(state["messages"][-1].text)
        end = await asker.ask(text, get_stream_writer())
        return {"messages": [_message(end, name)]}

    return ask


def _message(end: TurnFinished, name: str) -> AIMessage:
    usage = end.usage
    tokens = usage and UsageMetadata(
        input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, total_tokens=usage.total_tokens
    )
    return AIMessage(
        answer_of(end), name=name, usage_metadata=tokens, response_metadata={"stop_reason": end.stop_reason}
    )
