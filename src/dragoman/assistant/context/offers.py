"""The tools of a session's MCP servers, as offers to the context."""

from collections.abc import Sequence
from typing import Any

from dragoman.agent.prepared_call import PreparedCall
from dragoman.agent.servers.mcp_tool import McpTool
from dragoman.assistant.context.candidates import ToolOffer
from dragoman.assistant.models.model import ToolDefinition
from dragoman.protocol import v1


class ServerTool:
    """A tool of an MCP server, as a model is told of it."""

    def __init__(self, tool: McpTool) -> None:
        self._tool = tool
        self.title = tool.title
        self.kind: v1.ToolKind = tool.kind
        self.definition = ToolDefinition(tool.name, tool.description, tool.input_schema, tool.title)

    async def prepare(self, arguments: dict[str, Any]) -> PreparedCall:
        """Prepare a call with these arguments."""
        return await self._tool.prepare(arguments)


class ServerOffers:
    """Makes the offers anew only when the tools have changed: a list of tools is replaced and never changed."""

    def __init__(self) -> None:
        self._tools: Sequence[McpTool] = ()
        self._offers: Sequence[ToolOffer] = ()

    def all(self, tools: Sequence[McpTool]) -> Sequence[ToolOffer]:
        """Return an offer for every tool."""
        if tools is not self._tools:
            self._tools = tools
            self._offers = [_offer(tool) for tool in tools]
        return self._offers


def _offer(tool: McpTool) -> ToolOffer:
    return ToolOffer(
        key=f"{tool.server}/{tool.info.name}",
        tool=ServerTool(tool),
        origin="agent" if tool.is_agents else "session",
        include=tool.include,
        server=tool.server,
        title=tool.info.title,
        description=tool.info.description,
    )
