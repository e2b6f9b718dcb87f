"""The keys of a TsAgent file that mean something here; others may stand beside them."""

from typing import Literal

import msgspec

from dragoman.agent.profile.include import Include
from dragoman.agent.profile.secret import Secret
from dragoman.agent.profile.servers import Argument

Whole = int | float | str
"""The older form has its numbers as texts."""


class TsAgentSettings(msgspec.Struct, frozen=True, rename="camel"):
    """The key `settings`."""

    max_chat_turns: Whole | None = None
    max_output_tokens: Whole | None = None
    temperature: Whole | None = None
    model: str | None = None
    most_recent_model: str | None = None
    context_top_k: Whole | None = None
    context_top_n: Whole | None = None
    tool_permission: Literal["always", "never", "tool"] = "tool"


class TsAgentText(msgspec.Struct, frozen=True, rename="camel"):
    """One of `rules` or `references`, and the head of an `.mdt` file."""

    name: str = ""
    description: str = ""
    priority_level: Whole = 500
    text: str = ""
    include: Include = "manual"


class TsAgentTool(msgspec.Struct, frozen=True, rename="camel"):
    """What counts for a tool, or for all of a server that have nothing of their own."""

    permission_required: bool | None = None
    include: Include | None = None


class OldPermissions(msgspec.Struct, frozen=True, rename="camel"):
    """The older form: which tools ask."""

    server_default: bool | None = None
    tools: dict[str, bool] = {}


class OldIncludes(msgspec.Struct, frozen=True, rename="camel"):
    """The older form: the modes of tools."""

    server_default: Include | None = None
    tools: dict[str, Include] = {}


class TsAgentServer(msgspec.Struct, frozen=True, rename="camel"):
    """One of `mcpServers`."""

    type: str | None = None
    command: str | None = None
    args: list[Argument] = []
    env: dict[str, Secret] = {}
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, Secret] = {}
    tool: str | None = None
    server_tool_defaults: TsAgentTool = TsAgentTool()
    tools: dict[str, TsAgentTool] = {}
    tool_permission_required: OldPermissions = OldPermissions()
    tool_include: OldIncludes = OldIncludes()


class TsAgentFile(msgspec.Struct, frozen=True, rename="camel"):
    """The whole file."""

    settings: TsAgentSettings = TsAgentSettings()
    system_prompt: str | None = None
    rules: list[TsAgentText] | None = None
    references: list[TsAgentText] | None = None
    providers: dict[str, dict[str, Secret]] = {}
    mcp_servers: dict[str, TsAgentServer] = {}
