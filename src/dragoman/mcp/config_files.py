"""Files in which other programs keep their MCP servers, read as they are: JSON, with comments allowed.

    {"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"], "env": {}, "cwd": "."}}}    most of them
    {"servers": {"time": {"type": "http", "url": "https://…", "headers": {}}}}                          VS Code
    {"context_servers": {"time": {"command": {"path": "uvx", "args": []}}}}                             Zed

`${NAME}`, `${NAME:-default}`, `${env:NAME}` and a whole `env://NAME` come from the environment, `${workspaceFolder}`
is the directory of the session. One entry that cannot be used costs no other.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, cast

import msgspec

from dragoman.mcp.definition import Definition, HttpServer, SseServer, StdioServer
from dragoman.text import is_visible

SHAPES = ("mcpServers", "context_servers", "servers")
"""The keys under which the servers stand, in the order in which they are looked for."""

_NOT_SECRET = frozenset(("HOME", "LOGNAME", "PATH", "PWD", "SHELL", "TMPDIR", "USER"))
"""Variables whose values may be shown; any other may be a secret."""

# Each pattern matches any text that follows its first letter, so that no character is looked at twice.
_STRING = r'("(?:\\.|[^"\\])*+(?:"|\\?\Z))'
_COMMENT = re.compile(_STRING + r"|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMA = re.compile(_STRING + r"|,(?=\s*[}\]])", re.DOTALL)
_PLACEHOLDER = re.compile(r"\$\{([^{}]*)\}")
_VARIABLE = re.compile(r"(?:env:)?([A-Za-z_]\w*)(?::-(.*))?", re.DOTALL)
_ASKED = re.compile(r"(input|command|config):(.*)", re.DOTALL)
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
    """A problem with one server; without a name, with the file."""

    words: str
    server: str | None = None


class ServersFile(msgspec.Struct, frozen=True):
    """The usable servers of a file, the problems with the others, and notes for the reader."""

    servers: tuple[Definition, ...] = ()
    problems: tuple[ServerProblem, ...] = ()
    notes: tuple[str, ...] = ()


def read_servers(text: str, folder: str, environment: Mapping[str, str]) -> ServersFile:
    """Read the text of a file for a session in this directory. No problem repeats a value of the file."""
    duplicates: list[str] = []
    try:
        root = json.loads(_without_comments(text), object_pairs_hook=lambda pairs: _object(pairs, duplicates))
        entries = _find(root)
    except json.JSONDecodeError as error:
        return _unusable(f"line {error.lineno}, column {error.colno}: this is no JSON: {error.msg}")
    except _Unusable as problem:
        return _unusable(str(problem))
    except (ValueError, RecursionError):
        return _unusable("it is JSON with a number too long, or nested too deeply")
    reader = _Reader(folder, environment)
    for name, entry in entries.items():
        reader.take(name, entry)
    twice = [f"{name!r} is there twice; the last one counts" for name in duplicates]
    return ServersFile(tuple(reader.servers), tuple(reader.problems), (*twice, *reader.notes))


class _Unusable(Exception):
    """A problem with an entry, or with the whole file."""


def _unusable(words: str) -> ServersFile:
    return ServersFile(problems=(ServerProblem(words),))


def _without_comments(text: str) -> str:
    """Replace comments and trailing commas by blanks, so that lines and columns stay the same."""
    for pattern in (_COMMENT, _LAST_COMMA):
        text = pattern.sub(lambda found: found[1] or re.sub(r"[^\n]", " ", found[0]), text)
    return text.removeprefix("\ufeff")


def _object(pairs: list[tuple[str, Any]], duplicates: list[str]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        duplicates += [name for name in made if names.count(name) > 1]
    return made


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
    raise _Unusable(f"it has no MCP servers: expected an object with {', '.join(SHAPES[:-1])} or {SHAPES[-1]} in it")


class _Reader:
    """Makes definitions of entries, and collects problems and notes."""

    def __init__(self, folder: str, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = environment
        self.servers: list[Definition] = []
        self.problems: list[ServerProblem] = []
        self.notes: list[str] = []

    def take(self, name: str, entry: Any) -> None:
        try:
            settings = _settings(name, entry)
            if settings.get("disabled") is True or settings.get("enabled") is False:
                self.notes.append(f"{name} is turned off in the file")
                return
            self.servers.append(self._define(name, settings))
        except _Unusable as problem:
            self.problems.append(ServerProblem(str(problem), name))
            return
        if "envFile" in settings:
            self.notes.append(f"the envFile of {name} is not read; put what is needed of it into env")

    def _define(self, name: str, entry: dict[str, Any]) -> Definition:
        command, url = entry.get("command"), _address_of(entry)
        if command is not None and url is not None:
            raise _Unusable("it has both a command and a url; expected one of them")
        kind = _kind_of(entry, "stdio" if command is not None else "http")
        if command is not None:
            if kind != "stdio":
                raise _Unusable(f"its type is {kind}, which goes with a url; a command is stdio")
            return self._program(name, entry)
        if url is None:
            raise _Unusable(_nothing_to_start(entry))
        if kind == "stdio":
            raise _Unusable("its type is stdio, which goes with a command; a url is http or sse")
        return self._at_address(name, url, entry, kind)

    def _program(self, name: str, entry: dict[str, Any]) -> StdioServer:
        command = entry["command"]
        if isinstance(command, dict):  # as Zed had it
            older = cast("dict[str, Any]", command)
            entry, command = {**entry, **older}, older.get("path")
        given = [self._text(f"args[{index}]", _digits(each)) for index, each in enumerate(_list(entry, "args"))]
        program, _ = self._text("command", command)
        if not program:
            raise _Unusable("command: expected the program to start, got an empty text")
        return StdioServer(
            name,
            program,
            tuple(text for text, _ in given),
            tuple(self._pairs("env", entry, _check_variable)),
            self._directory(entry.get("cwd")),
            tuple(text for text, is_secret in given if is_secret),
            roots=_roots(entry),
        )

    def _at_address(
        self, name: str, given: Any, entry: dict[str, Any], kind: Literal["http", "sse"]
    ) -> HttpServer | SseServer:
        url, is_secret = self._text("url", given)
        if not _ADDRESS.fullmatch(url):
            raise _Unusable("url: expected an http or https address")
        headers = tuple(self._pairs("headers", entry, _check_header))
        at_address = SseServer if kind == "sse" else HttpServer
        return at_address(name, url, headers, secret_path=is_secret, roots=_roots(entry))

    def _pairs(self, key: str, entry: dict[str, Any], check: Callable[[str, str], None]) -> Iterator[tuple[str, str]]:
        given: Any = entry.get(key) or {}
        if not isinstance(given, dict):
            raise _Unusable(f"{key}: expected an object of texts by name, got {_kind(given)}")
        for name, value in cast("dict[str, Any]", given).items():
            if value is not None:
                text, _ = self._text(f"{key}.{name}", _digits(value))
                check(name, text)
                yield name, text

    def _directory(self, given: Any) -> str | None:
        if given is None:
            return None
        path, _ = self._text("cwd", given)
        return os.path.join(self._folder, path)  # noqa: PTH118 -- a text, as definitions have it

    def _text(self, key: str, value: Any) -> tuple[str, bool]:
        """Return a text with its placeholders filled in, and whether it may be secret by that."""
        if not isinstance(value, str):
            raise _Unusable(f"{key}: expected text, got {_kind(value)}")
        used: set[str] = set()
        if value.startswith(_IN_ENVIRONMENT):
            text = self._look_up(key, value.removeprefix(_IN_ENVIRONMENT), None, used)
        else:
            text = _PLACEHOLDER.sub(lambda found: self._fill(key, found, used), value)
        if "\0" in text or not _is_unicode(text):
            raise _Unusable(f"{key}: it has a character that no program takes")
        return text, bool(used - _NOT_SECRET)

    def _fill(self, key: str, found: "re.Match[str]", used: set[str]) -> str:
        inner = found[1]
        if inner in _FOLDERS:
            return self._folder
        if inner == "userHome":
            return self._look_up(key, "HOME", None, used)
        if asked := _ASKED.fullmatch(inner):
            words = f"{key}: only the editor can fill in its {asked[1]} {asked[2]!r}"
            raise _Unusable(f"{words}; write ${{env:NAME}} in its place and set that variable")
        variable = _VARIABLE.fullmatch(inner)
        return found[0] if variable is None else self._look_up(key, variable[1], variable[2], used)

    def _look_up(self, key: str, name: str, default: str | None, used: set[str]) -> str:
        value = self._environment.get(name) or default
        if value is None:
            raise _Unusable(f"{key}: the environment variable {name} is not set; set it and try again")
        used.add(name)
        return value


def _settings(name: str, entry: Any) -> dict[str, Any]:
    if not is_visible(name):
        raise _Unusable("expected a name that can be shown")
    if not isinstance(entry, dict):
        raise _Unusable(f"expected an object with command or url, got {_kind(entry)}")
    return cast("dict[str, Any]", entry)


def _check_variable(name: str, value: str) -> None:
    del value
    if not name or "=" in name or "\0" in name or not _is_unicode(name):
        raise _Unusable("env: expected names of variables, without =")


def _check_header(name: str, value: str) -> None:
    if not _HEADER_NAME.fullmatch(name):
        raise _Unusable("headers: expected names of headers, without blanks and colons")
    if "\r" in value or "\n" in value:
        raise _Unusable(f"headers.{name}: a header has one line")


def _address_of(entry: dict[str, Any]) -> Any:
    return next((entry[key] for key in ("url", "serverUrl", "httpUrl") if entry.get(key) is not None), None)


def _kind_of(entry: dict[str, Any], default: Literal["stdio", "http"]) -> Literal["stdio", "http", "sse"]:
    given = entry.get("type") or entry.get("transport") or default
    kind = _KINDS.get(re.sub("[-_ ]", "", given).lower()) if isinstance(given, str) else None
    if kind is None:
        raise _Unusable("type: expected stdio, http or sse")
    return kind


def _nothing_to_start(entry: dict[str, Any]) -> str:
    if "settings" in entry or entry.get("source") == "extension":
        return "an extension of Zed starts it, which is not here; expected a command or a url"
    return "expected a command or a url"


def _roots(entry: dict[str, Any]) -> bool:
    given = entry.get("roots", True)
    if not isinstance(given, bool):
        raise _Unusable(f"roots: expected true or false, got {_kind(given)}")
    return given


def _list(entry: dict[str, Any], key: str) -> list[Any]:
    given: Any = entry.get(key) or []
    if not isinstance(given, list):
        raise _Unusable(f"{key}: expected a list of texts, got {_kind(given)}")
    return cast("list[Any]", given)


def _digits(value: Any) -> Any:
    """Return a number as text, because a port is often written as a number."""
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
