"""MCP servers in the forms that people give them, made into those of the protocol.

["uvx", "mcp-server-time"]                     a command; "uvx mcp-server-time" is the same
"https://tickets.example/mcp"                  an address, spoken to by streamable HTTP
Path(".mcp.json")                              a file of another program: all servers in it
{"time": "uvx mcp-server-time"}                any of these but a file, with a name
StdioServer(…), v1.McpServerHttp(…)            the server in full
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

from dragoman.client.capability_check import CapabilityCheck
from dragoman.client.problem import Refused
from dragoman.mcp.config_files import read_servers
from dragoman.mcp.definition import ROOTS_KEY, AcpServer, Definition, HttpServer, SseServer, StdioServer
from dragoman.protocol import v1

Command = Sequence[str]
Given = v1.McpServer | Definition | Command | str | os.PathLike[str]
McpServers = Iterable[Given] | Mapping[str, Given] | os.PathLike[str]
"""MCP servers for a session, in any of the shapes above; a command or an address alone has to be in a list."""

_RUNNERS = frozenset(("bunx", "node", "npx", "pipx", "python", "python3", "uvx"))
"""Programs that run others: a server is named for the other."""

_ADDRESS = re.compile(r"(?i:https?)://([^\s/?#]*@)?([^\s/?#@]+)\S*")
_OWN = (v1.McpServerStdio, v1.McpServerHttp, v1.McpServerSse, v1.McpServerAcp)
_DEFINITIONS = (StdioServer, HttpServer, SseServer, AcpServer)
_IN_DIRECTORY = 'cd -- "$0" && exec "$@"'
_log = logging.getLogger("dragoman.client")


class BadServer(Refused):
    """The value is no MCP server, or a file of servers cannot be used."""


def as_servers(
    given: McpServers,
    capabilities: v1.AgentCapabilities,
    *,
    agent: str = "the agent",
    cwd: str = "",
    environment: Mapping[str, str] = os.environ,
) -> list[v1.McpServer]:
    """Return the servers for a session in the directory `cwd`, by default the current one.

    Raises BadServer for a value that is none, and MissingCapability for servers that the agent cannot reach.
    """
    reader = _Reader(cwd or str(Path.cwd()), environment)
    return CapabilityCheck(capabilities, agent).servers(reader.read(given))


def to_protocol(definition: Definition) -> v1.McpServer:
    """Return a server as the protocol has it.

    The protocol has no directory for a program: the agent starts it in the session's. One that wants another is
    started by a shell that goes there first.
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
    """Makes servers of the given values, each with a name."""

    def __init__(self, cwd: str, environment: Mapping[str, str]) -> None:
        self._cwd = cwd
        self._environment = environment
        self._names: set[str] = set()

    def read(self, given: McpServers) -> list[v1.McpServer]:
        servers: list[v1.McpServer] = []
        for name, each in _one_by_one(given):
            for server in self._servers(name, each):
                self._names.add(server.name)
                servers.append(server)
        return servers

    def _servers(self, name: str | None, given: Any) -> Iterator[v1.McpServer]:
        if isinstance(given, _OWN):
            yield given if name is None else msgspec.structs.replace(given, name=name)
        elif name is None and _is_file(given):
            yield from (self._finish(definition) for definition in self._in_file(Path(given)))
        else:
            yield self._finish(self._definition(name, given))

    def _definition(self, name: str | None, given: Any) -> Definition:
        if isinstance(given, _DEFINITIONS):
            return given if name is None else msgspec.structs.replace(given, name=name)
        if isinstance(given, str):
            if address := _ADDRESS.fullmatch(given):
                return HttpServer(name or self._new_name(address[2]), given)
            given = _split(given)
            if given and "://" in given[0]:
                raise BadServer("the address of an MCP server has to begin with http:// or https://, without blanks")
        if not _is_command(given):
            raise BadServer(_expected(given))
        program, *args = cast("Sequence[str]", given)
        return StdioServer(name or self._new_name(_name_of(program, args)), program, tuple(args))

    def _in_file(self, path: Path) -> Sequence[Definition]:
        path = Path(self._cwd) / path
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise BadServer(f"the MCP servers in {path} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise BadServer(f"the MCP servers in {path} cannot be read: it is no text in UTF-8") from None
        reading = read_servers(text, self._cwd, self._environment)
        if reading.problems:
            words = "; ".join(
                f"{each.server}: {each.words}" if each.server else each.words for each in reading.problems
            )
            raise BadServer(f"the MCP servers in {path} cannot be used: {words}")
        for note in reading.notes:
            _log.info("%s: %s", path, note)
        return reading.servers

    def _finish(self, definition: Definition) -> v1.McpServer:
        """Return a server with the whole path of its program; one that we do not find the agent may still find."""
        if isinstance(definition, StdioServer):
            found = self._find(definition.command, definition.cwd or self._cwd)
            cwd = None if definition.cwd == self._cwd else definition.cwd
            definition = msgspec.structs.replace(definition, command=found, cwd=cwd)
        return to_protocol(definition)

    def _find(self, command: str, directory: str) -> str:
        if os.path.dirname(command):  # noqa: PTH120 -- Path drops the ./ that decides it
            return os.path.normpath(os.path.join(directory, command))  # noqa: PTH118 -- texts, as definitions have them
        return shutil.which(command, path=self._environment.get("PATH")) or command

    def _new_name(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self._names:
            number += 1
            name = f"{wanted}-{number}"
        return name


def _one_by_one(given: Any) -> Iterator[tuple[str | None, Any]]:
    if isinstance(given, os.PathLike):
        yield None, given
    elif isinstance(given, Mapping):
        yield from cast("Mapping[str, Any]", given).items()
    elif isinstance(given, str) or not isinstance(given, Iterable):
        shapes = "a list, a mapping from names or the Path of a file"
        raise BadServer(f"MCP servers are given as {shapes}, got {type(given).__name__}")
    else:
        yield from ((None, each) for each in cast("Iterable[Any]", given))


def _is_file(given: Any) -> bool:
    return isinstance(given, os.PathLike) or (
        isinstance(given, str) and re.fullmatch(r"\S+\.jsonc?", given) is not None
    )


def _is_command(given: Any) -> bool:
    if not isinstance(given, Sequence) or not given:
        return False
    words = cast("Sequence[Any]", given)
    return all(isinstance(word, str) and "\0" not in word for word in words) and bool(words[0])


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise BadServer(f"the command of an MCP server cannot be read: {error}; give it as a list of words") from None


def _name_of(program: str, args: Sequence[str]) -> str:
    """Return a name that people know the program by: `npx -y @scope/server-time@1` is `server-time`."""
    named = PurePath(program).name
    if named in _RUNNERS:
        named = next((PurePath(each).name for each in args if not each.startswith("-")), named)
    return re.sub(r"(?<=.)@.*|\.(py|js|mjs|ts)$", "", named)


def _headers(definition: HttpServer | SseServer) -> list[v1.HttpHeader]:
    return [v1.HttpHeader(name=name, value=value) for name, value in definition.headers]


def _expected(given: Any) -> str:
    shape = "an empty command" if given in ("", [], ()) else type(given).__name__
    return f"expected an MCP server as a command, an address, the Path of a file or a definition, got {shape}"
