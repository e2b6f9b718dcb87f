"""The servers of a TsAgent file."""

from collections.abc import Iterator

from dragoman.agent.profile.servers import AgentServer, Permission, ServerSettings, ToolSettings, gather_servers
from dragoman.agent.profile.sources import Sources
from dragoman.agent.profile.tsagent.shape import TsAgentFile, TsAgentServer, TsAgentTool
from dragoman.agent.profile.tsagent.table import UnderstoodTable
from dragoman.agent.yaml.nodes import KeyConflict

_TYPES = {"stdio": "stdio", "sse": "sse", "streamable-http": "http", "http": "http"}
_PERMISSIONS: dict[bool | None, Permission | None] = {True: "ask", False: "allow", None: None}


def convert_servers(file: TsAgentFile, sources: Sources, table: UnderstoodTable) -> tuple[AgentServer, ...]:
    """Return the servers that a file has, but for those inside TsAgent itself; raises ProfileError."""
    settings = dict(_convert_each(file, table))
    if file.settings.tool_permission != "tool":
        table.take("settings.toolPermission", "the permission of every server")
    return gather_servers(settings, sources)


def _convert_each(file: TsAgentFile, table: UnderstoodTable) -> Iterator[tuple[str, ServerSettings]]:
    for name, server in file.mcp_servers.items():
        at = f"mcpServers.{name}"
        if server.type == "internal":
            table.leave(at, "it is a part of TsAgent itself, in which the model changes its own rules and tools")
            continue
        try:
            converted = _convert(server, file)
        except KeyConflict as misfit:
            table.leave(at, f"{misfit.key}: {misfit}")
            continue
        table.take(at, "a server of the agent")
        yield name, converted


def _convert(server: TsAgentServer, file: TsAgentFile) -> ServerSettings:
    defaults, tools = _tool_settings(server)
    kind = server.type or ("stdio" if server.command else "sse")
    if kind not in _TYPES:
        raise KeyConflict("type", "there is no such kind of server here")
    always = file.settings.tool_permission
    return ServerSettings(
        server.command,
        server.args,
        server.env,
        server.cwd,
        server.url,
        server.headers,
        _TYPES[kind],  # pyright: ignore[reportArgumentType] -- one of the literals, by the table
        defaults.include or "always",
        {"always": "ask", "never": "allow"}.get(always) or _PERMISSIONS[defaults.permission_required],  # pyright: ignore[reportArgumentType] -- as above
        tools={
            name: ToolSettings(tool.include, _PERMISSIONS[tool.permission_required] if always == "tool" else None)
            for name, tool in tools.items()
        },
    )


def _tool_settings(server: TsAgentServer) -> tuple[TsAgentTool, dict[str, TsAgentTool]]:
    """Return what counts for all tools and for each; the older form counts when there is no newer one."""
    if server.server_tool_defaults != TsAgentTool() or server.tools:
        return server.server_tool_defaults, {name: tool for name, tool in server.tools.items() if tool != TsAgentTool()}
    permissions, includes = server.tool_permission_required, server.tool_include
    names = {**permissions.tools, **includes.tools}
    tools = {name: TsAgentTool(permissions.tools.get(name), includes.tools.get(name)) for name in names}
    return TsAgentTool(permissions.server_default, includes.server_default), tools
