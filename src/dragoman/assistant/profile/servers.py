"""The key `mcpServers`: the agent's own MCP servers, which its sessions share.

The shape is that of common clients, a name and then `command`, `args`, `env`, `cwd`, or `url`, `headers`; ours are
`include`, `permission`, `trust` and `tools`. Secrets are revealed when the server is started, and not before.
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
from dragoman.assistant.yaml import KeyConflict
from dragoman.text import is_visible

if TYPE_CHECKING:
    from dragoman.mcp.definition import Definition

Permission = Literal["ask", "allow", "deny"]

Mode = Annotated[
    Include,
    Meta(
        description="always: its tools are in every turn. manual: once a person adds them. agent: when the search "
        "finds them for the prompt."
    ),
]
PermissionKey = Annotated[
    Permission | None,
    Meta(
        description="Whether its tools ask, run unasked (allow) or never run (deny); null: as the session's mode says."
    ),
]

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FOR_COMMAND = ("args", "env", "cwd")


class Argument(Secret):
    """An argument of a command: shown to people as the file has it, so that `env://NAME` stays closed."""

    __slots__ = ()

    @property
    def shown(self) -> str:
        """The argument as it stands in the file."""
        return self._text


class ToolSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of one tool, in place of its server's."""

    include: Annotated[
        Include | None, Meta(description="The mode of this tool, when it is not that of its server.")
    ] = None
    permission: Annotated[
        Permission | None, Meta(description="The permission of this tool, when it is not that of its server.")
    ] = None


class ServerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A server as a person writes it."""

    command: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(
            description="The program to start, found on PATH. One with a slash in it is a path, relative to the "
            "agent file."
        ),
    ] = None
    args: Annotated[list[Argument], Meta(description="Its arguments; a whole one may be env://NAME.")] = msgspec.field(
        default_factory=list[Argument]
    )
    env: Annotated[
        dict[str, Secret], Meta(description="Environment variables for it, by name; a value may be env://NAME.")
    ] = msgspec.field(default_factory=dict[str, Secret])
    cwd: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(description="Where it runs, relative to the agent file. The default is the directory of the session."),
    ] = None
    url: Annotated[
        Annotated[
            str,
            Meta(pattern=ADDRESS, extra={"expected": "an http or https address with no name or password in it"}),
        ]
        | None,
        Meta(description="The address of a server that runs already, in place of a command."),
    ] = None
    headers: Annotated[
        dict[str, Secret], Meta(description="HTTP headers for every request to it; a value may be env://NAME.")
    ] = msgspec.field(default_factory=dict[str, Secret])
    type: Annotated[
        Literal["stdio", "http", "streamable-http", "sse"] | None,
        Meta(
            description="How an address is spoken to: http (streamable), or the older sse. A command is always stdio."
        ),
    ] = None
    include: Mode = "always"
    permission: PermissionKey = None
    trust: Annotated[
        bool, Meta(description="Whether to believe it about which of its tools only read, so that those run unasked.")
    ] = False
    roots: Annotated[
        bool,
        Meta(description="Whether it is told the session's directories; false for a server that has its own in args."),
    ] = True
    tools: Annotated[dict[str, ToolSettings], Meta(description="What counts for single tools, by their names.")] = (
        msgspec.field(default_factory=dict[str, ToolSettings])
    )

    def __post_init__(self) -> None:
        if (self.command is None) == (self.url is None):
            raise KeyConflict("url" if self.url else "command", "expected either command or url")
        if self.command is not None:
            self._check_command()
        else:
            self._check_address()

    def _check_command(self) -> None:
        if self.headers:
            raise KeyConflict("headers", "goes with url; a command takes its secrets from env")
        if self.type not in (None, "stdio"):
            raise KeyConflict("type", "a command is always stdio; expected a url beside it")
        if any(not name or "=" in name or "\0" in name for name in self.env):
            raise KeyConflict("env", "expected names of variables, without =")
        if any("\0" in text for text in _texts(self)):
            raise KeyConflict("command", "no program takes a NUL character, here or in args, env or cwd")

    def _check_address(self) -> None:
        for key in _FOR_COMMAND:
            if getattr(self, key):
                raise KeyConflict(key, "goes with command; a server at a url is started by somebody else")
        if self.type == "stdio":
            raise KeyConflict("type", "expected http or sse for a url")
        if not all(_HEADER_NAME.fullmatch(name) for name in self.headers):
            raise KeyConflict("headers", "expected names of headers, without blanks and colons")
        if any(letter in text for text in _closed(self.headers.values()) for letter in "\r\n\0"):
            raise KeyConflict("headers", "a header has one line")


class AgentServer(msgspec.Struct, frozen=True):
    """A server as the agent uses it: paths absolute, secrets still closed."""

    name: str
    command: str | None = None
    args: tuple[Argument, ...] = ()
    env: Mapping[str, Secret] = {}
    cwd: str | None = None
    url: str | None = None
    headers: Mapping[str, Secret] = {}
    transport: Literal["stdio", "http", "sse"] = "stdio"
    every_tool: ToolSettings = ToolSettings("always")
    """The settings of all its tools, where a tool has none of its own."""
    trust: bool = False
    roots: bool = True
    tools: Mapping[str, ToolSettings] = {}

    @property
    def include(self) -> Include:
        """The mode of its tools."""
        return self.every_tool.include or "always"

    @property
    def permission(self) -> Permission | None:
        """The permission of its tools; None: as the session's mode says."""
        return self.every_tool.permission

    @property
    def origin(self) -> str:
        """The agent file."""
        return "agent file"

    @property
    def removal(self) -> str:
        """The command that takes it out of the agent file."""
        return f"`dragoman mcp remove {self.name}` takes it out of the agent file"

    def include_of(self, tool: str) -> Include:
        """Return the mode of a tool: its own, else the server's."""
        settings = self.tools.get(tool)
        return (settings and settings.include) or self.include

    def permission_of(self, tool: str) -> Permission | None:
        """Return the permission of a tool: its own, else the server's; None: as the session's mode says."""
        settings = self.tools.get(tool)
        return (settings and settings.permission) or self.permission

    def definition(self, environment: Mapping[str, str] = os.environ) -> "Definition":
        """Return the definition of the server with its secrets revealed; raises MissingVariable."""
        from dragoman.mcp.definition import HttpServer, SseServer, StdioServer

        if self.url is None:
            args = tuple(argument.reveal(environment) for argument in self.args)
            env = _reveal(self.env, environment)
            secrets = self._secret_args(environment)
            return StdioServer(self.name, self.command or "", args, env, self.cwd, secrets, self.roots)
        at_address = SseServer if self.transport == "sse" else HttpServer
        return at_address(self.name, self.url, _reveal(self.headers, environment), roots=self.roots)

    def _secret_args(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """Return the arguments that come from the environment, to be hidden like it; raises MissingVariable."""
        return tuple(argument.reveal(environment) for argument in self.args if argument.variable)


def gather_servers(settings: Mapping[str, ServerSettings], sources: Sources) -> tuple[AgentServer, ...]:
    """Return the servers of the file in its order, paths made absolute; raises ProfileError."""
    return tuple(_place(name, each, sources) for name, each in settings.items())


def _place(name: str, settings: ServerSettings, sources: Sources) -> AgentServer:
    at = f"mcpServers.{name}"
    if not is_visible(name):
        raise sources.refuse(at, "expected a name that can be shown")
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


def _texts(settings: ServerSettings) -> Iterator[str]:
    yield from (settings.command or "", settings.cwd or "")
    yield from (argument.shown for argument in settings.args)
    yield from _closed(settings.env.values())


def _closed(secrets: Iterable[Secret]) -> Iterator[str]:
    """Yield those that stand in the file itself; the others are not known before they are used."""
    yield from (secret.reveal({}) for secret in secrets if secret.variable is None)
