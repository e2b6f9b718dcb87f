"""The include modes of a client's servers, and the params of the extension requests about servers and cancellation.

`_meta["dragoman/include"]` of a server says which of its tools are offered to the model, and when. The requests are
handled in `server_requests.py`.
"""

from collections.abc import Mapping
from typing import Any, Literal, TypeVar, cast, get_args

import msgspec

from dragoman.errors import InvalidParamsError
from dragoman.protocol import v1
from dragoman.protocol.unions import decode_hook

KEY = "dragoman/include"

Include = Literal["always", "manual", "agent"]
"""When a tool is offered to the model: in every turn, once the user adds it, or when a search finds it."""


class ToolIncludes(msgspec.Struct, frozen=True):
    """The include modes of a server's tools."""

    default: Include = "always"
    tools: Mapping[str, Include] = {}

    def of(self, tool: str) -> Include:
        """Return the mode of a tool, or else the mode of its server."""
        return self.tools.get(tool, self.default)


def includes_of(meta: Mapping[str, Any] | None, path: str) -> ToolIncludes:
    """Read the include modes from a server's `_meta`. Raises InvalidParamsError."""
    wish = (meta or {}).get(KEY)
    if wish is None:
        return ToolIncludes()
    place = f"{path}._meta[{KEY!r}]"
    if isinstance(wish, str):
        return ToolIncludes(_mode(wish, place))
    if not isinstance(wish, dict):
        raise InvalidParamsError(place, f"{place}: expected a mode, or an object with default and tools")
    known = cast("dict[str, Any]", wish)
    tools = known.get("tools", {})
    if not isinstance(tools, dict):
        raise InvalidParamsError(f"{place}.tools", f"{place}.tools: expected an object of modes by tool name")
    return ToolIncludes(
        _mode(known.get("default", "always"), f"{place}.default"),
        {name: _mode(mode, f"{place}.tools[{name!r}]") for name, mode in cast("dict[str, Any]", tools).items()},
    )


def _mode(value: Any, path: str) -> Include:
    if value not in get_args(Include):
        raise InvalidParamsError(path, f"{path}: expected always, manual or agent", expected="always, manual or agent")
    return value


CANCEL_CALL = "_dragoman/tool_call/cancel"
CANCEL_TERMINAL = "_dragoman/terminal/cancel"

T = TypeVar("T")


class AddServer(msgspec.Struct, rename="camel"):
    """The parameters of `_dragoman/mcp/add`."""

    session_id: str
    server: v1.McpServer


class ListServers(msgspec.Struct, rename="camel"):
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
    """Decode the params that name a tool call to cancel. Raises InvalidParamsError."""
    return _convert(params, CancelledCall)


def decode_cancelled_terminal(params: Any) -> CancelledTerminal:
    """Decode the params that name a terminal to cancel. Raises InvalidParamsError."""
    return _convert(params, CancelledTerminal)


def decode_server(params: Any) -> AddServer:
    """Decode the params that contain a server to add. Raises InvalidParamsError."""
    return _convert(params, AddServer)


def decode_named(params: Any) -> NamedServer:
    """Decode the params that name a server to remove or restart. Raises InvalidParamsError."""
    return _convert(params, NamedServer)


def decode_session(params: Any) -> ListServers:
    """Decode the params that name a session whose servers are listed. Raises InvalidParamsError."""
    return _convert(params, ListServers)


def _convert(params: Any, type_: type[T]) -> T:
    try:
        return msgspec.convert(params, type_, dec_hook=decode_hook)
    except msgspec.ValidationError as error:
        raise InvalidParamsError("params", str(error)) from None
