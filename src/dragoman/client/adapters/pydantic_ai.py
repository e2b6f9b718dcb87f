"""Makes an ACP agent a tool of a pydantic-ai agent.

async with connect(["my-agent"], policy=allow_reads()) as remote:
    coder = agent_tool(await remote.new_session("."), "ask_coder", "Ask a coding agent about this project.")
    lead = pydantic_ai.Agent("openai:gpt-5", tools=[coder])
    print((await lead.run("What does this project do?")).output)
"""

from typing import Any

from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.tools import Tool

from dragoman.client.adapters.asking import Asker, EventFunction, answer_of
from dragoman.client.sessions.session import Session
from dragoman.errors import DragomanError

__all__ = ["agent_tool"]


def agent_tool(session: Session, name: str, description: str, *, on_event: EventFunction | None = None) -> Tool[Any]:
    """Create a tool that sends a task to an ACP agent and returns its answer.

    `description` tells the model what the agent can do. All calls continue the same session, one after another. The
    policy of the connection decides on the agent's permission requests. `on_event` receives each event while the agent
    works. Cancelling the run cancels the agent's turn. If the agent fails, the model receives the error.
    """
    asker = Asker(session)

    async def ask(task: str) -> str:
        try:
            return answer_of(await asker.ask(task, on_event))
        except DragomanError as failure:
            raise ToolFailed(str(failure)) from failure

    return Tool[Any](ask, takes_ctx=False, name=name, description=description)
