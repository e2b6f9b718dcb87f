"""The kit: a Python function becomes an ACP agent, with sessions, replay, permission, MCP servers and cancellation.

Names are imported when they are first used: an agent answers `initialize` before most of them are needed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.agent.agent import Agent
    from dragoman.agent.call_run import CallCancelled
    from dragoman.agent.compaction import Compaction
    from dragoman.agent.conversation import HistoryMessage, ToolCallMemory
    from dragoman.agent.model_operation import ModelOperation
    from dragoman.agent.permission import PermissionDecision
    from dragoman.agent.prepared_call import (
        Action,
        PreparedCall,
        ProposedCall,
        TargetChanged,
        ToolFailure,
        ToolOutcome,
    )
    from dragoman.agent.program import Authenticator, AuthReporter, NoLogin, PermissionDefaults
    from dragoman.agent.servers.mcp_tool import McpTool
    from dragoman.agent.servers.session_servers import AgentMcpServer
    from dragoman.agent.session import Session, SessionClient
    from dragoman.agent.session_memory import StateUnusable
    from dragoman.agent.settings import BooleanOption, Mode, OptionValue, SelectOption
    from dragoman.agent.subagent import Subagent
    from dragoman.agent.tool_call import ToolCallHandle
    from dragoman.agent.turn import Turn, TurnOver
    from dragoman.agent.usage import TokenUsage
    from dragoman.agent.workspace.shell import CommandEnd
    from dragoman.mcp.definition import HttpServer, SseServer, StdioServer

_MODULES = {
    "dragoman.agent.agent": ("Agent",),
    "dragoman.agent.call_run": ("CallCancelled",),
    "dragoman.agent.compaction": ("Compaction",),
    "dragoman.agent.conversation": ("HistoryMessage", "ToolCallMemory"),
    "dragoman.agent.model_operation": ("ModelOperation",),
    "dragoman.agent.permission": ("PermissionDecision",),
    "dragoman.agent.prepared_call": (
        "Action",
        "PreparedCall",
        "ProposedCall",
        "TargetChanged",
        "ToolFailure",
        "ToolOutcome",
    ),
    "dragoman.agent.program": ("Authenticator", "AuthReporter", "NoLogin", "PermissionDefaults"),
    "dragoman.agent.servers.mcp_tool": ("McpTool",),
    "dragoman.agent.servers.session_servers": ("AgentMcpServer",),
    "dragoman.agent.session": ("Session", "SessionClient"),
    "dragoman.agent.session_memory": ("StateUnusable",),
    "dragoman.agent.subagent": ("Subagent",),
    "dragoman.agent.settings": ("BooleanOption", "Mode", "OptionValue", "SelectOption"),
    "dragoman.agent.tool_call": ("ToolCallHandle",),
    "dragoman.agent.turn": ("Turn", "TurnOver"),
    "dragoman.agent.usage": ("TokenUsage",),
    "dragoman.agent.workspace.shell": ("CommandEnd",),
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
    "CallCancelled",
    "CommandEnd",
    "Compaction",
    "HistoryMessage",
    "HttpServer",
    "McpTool",
    "Mode",
    "ModelOperation",
    "NoLogin",
    "OptionValue",
    "PermissionDecision",
    "PermissionDefaults",
    "PreparedCall",
    "ProposedCall",
    "SelectOption",
    "Session",
    "SessionClient",
    "SseServer",
    "StateUnusable",
    "StdioServer",
    "Subagent",
    "TargetChanged",
    "TokenUsage",
    "ToolCallHandle",
    "ToolCallMemory",
    "ToolFailure",
    "ToolOutcome",
    "Turn",
    "TurnOver",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
