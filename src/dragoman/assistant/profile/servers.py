"""The key `mcpServers`: the agent's own MCP servers, which its sessions share.

Common clients use the same format: a name, then `command`, `args`, `env`, `cwd`, or `url`, `headers`. Our additions
are `include`, `permission`, `trust` and `tools`. Secrets are revealed only when the server starts.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta

from dragoman.agent.servers.client_requests import Include
from dragoman.assistant.profile.settings import ADDRESS, Secret
from dragoman.assistant.profile.sources import Sources
from dragoman.assistant.yaml import KeyConflictError
from dragoman.text import is_visible
from dragoman.text.secret import secrets_in

if TYPE_CHECKING:
    from dragoman.mcp.definition import Definition

Permission = Literal["ask", "allow", "deny"]

Mode = Annotated[
    Include,
    Meta(
        description="always: its tools are in every turn. manual: when the user adds them. agent: when the search "
        "finds them for the prompt."
    ),
]
PermissionKey = Annotated[
    Permission | None,
    Meta(
        description="Whether its tools ask, run without asking (allow) or never run "
        "(deny); null: the session's mode decides."
    ),
]

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FOR_COMMAND = ("args", "env", "cwd")


class Argument(Secret):
    """A command argument, shown as it is in the file, so that `env://NAME` is not expanded."""

    __slots__ = ()

    @property
    def shown(self) -> str:
        """The argument as written in the file."""
        return self._text


class ToolSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of one tool, which override its server's."""

    include: Annotated[
        Include | None, Meta(description="The include mode of this tool, if it differs from the server's.")
    ] = None
    permission: Annotated[
        Permission | None, Meta(description="The permission of this tool, if it differs from the server's.")
    ] = None


class ServerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An MCP server in the agent file."""

    command: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(
            description="The program to start, found on PATH. A name with a slash is a path relative to the agent file."
        ),
    ] = None
    args: Annotated[list[Argument], Meta(description="Its arguments; an argument may be env://NAME.")] = msgspec.field(
        default_factory=list[Argument]
    )
    env: Annotated[
        dict[str, Secret], Meta(description="Environment variables for it, by name; a value may be env://NAME.")
    ] = msgspec.field(default_factory=dict[str, Secret])
    cwd: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(
            description="Its working directory, relative to the agent file. The default "
            "is the directory of the session."
        ),
    ] = None
    url: Annotated[
        Annotated[
            str,
            Meta(pattern=ADDRESS, extra={"expected": "an http or https address with no name or password in it"}),
        ]
        | None,
        Meta(description="The address of a running server, instead of a command."),
    ] = None
    headers: Annotated[
        dict[str, Secret], Meta(description="HTTP headers for every request to it; a value may be env://NAME.")
    ] = msgspec.field(default_factory=dict[str, Secret])
    type: Annotated[
        Literal["stdio", "http", "streamable-http", "sse"] | None,
        Meta(description="The transport of a url: http (streamable), or the older sse. A command always uses stdio."),
    ] = None
    include: Mode = "always"
    permission: PermissionKey = None
    trust: Annotated[
        bool,
        Meta(
            description="Whether to trust the server when it marks a tool as read-only, so "
            "that the tool runs without asking."
        ),
    ] = False
    roots: Annotated[
        bool,
        Meta(description="Whether to send it the session's directories; false for a server that has its own in args."),
    ] = True
    tools: Annotated[dict[str, ToolSettings], Meta(description="Settings of single tools, by name.")] = msgspec.field(
        default_factory=dict[str, ToolSettings]
    )

    def __post_init__(self) -> None:
        if (self.command is None) == (self.url is None):
            raise KeyConflictError("url" if self.url else "command", "expected either command or url")
        if self.command is not None:
            self._check_command()
        else:
            self._check_address()

    def _check_command(self) -> None:
        if self.headers:
            raise KeyConflictError("headers", "can be used only with url; pass secrets of a command in env")
        if self.type not in (None, "stdio"):
            raise KeyConflictError("type", "can be used only with url; a command always uses stdio")
        if any(not name or "=" in name or "\0" in name for name in self.env):
            raise KeyConflictError("env", "expected variable names without =")
        if any("\0" in text for text in _texts(self)):
            raise KeyConflictError("command", "must not contain a NUL character, here or in args, env or cwd")

    def _check_address(self) -> None:
        for key in _FOR_COMMAND:
            if getattr(self, key):
                raise KeyConflictError(key, "can be used only with command; a server at a url is already running")
        if self.type == "stdio":
            raise KeyConflictError("type", "expected http or sse for a url")
        if not all(_HEADER_NAME.fullmatch(name) for name in self.headers):
            raise KeyConflictError("headers", "expected header names without spaces or colons")
        if any(letter in text for text in _closed(self.headers.values()) for letter in "\r\n\0"):
            raise KeyConflictError("headers", "a header must be one line")


class AgentServer(msgspec.Struct, frozen=True):
    """A server as the agent uses it: paths absolute, secrets unexpanded."""

    name: str
    command: str | None = None
    args: tuple[Argument, ...] = ()
    env: Mapping[str, Secret] = {}
    cwd: str | None = None
    url: str | None = None
    headers: Mapping[str, Secret] = {}
    transport: Literal["stdio", "http", "sse"] = "stdio"
    every_tool: ToolSettings = ToolSettings("always")
    """The settings for tools without their own."""
    trust: bool = False
    roots: bool = True
    tools: Mapping[str, ToolSettings] = {}

    @property
    def include(self) -> Include:
        """The include mode of its tools."""
        return self.every_tool.include or "always"

    @property
    def permission(self) -> Permission | None:
        """The permission of its tools, or None if the session's mode decides."""
        return self.every_tool.permission

    @property
    def origin(self) -> str:
        """The kind of place that defines the server, for messages."""
        return "agent file"

    @property
    def removal(self) -> str:
        """How to remove the server from the agent file."""
        return f"`dragoman mcp remove {self.name}` removes it from the agent file"

    def include_of(self, tool: str) -> Include:
        """Return a tool's include mode, or else the server's."""
        settings = self.tools.get(tool)
        return (settings and settings.include) or self.include

    def permission_of(self, tool: str) -> Permission | None:
        """Return a tool's permission, or else the server's. None means that the session's mode decides."""
        settings = self.tools.get(tool)
        return (settings and settings.permission) or self.permission

    def definition(self, environment: Mapping[str, str] = os.environ) -> "Definition":
        """Return the server's definition with its secrets revealed. Raises MissingVariableError."""
        from dragoman.mcp.definition import HttpServer, SseServer, StdioServer

        if self.url is None:
            args = tuple(argument.reveal(environment) for argument in self.args)
            env = _reveal(self.env, environment)
            secrets = _expanded_secrets((*self.args, *self.env.values()), environment)
            return StdioServer(self.name, self.command or "", args, env, self.cwd, secrets, self.roots)
        at_address = SseServer if self.transport == "sse" else HttpServer
        secrets = _expanded_secrets(self.headers.values(), environment)
        return at_address(self.name, self.url, _reveal(self.headers, environment), secrets, self.roots)


def gather_servers(settings: Mapping[str, ServerSettings], sources: Sources) -> tuple[AgentServer, ...]:
    """Return the servers in the order of the file, with absolute paths. Raises ProfileError."""
    return tuple(_place(name, each, sources) for name, each in settings.items())


def _place(name: str, settings: ServerSettings, sources: Sources) -> AgentServer:
    at = f"mcpServers.{name}"
    if not is_visible(name):
        raise sources.refuse(at, "expected a name of printable characters")
    return AgentServer(
        name,
        _place_command(f"{at}.command", settings.command, sources),
        tuple(settings.args),
        settings.env,
        None if settings.cwd is None else sources.place(f"{at}.cwd", settings.cwd),
        settings.url,
        settings.headers,
        _transport(settings),
        ToolSettings(settings.include, settings.permission),
        settings.trust,
        settings.roots,
        settings.tools,
    )


def _place_command(key: str, command: str | None, sources: Sources) -> str | None:
    return command if command is None or "/" not in command else sources.place(key, command)


def _transport(settings: ServerSettings) -> Literal["stdio", "http", "sse"]:
    if settings.command is not None:
        return "stdio"
    return "sse" if settings.type == "sse" else "http"


def _reveal(secrets: Mapping[str, Secret], environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, secret.reveal(environment)) for name, secret in secrets.items())


def _expanded_secrets(values: Iterable[Secret], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values that are secret, judged by the names of their variables. Raises MissingVariableError."""
    named = ((value.variable, value.reveal(environment)) for value in values if value.variable)
    return tuple(secret for name, text in named for secret in secrets_in(name, text))


def _texts(settings: ServerSettings) -> Iterator[str]:
    yield from (settings.command or "", settings.cwd or "")
    yield from (argument.shown for argument in settings.args)
    yield from _closed(settings.env.values())


def _closed(secrets: Iterable[Secret]) -> Iterator[str]:
    """Yield the values written in the file itself. Others are unknown until they are used."""
    yield from (secret.reveal({}) for secret in secrets if secret.variable is None)
