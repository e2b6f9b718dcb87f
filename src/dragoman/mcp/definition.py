"""Definitions of servers: how each is started or reached, and which of the values are secret.

Values of env and headers are never shown. `redactor_of` redacts the secrets among them from a server's output. The rule
is in `dragoman.text.secret`.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, cast

import msgspec

from dragoman.protocol import v1
from dragoman.text.secret import SecretHider, bare_address, secrets_in, url_secrets


class StdioServer(msgspec.Struct, frozen=True, tag="stdio"):
    """A program to start. `cwd` is the session's directory if it is None."""

    name: str
    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    cwd: str | None = None
    secrets: tuple[str, ...] = ()
    """Secret values whose position does not show that they are secret, such as an expanded `${TOKEN}`."""
    roots: bool = True
    """Whether the server receives the session's directories. Some servers then ignore the ones in their arguments."""

    transport = "stdio"

    def __post_init__(self) -> None:
        _freeze_strings(self, "args", "secrets")
        _freeze_pairs(self, "env")

    def __repr__(self) -> str:
        return f"StdioServer({self.name!r})"


class _AtAddress(msgspec.Struct, frozen=True):
    name: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    secrets: tuple[str, ...] = ()
    """Secret values whose position does not show that they are secret, such as an expanded `${TOKEN}`."""
    roots: bool = True
    """Whether the server receives the session's directories."""

    def __post_init__(self) -> None:
        _freeze_strings(self, "secrets")
        _freeze_pairs(self, "headers")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class HttpServer(_AtAddress, frozen=True, tag="http"):
    """A server at a URL that uses streamable HTTP."""

    transport = "http"


class SseServer(_AtAddress, frozen=True, tag="sse"):
    """A server at a URL that uses the older transport: an event stream and POSTs."""

    transport = "sse"


class AcpServer(msgspec.Struct, frozen=True, tag="acp"):
    """A server inside the client, reached over the ACP connection."""

    name: str
    server_id: str

    transport = "acp"


Definition = StdioServer | HttpServer | SseServer | AcpServer


def _freeze_strings(definition: msgspec.Struct, *fields: str) -> None:
    """Convert lists to tuples, because definitions are used as keys. Raises TypeError."""
    for field in fields:
        value: Any = getattr(definition, field)
        if isinstance(value, str) or not all(isinstance(word, str) for word in value):
            raise TypeError(f"{field} of {definition!r} is not a sequence of str, such as ('--port', '80')")
        if not isinstance(value, tuple):
            msgspec.structs.force_setattr(definition, field, tuple(value))


def _freeze_pairs(definition: msgspec.Struct, field: str) -> None:
    """Convert a dict or list to a tuple of pairs. Raises TypeError. Values may be secret, so no error shows them."""
    value: Any = getattr(definition, field)
    items = cast("Iterable[Iterable[Any]]", value.items() if isinstance(value, Mapping) else value)  # pyright: ignore[reportUnknownMemberType] -- any Mapping
    pairs = tuple(tuple(pair) for pair in items)
    if not all(isinstance(word, str) for pair in pairs for word in pair):
        raise TypeError(f"{field} of {definition!r} has names or values that are not str; expected a dict of str")
    if pairs != value:
        msgspec.structs.force_setattr(definition, field, pairs)


ROOTS_KEY = "dragoman/roots"
"""The key in a server's `_meta`. A client sets it to `false` so that the server does not receive the directories."""


def from_protocol(server: v1.McpServer) -> Definition:
    """Return the definition of a server that a client sent."""
    roots = (server.meta or {}).get(ROOTS_KEY) is not False
    match server:
        case v1.McpServerStdio():
            env = tuple((variable.name, variable.value) for variable in server.env)
            return StdioServer(server.name, server.command, tuple(server.args), env, roots=roots)
        case v1.McpServerHttp():
            return HttpServer(server.name, server.url, _pairs(server.headers), roots=roots)
        case v1.McpServerSse():
            return SseServer(server.name, server.url, _pairs(server.headers), roots=roots)
        case v1.McpServerAcp():
            return AcpServer(server.name, server.server_id)


def identity(definition: Definition) -> str:
    """Return the hash that approvals are bound to. It covers everything that decides which program runs or is reached.

    The name is left out, because a peer can use any name for any server. The roots do not affect what runs.
    """
    fields = msgspec.to_builtins(msgspec.structs.replace(definition, name=""))
    fields.pop("roots", None)
    return hashlib.sha256(msgspec.json.encode(fields)).hexdigest()


def describe(definition: Definition) -> str:
    """Return the command or the address on one line, without secrets."""
    match definition:
        case StdioServer():
            return redactor_of(definition).clean(" ".join([definition.command, *definition.args]))
        case HttpServer() | SseServer():
            return redactor_of(definition).clean(bare_address(definition.url))
        case AcpServer():
            return "inside the client"


def login_command(server: HttpServer) -> str:
    """Return the command that logs in at a server. It uses the URL, because the server may not be in any file."""
    import shlex  # slow to import, and only needed here

    shown = describe(server)
    return f"dragoman mcp login --server-url {shlex.quote(shown) if shown == server.url else 'URL'}"


def redactor_of(definition: Definition) -> SecretHider:
    """Return a redactor of a server's secrets."""
    return SecretHider(_secrets(definition))


def _secrets(definition: Definition) -> Iterator[str]:
    match definition:
        case StdioServer():
            named = (*_named_arguments(definition.args), *definition.env)
        case HttpServer() | SseServer():
            yield from url_secrets(definition.url)
            named = definition.headers
        case AcpServer():
            return
    yield from definition.secrets
    for name, value in named:
        yield from secrets_in(name, value)


def _named_arguments(args: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield arguments with their names, as in `--api-key x`, `--token=x`, `-e TOKEN=x` and `-H "Cookie: x"`."""
    for arg, following in zip_longest(args, args[1:], fillvalue=""):
        name, equals, value = arg.partition("=")
        header, _, content = arg.partition(":")
        if name.startswith("-") and not equals:
            yield name, following
        yield from (("", arg), (name, value), (header, content.strip()))


def _pairs(headers: Sequence[v1.HttpHeader]) -> tuple[tuple[str, str], ...]:
    return tuple((header.name, header.value) for header in headers)
