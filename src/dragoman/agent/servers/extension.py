"""The extension requests by which a client changes the servers of a running session."""

from typing import Any, TypeVar

import msgspec

from dragoman.errors import InvalidParams
from dragoman.protocol import v1
from dragoman.protocol.unions import decode_hook

MCP_ADD = "_dragoman/mcp/add"
MCP_REMOVE = "_dragoman/mcp/remove"

T = TypeVar("T")


class AddServer(msgspec.Struct, rename="camel"):
    """The parameters of `_dragoman/mcp/add`."""

    session_id: str
    server: v1.McpServer


class RemoveServer(msgspec.Struct, rename="camel"):
    """The parameters of `_dragoman/mcp/remove`."""

    session_id: str
    name: str


def decode_server(params: Any) -> AddServer:
    """Read what is to be added; raises InvalidParams."""
    return _convert(params, AddServer)


def decode_removal(params: Any) -> RemoveServer:
    """Read what is to be removed; raises InvalidParams."""
    return _convert(params, RemoveServer)


def _convert(params: Any, wanted: type[T]) -> T:
    try:
        return msgspec.convert(params, wanted, dec_hook=decode_hook)
    except msgspec.ValidationError as error:
        raise InvalidParams("params", str(error)) from None
