"""MCP servers in the forms that users write, converted to those of the protocol.

["uvx", "mcp-server-time"]                     a command, or the same as text: "uvx mcp-server-time"
"https://tickets.example/mcp"                  a URL, for streamable HTTP
Path(".mcp.json")                              a file of another program, for all servers in it
{"time": "uvx mcp-server-time"}                a name for any of these except a file
StdioServer(…), v1.McpServerHttp(…)            the complete definition
"""

import logging
import os
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, cast

import msgspec

from dragoman.client.connection.capability_check import CapabilityCheck
from dragoman.client.problem import RequestNotSentError
from dragoman.mcp.config_files import read_servers
from dragoman.mcp.definition import ROOTS_KEY, AcpServer, Definition, HttpServer, SseServer, StdioServer
from dragoman.protocol import v1

Command = Sequence[str]
ServerSource = v1.McpServer | Definition | Command | str | os.PathLike[str]
McpServers = Iterable[ServerSource] | Mapping[str, ServerSource] | os.PathLike[str]
"""MCP servers for a session, in any of the forms above. A single command or URL must be in a list."""

_RUNNERS = frozenset(("bunx", "node", "npx", "pipx", "python", "python3", "uvx"))
"""Programs that run other programs. A server gets the name of the other program."""

_ADDRESS = re.compile(r"(?i:https?)://([^\s/?#]*@)?([^\s/?#@]+)\S*")
_OWN = (v1.McpServerStdio, v1.McpServerHttp, v1.McpServerSse, v1.McpServerAcp)
_DEFINITIONS = (StdioServer, HttpServer, SseServer, AcpServer)
_IN_DIRECTORY = 'cd -- "$0" && exec "$@"'
_log = logging.getLogger("dragoman.client")


class InvalidServerError(RequestNotSentError):
    """The value is not an MCP server, or a file of servers cannot be used."""


def as_servers(
    servers: McpServers,
    capabilities: v1.AgentCapabilities,
    *,
    agent: str = "the agent",
    cwd: str = "",
    environment: Mapping[str, str] = os.environ,
) -> list[v1.McpServer]:
    """Return the servers for a session in the directory `cwd`, by default the current one.

    Raises InvalidServerError for an invalid value, and MissingCapabilityError if the agent lacks the transport.
    """
    reader = _Reader(cwd or str(Path.cwd()), environment)
    return CapabilityCheck(capabilities, agent).servers(reader.read(servers))


def to_protocol(definition: Definition) -> v1.McpServer:
    """Convert a definition to the protocol's type.

    The protocol has no directory for a server program, so the agent starts it in the session's directory. For another
    directory a shell changes to it first.
    """
    meta = {ROOTS_KEY: False} if not getattr(definition, "roots", True) else None
    match definition:
        case StdioServer():
            command = [definition.command, *definition.args]
            if definition.cwd is not None:
                command = ["/bin/sh", "-c", _IN_DIRECTORY, definition.cwd, *command]
            env = [v1.EnvVariable(name=name, value=value) for name, value in definition.env]
            return v1.McpServerStdio(name=definition.name, command=command[0], args=command[1:], env=env, meta=meta)
        case HttpServer():
            return v1.McpServerHttp(name=definition.name, url=definition.url, headers=_headers(definition), meta=meta)
        case SseServer():
            return v1.McpServerSse(name=definition.name, url=definition.url, headers=_headers(definition), meta=meta)
        case AcpServer():
            return v1.McpServerAcp(name=definition.name, server_id=definition.server_id)


class _Reader:
    """Converts values to servers, and names those without a name."""

    def __init__(self, cwd: str, environment: Mapping[str, str]) -> None:
        self._cwd = cwd
        self._environment = environment
        self._names: set[str] = set()

    def read(self, source: McpServers) -> list[v1.McpServer]:
        servers: list[v1.McpServer] = []
        for name, each in _one_by_one(source):
            for server in self._servers(name, each):
                self._names.add(server.name)
                servers.append(server)
        return servers

    def _servers(self, name: str | None, value: Any) -> Iterator[v1.McpServer]:
        if isinstance(value, _OWN):
            yield value if name is None else msgspec.structs.replace(value, name=name)
        elif name is None and _is_file(value):
            yield from (self._finish(definition) for definition in self._in_file(Path(value)))
        else:
            yield self._finish(self._definition(name, value))

    def _definition(self, name: str | None, value: Any) -> Definition:
        # A text is a URL if it looks like one, and otherwise a command line.
        if isinstance(value, _DEFINITIONS):
            return value if name is None else msgspec.structs.replace(value, name=name)
        if isinstance(value, str):
            if address := _ADDRESS.fullmatch(value):
                return HttpServer(name or self._new_name(address[2]), value)
            value = _split(value)
            if value and "://" in value[0]:
                raise InvalidServerError("the URL of an MCP server must start with http:// or https://, without spaces")
        if not _is_command(value):
            raise InvalidServerError(_expected(value))
        program, *args = cast("Sequence[str]", value)
        return StdioServer(name or self._new_name(_name_of(program, args)), program, tuple(args))

    def _in_file(self, path: Path) -> Sequence[Definition]:
        path = Path(self._cwd) / path
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise InvalidServerError(f"the MCP servers in {path} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise InvalidServerError(f"the MCP servers in {path} cannot be read: it is not UTF-8 text") from None
        reading = read_servers(text, self._cwd, self._environment)
        if reading.problems:
            problems = "; ".join(
                f"{each.server}: {each.message}" if each.server else each.message for each in reading.problems
            )
            raise InvalidServerError(f"the MCP servers in {path} cannot be used: {problems}")
        for note in reading.notes:
            _log.info("%s: %s", path, note)
        return reading.servers

    def _finish(self, definition: Definition) -> v1.McpServer:
        """Return a server with the absolute path of its program. If it is not found, keep the name for the agent."""
        if isinstance(definition, StdioServer):
            found = self._find(definition.command, definition.cwd or self._cwd)
            cwd = None if definition.cwd == self._cwd else definition.cwd
            definition = msgspec.structs.replace(definition, command=found, cwd=cwd)
        return to_protocol(definition)

    def _find(self, command: str, directory: str) -> str:
        if os.path.dirname(command):  # noqa: PTH120 -- Path drops the ./ that decides it
            return os.path.normpath(os.path.join(directory, command))  # noqa: PTH118 -- texts, as definitions have them
        return shutil.which(command, path=self._environment.get("PATH")) or command

    def _new_name(self, base: str) -> str:
        name, number = base, 1
        while name in self._names:
            number += 1
            name = f"{base}-{number}"
        return name


def _one_by_one(value: Any) -> Iterator[tuple[str | None, Any]]:
    if isinstance(value, os.PathLike):
        yield None, value
    elif isinstance(value, Mapping):
        yield from cast("Mapping[str, Any]", value).items()
    elif isinstance(value, str) or not isinstance(value, Iterable):
        shapes = "a list, a mapping by name or the Path of a file"
        raise InvalidServerError(f"expected MCP servers as {shapes}, got {type(value).__name__}")
    else:
        yield from ((None, each) for each in cast("Iterable[Any]", value))


def _is_file(value: Any) -> bool:
    return isinstance(value, os.PathLike) or (
        isinstance(value, str) and re.fullmatch(r"\S+\.jsonc?", value) is not None
    )


def _is_command(value: Any) -> bool:
    if not isinstance(value, Sequence) or not value:
        return False
    words = cast("Sequence[Any]", value)
    return all(isinstance(word, str) and "\0" not in word for word in words) and bool(words[0])


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise InvalidServerError(
            f"the command of an MCP server cannot be read: {error}; pass it as a list of words"
        ) from None


def _name_of(program: str, args: Sequence[str]) -> str:
    """Return the usual name of a program: `npx -y @scope/server-time@1` is `server-time`."""
    named = PurePath(program).name
    if named in _RUNNERS:
        named = next((PurePath(each).name for each in args if not each.startswith("-")), named)
    return re.sub(r"(?<=.)@.*|\.(py|js|mjs|ts)$", "", named)


def _headers(definition: HttpServer | SseServer) -> list[v1.HttpHeader]:
    return [v1.HttpHeader(name=name, value=value) for name, value in definition.headers]


def _expected(value: Any) -> str:
    shape = "an empty command" if value in ("", [], ()) else type(value).__name__
    return f"expected an MCP server as a command, an address, the Path of a file or a definition, got {shape}"
