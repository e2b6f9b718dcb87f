"""The keys of a TsAgent file that have a meaning here. A file may contain others."""

from collections.abc import Callable
from typing import Literal, TypeVar

import msgspec

from dragoman.agent.servers.client_requests import Include
from dragoman.assistant.profile.profile import UnderstoodKey
from dragoman.assistant.profile.servers import Argument
from dragoman.assistant.profile.settings import Secret

Whole = int | float | str
"""The older form has numbers as text."""


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
    """An item of `rules` or `references`, or the front matter of an `.mdt` file."""

    name: str = ""
    description: str = ""
    priority_level: Whole = 500
    text: str = ""
    include: Include = "manual"


class TsAgentTool(msgspec.Struct, frozen=True, rename="camel"):
    """Settings of a tool, or of all tools without their own."""

    permission_required: bool | None = None
    include: Include | None = None


class OldPermissions(msgspec.Struct, frozen=True, rename="camel"):
    """The older form of the tools' permissions."""

    server_default: bool | None = None
    tools: dict[str, bool] = {}


class OldIncludes(msgspec.Struct, frozen=True, rename="camel"):
    """The older form of the tools' include modes."""

    server_default: Include | None = None
    tools: dict[str, Include] = {}


class TsAgentServer(msgspec.Struct, frozen=True, rename="camel"):
    """An item of `mcpServers`."""

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
    """The meanings of the keys, in the order in which they were read."""

    def __init__(self) -> None:
        self.rows: list[UnderstoodKey] = []

    def use(self, key: str, meaning: str) -> None:
        """Record that a key is used."""
        self.rows.append(UnderstoodKey(key, meaning))

    def ignore(self, key: str, reason: str) -> None:
        """Record that a key is not used."""
        self.rows.append(UnderstoodKey(key, reason, used=False))

    def number(
        self, key: str, value: float | str | None, kind: Callable[[float], N], least: N, meaning: str
    ) -> N | None:
        """Return a number, which may be written as text. Record the key as ignored if it is not valid."""
        if value is None:
            return None
        try:
            number = kind(float(value))
        except (ValueError, OverflowError):
            self.ignore(key, "it is not a number")
            return None
        if not number >= least:
            self.ignore(key, f"it is less than {least}")
            return None
        self.use(key, meaning)
        return number
