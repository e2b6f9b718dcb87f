"""The keys of a TsAgent file that have a meaning here; others may stand beside them."""

from collections.abc import Callable
from typing import Literal, TypeVar

import msgspec

from dragoman.agent.servers.client_requests import Include
from dragoman.assistant.profile.profile import UnderstoodKey
from dragoman.assistant.profile.servers import Argument
from dragoman.assistant.profile.settings import Secret

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
    """Settings of a tool, or of all tools of a server without settings of their own."""

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


N = TypeVar("N", int, float)


class UnderstoodTable:
    """Rows in the order in which the keys were looked at."""

    def __init__(self) -> None:
        self.rows: list[UnderstoodKey] = []

    def take(self, key: str, meaning: str) -> None:
        """Note that a key counts."""
        self.rows.append(UnderstoodKey(key, meaning))

    def leave(self, key: str, reason: str) -> None:
        """Note that a key does not count."""
        self.rows.append(UnderstoodKey(key, reason, taken=False))

    def number(
        self, key: str, value: float | str | None, kind: Callable[[float], N], least: N, meaning: str
    ) -> N | None:
        """Return a number that may stand there as a text, or note that it is none."""
        if value is None:
            return None
        try:
            number = kind(float(value))
        except (ValueError, OverflowError):
            self.leave(key, "it is no number")
            return None
        if not number >= least:
            self.leave(key, f"it is less than {least}")
            return None
        self.take(key, meaning)
        return number
