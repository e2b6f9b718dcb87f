"""An ACP agent as an Inspect agent, and a task for its evaluation.

    pip install inspect-ai dragoman
    inspect eval inspect_task.py --model mockllm/model -T command="claude-agent-acp"

Inspect's model is not used, because the agent has its own. It works on this machine, in a separate directory for each
sample. For an agent in a sandbox, start it there and pass its streams to `connect`.
"""

import shlex
import sys
import tempfile
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.agent import Agent, AgentState, agent
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageAssistant, ChatMessageTool, ModelOutput, ModelUsage
from inspect_ai.scorer import match
from inspect_ai.tool import ToolCall

from dragoman.client import TurnResult, connect
from dragoman.client.policies import allow_all
from dragoman.client.transcripts.export import tool_arguments, tool_name, tool_result

COMMAND = (
    f"{shlex.quote(sys.executable)} -m dragoman agent --model script:{Path(__file__).parent}/scripts/question.yaml"
)


@agent
def acp_agent(command: str = COMMAND, timeout_s: float = 600.0) -> Agent:
    """Send each sample to an ACP agent that this command starts."""

    async def execute(state: AgentState) -> AgentState:
        with tempfile.TemporaryDirectory() as folder:
            async with connect(command, policy=allow_all()) as remote:
                session = await remote.new_session(folder)
                result = await session.run(state.messages[-1].text, timeout_s=timeout_s)
        result.raise_for_error()
        state.messages.extend(messages_of(result))
        state.output = ModelOutput.from_content(remote.name, result.text)
        state.output.usage = usage_of(result)
        return state

    return execute


def messages_of(result: TurnResult) -> list[ChatMessageAssistant | ChatMessageTool]:
    """Return a turn as messages: the tool calls with their results, then the answer."""
    messages: list[ChatMessageAssistant | ChatMessageTool] = []
    for call in result.tool_calls:
        use = ToolCall(id=call.tool_call_id, function=tool_name(call), arguments=tool_arguments(call))
        messages.append(ChatMessageAssistant(content="", tool_calls=[use]))
        messages.append(ChatMessageTool(content=tool_result(call), tool_call_id=use.id, function=use.function))
    messages.append(ChatMessageAssistant(content=result.text))
    return messages


def usage_of(result: TurnResult) -> ModelUsage | None:
    """Return the tokens of a turn, if the agent counts them."""
    if result.usage is None:
        return None
    return ModelUsage(
        input_tokens=result.usage.input_tokens,
        output_tokens=result.usage.output_tokens,
        total_tokens=result.usage.total_tokens,
    )


@task
def arithmetic(command: str = COMMAND) -> Task:
    """Ask a question with one correct answer."""
    sample = Sample(input="What is six times seven? Answer with the number.", target="42")
    return Task(dataset=[sample], solver=acp_agent(command), scorer=match())
