"""Definitions of servers: how each is started or reached. Values of env and headers are secrets and are never shown."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

from dragoman.protocol import v1
from dragoman.text.secret import SecretHider, bare_address

_SECRET_NAME = re.compile(r"key|token|secret|passw|credential|auth", re.IGNORECASE)
_RANDOM = re.compile(r"[A-Za-z0-9+_=.-]{16,}")
"""Values that a person would not write: no path, no sentence, no short word."""


class StdioServer(msgspec.Struct, frozen=True, tag="stdio"):
    """A program to start; `cwd` is the session's when it is None."""

    name: str
    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    cwd: str | None = None
    secret_args: tuple[str, ...] = ()
    """The arguments among `args` that are never shown."""
    roots: bool = True
    """Whether it is told the session's directories. Some servers then forget the ones that their arguments name."""

    transport = "stdio"

    def __post_init__(self) -> None:
        _keep_words(self, "args", "secret_args")
        _keep_pairs(self, "env")

    def __repr__(self) -> str:
        return f"StdioServer({self.name!r})"


class _AtAddress(msgspec.Struct, frozen=True):
    name: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    secret_path: bool = False
    """Whether the path of the address is never shown."""
    roots: bool = True
    """Whether it is told the session's directories."""

    def __post_init__(self) -> None:
        _keep_pairs(self, "headers")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class HttpServer(_AtAddress, frozen=True, tag="http"):
    """A server at an address, over streamable HTTP."""

    transport = "http"


class SseServer(_AtAddress, frozen=True, tag="sse"):
    """A server at an address, over the older transport: an event stream and posts."""

    transport = "sse"


class AcpServer(msgspec.Struct, frozen=True, tag="acp"):
    """A server inside the client, over the ACP connection itself."""

    name: str
    server_id: str

    transport = "acp"


Definition = StdioServer | HttpServer | SseServer | AcpServer


def _keep_words(definition: msgspec.Struct, *fields: str) -> None:
    """Make tuples of lists, because definitions are keys; raises TypeError."""
    for field in fields:
        given: Any = getattr(definition, field)
        if isinstance(given, str) or not all(isinstance(word, str) for word in given):
            raise TypeError(f"{field} of {definition!r} is no sequence of str; expected such as ('--port', '80')")
        if not isinstance(given, tuple):
            msgspec.structs.force_setattr(definition, field, tuple(given))


def _keep_pairs(definition: msgspec.Struct, field: str) -> None:
    """Make a tuple of pairs of a dict or of a list; raises TypeError. Values are secrets: no error has them."""
    given: Any = getattr(definition, field)
    items = cast("Iterable[Iterable[Any]]", given.items() if isinstance(given, Mapping) else given)  # pyright: ignore[reportUnknownMemberType] -- any Mapping
    pairs = tuple(tuple(pair) for pair in items)
    if not all(isinstance(word, str) for pair in pairs for word in pair):
        raise TypeError(f"{field} of {definition!r} has names or values that are no str; expected a dict of str")
    if pairs != given:
        msgspec.structs.force_setattr(definition, field, pairs)


ROOTS_KEY = "dragoman/roots"
"""Under this key of a server's `_meta` a client says `false` when the server is not to be told the directories."""


def from_protocol(server: v1.McpServer) -> Definition:
    """Return the definition that a client gave."""
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
    """Return the hash that approvals bind to: it covers all that decides which program would run or be reached.

    The name is left out, because a peer may give any server any name; so are the roots, which are no part of that.
    """
    fields = msgspec.to_builtins(msgspec.structs.replace(definition, name=""))
    fields.pop("roots", None)
    return hashlib.sha256(msgspec.json.encode(fields)).hexdigest()


def describe(definition: Definition) -> str:
    """Return the command or the address in one line, without secrets."""
    match definition:
        case StdioServer():
            return hider_of(definition).clean(" ".join([definition.command, *definition.args]))
        case HttpServer() | SseServer():
            return hider_of(definition).clean(bare_address(definition.url))
        case AcpServer():
            return "inside the client"


def hider_of(*definitions: Definition) -> SecretHider:
    """Return what hides the secrets of servers in texts that others wrote, such as their stderr."""
    return SecretHider(secret for definition in definitions for secret in _secrets(definition))


def result_hider_of(definition: Definition) -> SecretHider:
    """Return what hides the secrets of a server in its results.

    A model works with results, so an ordinary value of the environment, such as a directory or a mode, stays readable
    there: only variables whose name or value is that of a secret are hidden.
    """
    return SecretHider(_secrets(definition, _is_secret_variable))


def _is_secret_variable(name: str, value: str) -> bool:
    return _SECRET_NAME.search(name) is not None or (_RANDOM.fullmatch(value) is not None and not value.isalpha())


def _any_variable(name: str, value: str) -> bool:
    del name, value
    return True


def _secrets(definition: Definition, hides: Callable[[str, str], bool] = _any_variable) -> Iterator[str]:
    match definition:
        case StdioServer():
            yield from definition.secret_args
            yield from _flagged(definition.args)
            for name, value in definition.env:
                if hides(name, value):
                    yield value
        case HttpServer() | SseServer():
            yield from _address_secrets(definition.url, with_path=definition.secret_path)
            for _, value in definition.headers:
                yield value
                # "Bearer x" may come back as "x" alone.
                yield value.rpartition(" ")[2]
        case AcpServer():
            pass


def _flagged(args: Sequence[str]) -> Iterator[str]:
    """Yield the values of arguments that are secret by their names, as in `--api-key x` and `--token=x`."""
    for arg, following in zip_longest(args, args[1:], fillvalue=""):
        name, equals, value = arg.partition("=")
        if name.startswith("-") and _SECRET_NAME.search(name):
            yield value if equals else following


def _address_secrets(url: str, *, with_path: bool) -> Iterator[str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return
    yield parts.query
    if with_path:
        yield from (parts.path, *parts.path.split("/"))
    yield from (value for value in (parts.username, parts.password) if value)


def _pairs(headers: Sequence[v1.HttpHeader]) -> tuple[tuple[str, str], ...]:
    return tuple((header.name, header.value) for header in headers)
