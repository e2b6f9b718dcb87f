"""The exceptions of the client. Each is a `DragomanError`, and its message says what to do next."""

from dragoman.client.permission.rule import InvalidRuleError
from dragoman.client.problem import (
    CancelIgnoredError,
    ConnectError,
    EventsLostError,
    InvalidDirectoryError,
    LoginRequiredError,
    MissingCapabilityError,
    NotAnAgentError,
    NotOfferedError,
    PromptRunningError,
    RequestNotSentError,
    SessionClosedError,
    StartTimeoutError,
    TurnStoppedError,
    TurnTimeoutError,
    WrongVersionError,
)
from dragoman.client.services.servers import InvalidServerError
from dragoman.errors import (
    CommandNotFoundError,
    ConnectionClosedError,
    DragomanError,
    InvalidResultError,
    MessageTooLongError,
    ProcessDiedError,
    RemoteError,
    StartError,
)
from dragoman.mcp.serving import UnusableFunctionError
from dragoman.protocol.address import InvalidAddressError
from dragoman.recording.recorder import RecordingError
from dragoman.recording.trajectory import TrajectoryError

__all__ = [
    "CancelIgnoredError",
    "CommandNotFoundError",
    "ConnectError",
    "ConnectionClosedError",
    "DragomanError",
    "EventsLostError",
    "InvalidAddressError",
    "InvalidDirectoryError",
    "InvalidResultError",
    "InvalidRuleError",
    "InvalidServerError",
    "LoginRequiredError",
    "MessageTooLongError",
    "MissingCapabilityError",
    "NotAnAgentError",
    "NotOfferedError",
    "ProcessDiedError",
    "PromptRunningError",
    "RecordingError",
    "RemoteError",
    "RequestNotSentError",
    "SessionClosedError",
    "StartError",
    "StartTimeoutError",
    "TrajectoryError",
    "TurnStoppedError",
    "TurnTimeoutError",
    "UnusableFunctionError",
    "WrongVersionError",
]
