"""Errors that a caller of the client can meet; each is a `DragomanError` and says what to do next."""

from dragoman.client.problem import (
    BadDirectory,
    CancelIgnored,
    ConnectFailed,
    MissingCapability,
    NeedsLogin,
    NotAnAgent,
    NotOffered,
    PromptRunning,
    Refused,
    SessionClosed,
    StartTimeout,
    TurnStopped,
    TurnTimeout,
    WrongVersion,
)
from dragoman.client.rule import BadRule
from dragoman.client.servers import BadServer
from dragoman.errors import (
    CommandNotFound,
    ConnectionClosed,
    DragomanError,
    InvalidResult,
    ProcessDied,
    RemoteError,
    StartError,
)
from dragoman.mcp.serving import UnusableFunction
from dragoman.protocol.address import BadAddress
from dragoman.protocol.recorder import NotRecorded
from dragoman.protocol.trajectory import TrajectoryUnreadable

__all__ = [
    "BadAddress",
    "BadDirectory",
    "BadRule",
    "BadServer",
    "CancelIgnored",
    "CommandNotFound",
    "ConnectFailed",
    "ConnectionClosed",
    "DragomanError",
    "InvalidResult",
    "MissingCapability",
    "NeedsLogin",
    "NotAnAgent",
    "NotOffered",
    "NotRecorded",
    "ProcessDied",
    "PromptRunning",
    "Refused",
    "RemoteError",
    "SessionClosed",
    "StartError",
    "StartTimeout",
    "TrajectoryUnreadable",
    "TurnStopped",
    "TurnTimeout",
    "UnusableFunction",
    "WrongVersion",
]
