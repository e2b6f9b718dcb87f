"""MCP over ACP as it was before MCP 2026-07-28: connections that the agent opens to a server inside the client.

The pinned schema no longer has `mcp/connect` and `mcp/disconnect`, and its `mcp/message` has another shape, which
carries MCP 2026-07-28 alone. Until that is built, our agent and our client speak this one with each other.
"""

from typing import Any

import msgspec

from dragoman.protocol.methods import Method


class ConnectMcpRequest(msgspec.Struct, rename="camel", kw_only=True, omit_defaults=True):
    """Asks for a connection to a server."""

    server_id: str


class ConnectMcpResponse(msgspec.Struct, rename="camel", kw_only=True, omit_defaults=True):
    """Names the new connection."""

    connection_id: str


class DisconnectMcpRequest(msgspec.Struct, rename="camel", kw_only=True, omit_defaults=True):
    """Ends a connection."""

    connection_id: str


class DisconnectMcpResponse(msgspec.Struct, rename="camel", kw_only=True, omit_defaults=True):
    """Says that a connection has ended."""


class McpConnectionRequest(msgspec.Struct, rename="camel", kw_only=True, omit_defaults=True):
    """A request of MCP on a connection."""

    connection_id: str
    method: str
    params: dict[str, Any] | None = None


class McpConnectionNotification(msgspec.Struct, rename="camel", kw_only=True, omit_defaults=True):
    """A notification of MCP on a connection."""

    connection_id: str
    method: str
    params: dict[str, Any] | None = None


MCP_CONNECT: Method[ConnectMcpRequest, ConnectMcpResponse] = Method(
    "mcp/connect", "client", "request", ConnectMcpRequest, ConnectMcpResponse, stable=False
)
MCP_DISCONNECT: Method[DisconnectMcpRequest, DisconnectMcpResponse] = Method(
    "mcp/disconnect", "client", "request", DisconnectMcpRequest, DisconnectMcpResponse, stable=False
)
MCP_CONNECTION_REQUEST: Method[McpConnectionRequest, Any] = Method(
    "mcp/message", "both", "request", McpConnectionRequest, Any, stable=False
)
MCP_CONNECTION_NOTIFICATION: Method[McpConnectionNotification, None] = Method(
    "mcp/message", "both", "notification", McpConnectionNotification, stable=False
)
