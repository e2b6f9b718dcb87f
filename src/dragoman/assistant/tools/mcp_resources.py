"""The tools that list and read resources of MCP servers. Sessions without resources do not have them."""

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta

from dragoman.agent.servers.mcp_tool import outcome
from dragoman.agent.servers.session_mcp import SessionMcp
from dragoman.agent.turns.prepared_call import Action, PreparedCall, ShowProgress, ToolError, ToolOutcome
from dragoman.assistant.models.model import ToolDefinition
from dragoman.assistant.tools.arguments import Arguments, decode, make_schema
from dragoman.assistant.tools.tool import Tool
from dragoman.errors import McpServerError
from dragoman.mcp.info import CallResult, ResourceInfo, ResourceTemplate
from dragoman.protocol import v1
from dragoman.text import one_line

MAX_SHOWN = 200
"""The most resources in one answer."""

MAX_ABOUT = 200
"""Characters of one description."""

ServerName = Annotated[str, Meta(min_length=1, description="The name of the MCP server.")]


def resource_tools(mcp: SessionMcp) -> list[Tool]:
    """Return the tools for resources, or none if no server has any."""
    return [ListResources(mcp), ReadResource(mcp)] if mcp.resources.servers() else []


class ListResourcesArguments(Arguments, frozen=True):
    """The arguments of `list_mcp_resources`."""

    server: ServerName
    prefix: Annotated[
        str, Meta(description="Return only addresses that begin with this; variables of templates are completed.")
    ] = ""


class ListResources:
    """Lists a server's resources and resource templates."""

    title = "List MCP resources"
    kind: v1.ToolKind = "read"

    def __init__(self, mcp: SessionMcp) -> None:
        self._resources = mcp.resources
        servers = ", ".join(mcp.resources.servers())
        self.definition = ToolDefinition(
            "list_mcp_resources",
            f"List the resources that an MCP server offers. Servers with resources: {servers}.",
            make_schema(ListResourcesArguments),
        )

    async def prepare(self, arguments: dict[str, Any]) -> PreparedCall:
        """Prepare the list. Raises ToolError."""
        asked = decode(ListResourcesArguments, arguments, self.definition.name)

        async def run(_: ShowProgress) -> ToolOutcome:
            try:
                return ToolOutcome(await self._list(asked.server, asked.prefix))
            except McpServerError as failure:
                raise ToolError(str(failure)) from None

        return PreparedCall(f"List the resources of {asked.server}", self.kind, run=run, reads_only=True)

    async def _list(self, server: str, prefix: str) -> str:
        if prefix:
            return "\n".join(await self._resources.complete(server, prefix)) or f"no address begins with {prefix}"
        listed, templates = await self._resources.list(server), await self._resources.templates(server)
        lines = [_line(each.uri, each) for each in listed[:MAX_SHOWN]]
        lines += [_line(f"template: {each.uri_template}", each) for each in templates[:MAX_SHOWN]]
        more = len(listed) + len(templates) - len(lines)
        return "\n".join([*lines, *([f"[… {more:,} more; use a prefix]"] if more else [])]) or "there are none"


class ReadResourceArguments(Arguments, frozen=True):
    """The arguments of `read_mcp_resource`."""

    server: ServerName
    uri: Annotated[
        str,
        Meta(
            min_length=1, description="Its address: from the list, from a link in a result, or built from a template."
        ),
    ]


class ReadResource:
    """Reads a resource of a server. A URI that the server did not offer needs approval."""

    title = "Read an MCP resource"
    kind: v1.ToolKind = "read"

    def __init__(self, mcp: SessionMcp) -> None:
        self._mcp = mcp
        servers = ", ".join(mcp.resources.servers())
        self.definition = ToolDefinition(
            "read_mcp_resource",
            "Read a resource of an MCP server, such as one that a tool's result links to. "
            f"Servers with resources: {servers}.",
            make_schema(ReadResourceArguments),
        )

    async def prepare(self, arguments: dict[str, Any]) -> PreparedCall:
        """Prepare the read. Raises ToolError."""
        asked = decode(ReadResourceArguments, arguments, self.definition.name)
        try:
            offered = self._mcp.resources.is_offered(asked.server, asked.uri)
            action = Action("read", asked.uri, self._mcp.identify(asked.server))
            verdict = self._mcp.servers.verdict_of(asked.server)
        except McpServerError as failure:
            raise ToolError(str(failure)) from None

        async def run(_: ShowProgress) -> ToolOutcome:
            try:
                parts: Sequence[v1.ContentBlock] = await self._mcp.resources.read(asked.server, asked.uri)
            except McpServerError as failure:
                raise ToolError(str(failure)) from None
            return outcome(CallResult(list(parts)))

        return PreparedCall(
            f"Read {asked.uri} of {asked.server}",
            self.kind,
            run=run,
            # An address that the server did not offer may leak the conversation to it.
            reads_only=offered and verdict in (None, "allow"),
            inside=offered,
            action=action,
            verdict=verdict,
        )


def _line(address: str, about: ResourceInfo | ResourceTemplate) -> str:
    parts = filter(None, (about.title or about.name, about.mime_type, about.description))
    return f"{address} ({one_line(' · '.join(parts), MAX_ABOUT)})"
