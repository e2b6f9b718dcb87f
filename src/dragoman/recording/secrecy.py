"""Redacts secret fields of messages before a message is shown or stored.

Secret fields are environments, headers, the arguments of MCP servers, the code of a login, and the key of a model.
"""

import re
from collections.abc import Callable
from typing import Any, cast

import msgspec

from dragoman.protocol.extensions import CONNECT_MODEL
from dragoman.text.secret import HIDDEN, bare_address, hide_command_secrets

_CALLBACK = "_dragoman/oauth/callback"
"""The request with which a client sends an agent the code of a login."""

_ADDING = re.compile(rb"/mcp(?:\s|\\[nrt])+add")
"""The command that adds a server, inside a text."""

SUSPECTS = (b'"env"', b'"headers"', b'"mcpServers"', b'"_dragoman', b"/mcp")
"""Strings that mark possible secrets. A message without any of them is kept unchanged."""

_UNCLEAR = b'{"hidden":"a message that could not be parsed and may contain secrets"}'


def hide_secrets(line: bytes) -> bytes:
    """Return a message on one line, without environments, header values and the arguments of MCP servers."""
    line = line.strip()
    if not any(suspect in line for suspect in SUSPECTS[:-1]) and not _ADDING.search(line):
        return line
    try:
        return msgspec.json.encode(_clean(msgspec.json.decode(line)))
    except (msgspec.MsgspecError, OverflowError, RecursionError):
        return _UNCLEAR


def _clean(value: Any) -> Any:
    match value:
        case dict():
            members = cast("dict[str, Any]", value)
            if members.get("method") in (_CALLBACK, CONNECT_MODEL):
                return {**members, "params": _hide_values(members.get("params"))}
            return {key: _KEYS[key](member) if key in _KEYS else _clean(member) for key, member in members.items()}
        case list():
            return [_clean(item) for item in cast("list[Any]", value)]
        case str():
            return hide_command_secrets(value)
        case _:
            return value


def _hide_values(value: Any) -> Any:
    """Redact the values of an object or of a list of names and values, or redact a plain value."""
    match value:
        case dict():
            return dict.fromkeys(cast("dict[str, Any]", value), HIDDEN)
        case list():
            return [_hide_value(item) for item in cast("list[Any]", value)]
        case None:
            return None
        case _:
            return HIDDEN


def _hide_value(item: Any) -> Any:
    if isinstance(item, dict):
        members = cast("dict[str, Any]", item)
        return {key: member if key == "name" else HIDDEN for key, member in members.items()}
    return HIDDEN


def _hide_servers(value: Any) -> Any:
    return [_hide_server(item) for item in cast("list[Any]", value)] if isinstance(value, list) else HIDDEN


def _hide_server(item: Any) -> Any:
    if not isinstance(item, dict):
        return HIDDEN
    server: dict[str, Any] = _clean(item)
    if isinstance(server.get("url"), str):
        server["url"] = bare_address(server["url"])
    if "args" in server:
        server["args"] = _hide_values(server["args"])
    return server


_KEYS: dict[str, Callable[[Any], Any]] = {
    "env": _hide_values,
    "headers": _hide_values,
    "mcpServers": _hide_servers,
}
