"""The kit turns a Python function into an ACP agent, with sessions, replay, permission, MCP servers and cancellation.

Names are imported at first use, because an agent answers `initialize` before most of them are needed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.agent.agent import Agent
    from dragoman.agent.program import Authenticator, AuthReporter, NoAuth, PermissionDefaults
    from dragoman.agent.servers.mcp_tool import McpTool
    from dragoman.agent.servers.session_servers import AgentMcpServer
    from dragoman.agent.sessions.conversation import HistoryMessage, HistoryToolCall
    from dragoman.agent.sessions.permission import PermissionDecision
    from dragoman.agent.sessions.session import Session, SessionClient
    from dragoman.agent.sessions.session_memory import StateError
    from dragoman.agent.sessions.settings import BooleanOption, Mode, OptionValue, SelectOption
    from dragoman.agent.turns.call_run import CallCancelledError
    from dragoman.agent.turns.compaction import Compaction
    from dragoman.agent.turns.delegation import DelegateSession, delegate
    from dragoman.agent.turns.model_request import ModelRequest
    from dragoman.agent.turns.prepared_call import (
        Action,
        PreparedCall,
        ProposedCall,
        TargetChangedError,
        ToolError,
        ToolOutcome,
    )
    from dragoman.agent.turns.subagent import Subagent
    from dragoman.agent.turns.tool_call import ToolCallHandle
    from dragoman.agent.turns.turn import Turn, TurnEndedError
    from dragoman.agent.turns.usage import TokenUsage
    from dragoman.agent.workspace.shell import CommandResult
    from dragoman.mcp.definition import HttpServer, SseServer, StdioServer

_MODULES = {
    "dragoman.agent.agent": ("Agent",),
    "dragoman.agent.turns.call_run": ("CallCancelledError",),
    "dragoman.agent.turns.compaction": ("Compaction",),
    "dragoman.agent.sessions.conversation": ("HistoryMessage", "HistoryToolCall"),
    "dragoman.agent.turns.delegation": ("DelegateSession", "delegate"),
    "dragoman.agent.turns.model_request": ("ModelRequest",),
    "dragoman.agent.sessions.permission": ("PermissionDecision",),
    "dragoman.agent.turns.prepared_call": (
        "Action",
        "PreparedCall",
        "ProposedCall",
        "TargetChangedError",
        "ToolError",
        "ToolOutcome",
    ),
    "dragoman.agent.program": ("Authenticator", "AuthReporter", "NoAuth", "PermissionDefaults"),
    "dragoman.agent.servers.mcp_tool": ("McpTool",),
    "dragoman.agent.servers.session_servers": ("AgentMcpServer",),
    "dragoman.agent.sessions.session": ("Session", "SessionClient"),
    "dragoman.agent.sessions.session_memory": ("StateError",),
    "dragoman.agent.turns.subagent": ("Subagent",),
    "dragoman.agent.sessions.settings": ("BooleanOption", "Mode", "OptionValue", "SelectOption"),
    "dragoman.agent.turns.tool_call": ("ToolCallHandle",),
    "dragoman.agent.turns.turn": ("Turn", "TurnEndedError"),
    "dragoman.agent.turns.usage": ("TokenUsage",),
    "dragoman.agent.workspace.shell": ("CommandResult",),
    "dragoman.mcp.definition": ("HttpServer", "SseServer", "StdioServer"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Action",
    "Agent",
    "AgentMcpServer",
    "AuthReporter",
    "Authenticator",
    "BooleanOption",
    "CallCancelledError",
    "CommandResult",
    "Compaction",
    "DelegateSession",
    "HistoryMessage",
    "HistoryToolCall",
    "HttpServer",
    "McpTool",
    "Mode",
    "ModelRequest",
    "NoAuth",
    "OptionValue",
    "PermissionDecision",
    "PermissionDefaults",
    "PreparedCall",
    "ProposedCall",
    "SelectOption",
    "Session",
    "SessionClient",
    "SseServer",
    "StateError",
    "StdioServer",
    "Subagent",
    "TargetChangedError",
    "TokenUsage",
    "ToolCallHandle",
    "ToolError",
    "ToolOutcome",
    "Turn",
    "TurnEndedError",
    "delegate",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
