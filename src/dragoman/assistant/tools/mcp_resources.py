"""The tools that list and read the resources of MCP servers; a session without such servers does not have them."""

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta

from dragoman.agent.prepared_call import Action, PreparedCall, ShowProgress, ToolFailure, ToolOutcome
from dragoman.agent.servers.mcp_tool import outcome
from dragoman.agent.servers.session_mcp import SessionMcp
from dragoman.assistant.models.model import ToolDefinition
from dragoman.assistant.tools.arguments import Arguments, decode, make_schema
from dragoman.assistant.tools.tool import Tool
from dragoman.errors import ServerFailure
from dragoman.mcp.info import CallResult, ResourceInfo, ResourceTemplate
from dragoman.protocol import v1
from dragoman.text import one_line

MAX_SHOWN = 200
"""Resources that one answer lists."""

MAX_ABOUT = 200
"""Letters of the description of one."""

ServerName = Annotated[str, Meta(min_length=1, description="The name of the MCP server.")]


def resource_tools(mcp: SessionMcp) -> list[Tool]:
    """Return the tools for resources; none where no server has any."""
    return [ListResources(mcp), ReadResource(mcp)] if mcp.resources.servers() else []


class ListResourcesArguments(Arguments, frozen=True):
    """The arguments of `list_mcp_resources`."""

    server: ServerName
    prefix: Annotated[
        str, Meta(description="Give only addresses that begin with this; variables of templates are completed.")
    ] = ""


class ListResources:
    """Lists the resources of a server, and the templates of more."""

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
        """Prepare the list; raises ToolFailure."""
        asked = decode(ListResourcesArguments, arguments, self.definition.name)

        async def run(_: ShowProgress) -> ToolOutcome:
            try:
                return ToolOutcome(await self._list(asked.server, asked.prefix))
            except ServerFailure as failure:
                raise ToolFailure(str(failure)) from None

        return PreparedCall(f"List the resources of {asked.server}", self.kind, run=run, reads_only=True)

    async def _list(self, server: str, prefix: str) -> str:
        if prefix:
            return "\n".join(await self._resources.complete(server, prefix)) or f"no address begins with {prefix}"
        listed, templates = await self._resources.list(server), await self._resources.templates(server)
        lines = [_line(each.uri, each) for each in listed[:MAX_SHOWN]]
        lines += [_line(f"template: {each.uri_template}", each) for each in templates[:MAX_SHOWN]]
        more = len(listed) + len(templates) - len(lines)
        return "\n".join([*lines, *([f"[… {more:,} more; give a prefix]"] if more else [])]) or "there are none"


class ReadResourceArguments(Arguments, frozen=True):
    """The arguments of `read_mcp_resource`."""

    server: ServerName
    uri: Annotated[
        str, Meta(min_length=1, description="Its address, as listed, linked to in a result, or made of a template.")
    ]


class ReadResource:
    """Reads a resource of a server; one that the server has not named itself needs approval."""

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
        """Prepare the reading; raises ToolFailure."""
        asked = decode(ReadResourceArguments, arguments, self.definition.name)
        try:
            offered = self._mcp.resources.is_offered(asked.server, asked.uri)
            action = Action("read", asked.uri, self._mcp.identify(asked.server))
            verdict = self._mcp.servers.verdict_of(asked.server)
        except ServerFailure as failure:
            raise ToolFailure(str(failure)) from None

        async def run(_: ShowProgress) -> ToolOutcome:
            try:
                parts: Sequence[v1.ContentBlock] = await self._mcp.resources.read(asked.server, asked.uri)
            except ServerFailure as failure:
                raise ToolFailure(str(failure)) from None
            return outcome(CallResult(list(parts)))

        return PreparedCall(
            f"Read {asked.uri} of {asked.server}",
            self.kind,
            run=run,
            # An address that the server did not name may carry words of the conversation to it.
            reads_only=offered and verdict in (None, "allow"),
            inside=offered,
            action=action,
            verdict=verdict,
        )


def _line(address: str, about: ResourceInfo | ResourceTemplate) -> str:
    words = filter(None, (about.title or about.name, about.mime_type, about.description))
    return f"{address} ({one_line(' · '.join(words), MAX_ABOUT)})"
