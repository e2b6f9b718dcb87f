"""MCP server settings in the files of other programs: JSON with comments.

    {"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"], "env": {}, "cwd": "."}}}    most programs
    {"servers": {"time": {"type": "http", "url": "https://…", "headers": {}}}}                          VS Code
    {"context_servers": {"time": {"command": {"path": "uvx", "args": []}}}}                             Zed

`${NAME}`, `${NAME:-default}`, `${env:NAME}` and a whole `env://NAME` are read from the environment.
`${workspaceFolder}` is the session's directory. An unusable entry does not affect the others.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, cast

import msgspec

from dragoman.mcp.definition import Definition, HttpServer, SseServer, StdioServer
from dragoman.text import is_visible, visible
from dragoman.text.secret import secrets_in

SHAPES = ("mcpServers", "context_servers", "servers")
"""The keys that may contain the servers, in order of preference."""

# Each pattern matches any text after its first letter, so no character is read twice.
_STRING = r'("(?:\\.|[^"\\])*+(?:"|\\?\Z))'
_COMMENT = re.compile(_STRING + r"|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMA = re.compile(_STRING + r"|,(?=\s*[}\]])", re.DOTALL)
_PLACEHOLDER = re.compile(r"\$\{([^{}]*)\}")
_VARIABLE = re.compile(r"(?:env:)?([A-Za-z_]\w*)(?::-(.*))?", re.DOTALL)
_EDITOR_INPUT = re.compile(r"(input|command|config):(.*)", re.DOTALL)
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_ADDRESS = re.compile(r"https?://[^\s/]+\S*")
_KINDS: dict[str, Literal["stdio", "http", "sse"]] = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "streamablehttp": "http",
    "sse": "sse",
}
_FOLDERS = ("workspaceFolder", "workspaceRoot")
_IN_ENVIRONMENT = "env://"


class ServerProblem(msgspec.Struct, frozen=True):
    """A problem with one server, or with the whole file if `server` is None."""

    message: str
    server: str | None = None


class ServersFile(msgspec.Struct, frozen=True):
    """The usable servers of a file, the problems with the others, and notes for the user."""

    servers: tuple[Definition, ...] = ()
    problems: tuple[ServerProblem, ...] = ()
    notes: tuple[str, ...] = ()


def read_servers(text: str, folder: str, environment: Mapping[str, str]) -> ServersFile:
    """Read a file's text for a session in this directory. Problems never repeat a value of the file."""
    duplicates: list[str] = []
    try:
        root = json.loads(_without_comments(text), object_pairs_hook=lambda pairs: _object(pairs, duplicates))
        entries = _find(root)
    except json.JSONDecodeError as error:
        return _unusable(f"line {error.lineno}, column {error.colno}: not valid JSON: {error.msg}")
    except _EntryError as problem:
        return _unusable(str(problem))
    except (ValueError, RecursionError):
        return _unusable("it has a number that is too long, or is nested too deeply")
    reader = _Reader(folder, environment)
    for name, entry in entries.items():
        reader.add(name, entry)
    duplicate_notes = [f"{name!r} occurs twice; the last one is used" for name in duplicates]
    return ServersFile(tuple(reader.servers), tuple(reader.problems), (*duplicate_notes, *reader.notes))


class _EntryError(Exception):
    """A problem with an entry or with the whole file."""


def _unusable(problem: str) -> ServersFile:
    return ServersFile(problems=(ServerProblem(problem),))


def _without_comments(text: str) -> str:
    """Replace comments and trailing commas with blanks. Lines and columns stay the same."""
    for pattern in (_COMMENT, _LAST_COMMA):
        text = pattern.sub(lambda found: found[1] or re.sub(r"[^\n]", " ", found[0]), text)
    return text.removeprefix("\ufeff")


def _object(pairs: list[tuple[str, Any]], duplicates: list[str]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        names = [name for name, _ in pairs]
        duplicates += [name for name in result if names.count(name) > 1]
    return result


def _find(root: Any) -> dict[str, Any]:
    if isinstance(root, dict):
        keys = cast("dict[str, Any]", root)
        nested: Any = keys.get("mcp")  # as in VS Code's settings
        places = [keys, cast("dict[str, Any]", nested)] if isinstance(nested, dict) else [keys]
        for place in places:
            for shape in SHAPES:
                entries = place.get(shape)
                if isinstance(entries, dict):
                    return cast("dict[str, Any]", entries)
    raise _EntryError(f"it has no MCP servers: expected an object with {', '.join(SHAPES[:-1])} or {SHAPES[-1]}")


class _Reader:
    """Converts entries into definitions, and collects problems and notes."""

    def __init__(self, folder: str, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = environment
        self._secrets: list[str] = []
        """Secret values of variables that the current entry uses."""
        self.servers: list[Definition] = []
        self.problems: list[ServerProblem] = []
        self.notes: list[str] = []

    def add(self, name: str, entry: Any) -> None:
        self._secrets = []
        try:
            settings = _settings(name, entry)
            if settings.get("disabled") is True or settings.get("enabled") is False:
                self.notes.append(f"{name} is turned off in the file")
                return
            self.servers.append(self._define(name, settings))
        except _EntryError as problem:
            self.problems.append(ServerProblem(visible(str(problem)), visible(name)))
            return
        if "envFile" in settings:
            self.notes.append(f"the envFile of {name} is not read; put the needed variables into env")

    def _define(self, name: str, entry: dict[str, Any]) -> Definition:
        command, url = entry.get("command"), _address_of(entry)
        if command is not None and url is not None:
            raise _EntryError("it has both a command and a url; expected one of them")
        kind = _kind_of(entry, "stdio" if command is not None else "http")
        if command is not None:
            if kind != "stdio":
                raise _EntryError(f"its type is {kind}, which needs a url; a command uses stdio")
            return self._program(name, entry)
        if url is None:
            raise _EntryError(_missing_target_message(entry))
        if kind == "stdio":
            raise _EntryError("its type is stdio, which needs a command; a url uses http or sse")
        return self._at_address(name, url, entry, kind)

    def _program(self, name: str, entry: dict[str, Any]) -> StdioServer:
        command = entry["command"]
        if isinstance(command, dict):  # the older form of Zed
            older = cast("dict[str, Any]", command)
            entry, command = {**entry, **older}, older.get("path")
        args = tuple(self._text(f"args[{index}]", _digits(each)) for index, each in enumerate(_list(entry, "args")))
        program = self._text("command", command)
        if not program:
            raise _EntryError("command: expected the program to start, got an empty string")
        env, cwd = tuple(self._pairs("env", entry, _check_variable)), self._directory(entry.get("cwd"))
        return StdioServer(name, program, args, env, cwd, tuple(self._secrets), _roots(entry))

    def _at_address(
        self, name: str, address: Any, entry: dict[str, Any], kind: Literal["http", "sse"]
    ) -> HttpServer | SseServer:
        url = self._text("url", address)
        if not _ADDRESS.fullmatch(url):
            raise _EntryError("url: expected an http or https address")
        headers = tuple(self._pairs("headers", entry, _check_header))
        at_address = SseServer if kind == "sse" else HttpServer
        return at_address(name, url, headers, tuple(self._secrets), _roots(entry))

    def _pairs(self, key: str, entry: dict[str, Any], check: Callable[[str, str], None]) -> Iterator[tuple[str, str]]:
        pairs: Any = entry.get(key) or {}
        if not isinstance(pairs, dict):
            raise _EntryError(f"{key}: expected an object that maps names to strings, got {_kind(pairs)}")
        for name, value in cast("dict[str, Any]", pairs).items():
            if value is not None:
                text = self._text(f"{key}.{name}", _digits(value))
                check(name, text)
                yield name, text

    def _directory(self, path: Any) -> str | None:
        if path is None:
            return None
        return os.path.join(self._folder, self._text("cwd", path))  # noqa: PTH118 -- a text, as definitions have it

    def _text(self, key: str, value: Any) -> str:
        """Return a string with its placeholders filled in."""
        if not isinstance(value, str):
            raise _EntryError(f"{key}: expected a string, got {_kind(value)}")
        if value.startswith(_IN_ENVIRONMENT):
            text = self._look_up(key, value.removeprefix(_IN_ENVIRONMENT), None)
        else:
            text = _PLACEHOLDER.sub(lambda found: self._fill(key, found), value)
        if "\0" in text or not _is_unicode(text):
            raise _EntryError(f"{key}: it contains a character that programs cannot receive")
        return text

    def _fill(self, key: str, found: "re.Match[str]") -> str:
        inner = found[1]
        if inner in _FOLDERS:
            return self._folder
        if inner == "userHome":
            return self._look_up(key, "HOME", None)
        if asked := _EDITOR_INPUT.fullmatch(inner):
            problem = f"{key}: only the editor can fill in its {asked[1]} {asked[2]!r}"
            raise _EntryError(f"{problem}; use ${{env:NAME}} instead and set that variable")
        variable = _VARIABLE.fullmatch(inner)
        return found[0] if variable is None else self._look_up(key, variable[1], variable[2])

    def _look_up(self, key: str, name: str, default: str | None) -> str:
        value = self._environment.get(name) or default
        if value is None:
            raise _EntryError(f"{key}: the environment variable {name} is not set; set it and try again")
        self._secrets += secrets_in(name, value)
        return value


def _settings(name: str, entry: Any) -> dict[str, Any]:
    if not is_visible(name):
        raise _EntryError("expected a name of printable characters")
    if not isinstance(entry, dict):
        raise _EntryError(f"expected an object with command or url, got {_kind(entry)}")
    return cast("dict[str, Any]", entry)


def _check_variable(name: str, _value: str) -> None:
    if not name or "=" in name or "\0" in name or not _is_unicode(name):
        raise _EntryError("env: expected variable names without =")


def _check_header(name: str, value: str) -> None:
    if not _HEADER_NAME.fullmatch(name):
        raise _EntryError("headers: expected header names without spaces or colons")
    if "\r" in value or "\n" in value:
        raise _EntryError(f"headers.{name}: a header must be one line")


def _address_of(entry: dict[str, Any]) -> Any:
    return next((entry[key] for key in ("url", "serverUrl", "httpUrl") if entry.get(key) is not None), None)


def _kind_of(entry: dict[str, Any], default: Literal["stdio", "http"]) -> Literal["stdio", "http", "sse"]:
    named = entry.get("type") or entry.get("transport") or default
    kind = _KINDS.get(re.sub("[-_ ]", "", named).lower()) if isinstance(named, str) else None
    if kind is None:
        raise _EntryError("type: expected stdio, http or sse")
    return kind


def _missing_target_message(entry: dict[str, Any]) -> str:
    if "settings" in entry or entry.get("source") == "extension":
        return "a Zed extension starts it, which only works in Zed; expected a command or a url"
    return "expected a command or a url"


def _roots(entry: dict[str, Any]) -> bool:
    value = entry.get("roots", True)
    if not isinstance(value, bool):
        raise _EntryError(f"roots: expected true or false, got {_kind(value)}")
    return value


def _list(entry: dict[str, Any], key: str) -> list[Any]:
    values: Any = entry.get(key) or []
    if not isinstance(values, list):
        raise _EntryError(f"{key}: expected a list of strings, got {_kind(values)}")
    return cast("list[Any]", values)


def _digits(value: Any) -> Any:
    """Return a number as text, because ports are often written as numbers."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
        case _:
            return "an object"
