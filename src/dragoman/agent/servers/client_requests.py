"""The client's requests about servers: the include modes of its own server's tools, and changes in a running session.

`_meta["dragoman/include"]` of a server says which of its tools go to the model, and when. The extension requests are
handled in `server_requests.py`.
"""

from collections.abc import Mapping
from typing import Any, Literal, TypeVar, cast, get_args

import msgspec

from dragoman.errors import InvalidParams
from dragoman.protocol import v1
from dragoman.protocol.unions import decode_hook

KEY = "dragoman/include"

Include = Literal["always", "manual", "agent"]
"""When a tool goes to the model: in every turn, once a person adds it, or when a search finds it."""


class ToolIncludes(msgspec.Struct, frozen=True):
    """The include mode of each tool of a server."""

    default: Include = "always"
    tools: Mapping[str, Include] = {}

    def of(self, tool: str) -> Include:
        """Return the mode of a tool: its own, else the server's."""
        return self.tools.get(tool, self.default)


def includes_of(meta: Mapping[str, Any] | None, path: str) -> ToolIncludes:
    """Read a server's `_meta`; raises InvalidParams."""
    wish = (meta or {}).get(KEY)
    if wish is None:
        return ToolIncludes()
    place = f"{path}._meta[{KEY!r}]"
    if isinstance(wish, str):
        return ToolIncludes(_mode(wish, place))
    if not isinstance(wish, dict):
        raise InvalidParams(place, f"{place}: expected a mode, or an object with default and tools")
    known = cast("dict[str, Any]", wish)
    tools = known.get("tools", {})
    if not isinstance(tools, dict):
        raise InvalidParams(f"{place}.tools", f"{place}.tools: expected an object of modes by tool name")
    return ToolIncludes(
        _mode(known.get("default", "always"), f"{place}.default"),
        {name: _mode(mode, f"{place}.tools[{name!r}]") for name, mode in cast("dict[str, Any]", tools).items()},
    )


def _mode(value: Any, path: str) -> Include:
    if value not in get_args(Include):
        raise InvalidParams(path, f"{path}: expected always, manual or agent", expected="always, manual or agent")
    return value


CANCEL_CALL = "_dragoman/tool_call/cancel"
CANCEL_TERMINAL = "_dragoman/terminal/cancel"

T = TypeVar("T")


class AddServer(msgspec.Struct, rename="camel"):
    """The parameters of `_dragoman/mcp/add`."""

    session_id: str
    server: v1.McpServer


class ServersOf(msgspec.Struct, rename="camel"):
    """The parameters of `_dragoman/mcp/list`."""

    session_id: str


class NamedServer(msgspec.Struct, rename="camel"):
    """The parameters of `_dragoman/mcp/remove` and `_dragoman/mcp/restart`."""

    session_id: str
    name: str


class CancelledCall(msgspec.Struct, rename="camel"):
    """The parameters of `_dragoman/tool_call/cancel`."""

    session_id: str
    tool_call_id: str


class CancelledTerminal(msgspec.Struct, rename="camel"):
    """The parameters of `_dragoman/terminal/cancel`."""

    session_id: str
    terminal_id: str


def decode_cancelled_call(params: Any) -> CancelledCall:
    """Read the tool call to cancel; raises InvalidParams."""
    return _convert(params, CancelledCall)


def decode_cancelled_terminal(params: Any) -> CancelledTerminal:
    """Read the terminal to cancel; raises InvalidParams."""
    return _convert(params, CancelledTerminal)


def decode_server(params: Any) -> AddServer:
    """Read the server to add; raises InvalidParams."""
    return _convert(params, AddServer)


def decode_named(params: Any) -> NamedServer:
    """Read the name of the server to remove or to restart; raises InvalidParams."""
    return _convert(params, NamedServer)


def decode_session(params: Any) -> ServersOf:
    """Read the session whose servers are listed; raises InvalidParams."""
    return _convert(params, ServersOf)


def _convert(params: Any, wanted: type[T]) -> T:
    try:
        return msgspec.convert(params, wanted, dec_hook=decode_hook)
    except msgspec.ValidationError as error:
        raise InvalidParams("params", str(error)) from None
