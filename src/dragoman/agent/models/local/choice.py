"""Which tools a small model is shown: a few that fit the prompt, since it loses its way among many."""

from collections.abc import Collection, Sequence

from dragoman.agent.models.model import ToolDefinition
from dragoman.agent.models.tool_index import ToolIndex

TOOLS_IN_FRONT = 6
"""Each costs about a hundred tokens to read, one to two seconds on one core; the number is chosen, not measured."""


async def choose_tools(
    tools: Sequence[ToolDefinition], prompt: str, used: Collection[str], index: ToolIndex
) -> list[ToolDefinition]:
    """Return the tools that the search finds nearest to the prompt and those in use, in the order they were given in.

    Nothing is searched, nor the search loaded, where they are few enough to show all.
    """
    if len(tools) <= TOOLS_IN_FRONT:
        return list(tools)
    near = await index.near(prompt, tools)
    ranked = sorted(tools, key=lambda tool: -near.get(tool.name, 0.0))
    chosen = {tool.name for tool in ranked[:TOOLS_IN_FRONT]} | set(used)
    return [tool for tool in tools if tool.name in chosen]
