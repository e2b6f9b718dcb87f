"""The client, which drives any ACP agent.

This module has `connect`, sessions, turns and their results. Three more modules are public: `events` has the events of
a turn, `policies` the policies that allow or deny actions, and `errors` the exceptions.
"""

from dragoman.client.agent import AgentConnection
from dragoman.client.connect import connect, connect_url
from dragoman.client.connection.handshake import ClientService, WireObserver
from dragoman.client.services.elicitation import Elicitation, ElicitationHandler, ElicitationResponse, accept, decline
from dragoman.client.sessions.entities import CompactionState, SessionMessageState, SubagentState
from dragoman.client.sessions.result import ChangedFile, TurnResult
from dragoman.client.sessions.session import Session
from dragoman.client.sessions.tool_call import ToolCallState
from dragoman.client.sessions.turn import Turn
from dragoman.client.sync import SyncAgent, SyncSession, SyncTurn, connect_sync, connect_url_sync
from dragoman.client.transcripts.export import to_atif, to_openai
from dragoman.client.transcripts.session_trajectory import (
    SessionTrajectory,
    TrajectoryStep,
    group_by_session,
    read_sessions,
    trajectory_from_session,
)
from dragoman.recording.recorder import Recorder
from dragoman.recording.trajectory import TrajectoryRecord, read_trajectory

__all__ = [
    "AgentConnection",
    "ChangedFile",
    "ClientService",
    "CompactionState",
    "Elicitation",
    "ElicitationHandler",
    "ElicitationResponse",
    "Recorder",
    "Session",
    "SessionMessageState",
    "SessionTrajectory",
    "SubagentState",
    "SyncAgent",
    "SyncSession",
    "SyncTurn",
    "ToolCallState",
    "TrajectoryRecord",
    "TrajectoryStep",
    "Turn",
    "TurnResult",
    "WireObserver",
    "accept",
    "connect",
    "connect_sync",
    "connect_url",
    "connect_url_sync",
    "decline",
    "group_by_session",
    "read_sessions",
    "read_trajectory",
    "to_atif",
    "to_openai",
    "trajectory_from_session",
]
