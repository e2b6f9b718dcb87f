"""The supervisor: one agent's process, started, restarted and stopped, and the requests that it has not answered."""

from dragoman.bridge.supervisor.process import (
    AgentCall,
    AgentFailure,
    AgentProcess,
    CallFailed,
    PendingCalls,
    SilenceTimer,
    WireLog,
    own_call,
    silence_failure,
    start_agent,
)
from dragoman.bridge.supervisor.supervisor import AgentStatus, AgentSupervisor, InitializeRefused, SessionSupport

__all__ = [
    "AgentCall",
    "AgentFailure",
    "AgentProcess",
    "AgentStatus",
    "AgentSupervisor",
    "CallFailed",
    "InitializeRefused",
    "PendingCalls",
    "SessionSupport",
    "SilenceTimer",
    "WireLog",
    "own_call",
    "silence_failure",
    "start_agent",
]
