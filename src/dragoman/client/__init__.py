"""The client: driving any ACP agent."""

from dragoman.client.agent import RemoteAgent
from dragoman.client.asking import Asking
from dragoman.client.connect import connect, connect_url
from dragoman.client.elicitation import Elicit, Elicitation, Reply, accept, decline
from dragoman.client.events import (
    Asked,
    CommandsChanged,
    Done,
    Event,
    ModeChanged,
    Noticed,
    OptionsChanged,
    Other,
    OtherContent,
    PlanChanged,
    Text,
    Thought,
    TitleChanged,
    ToolChanged,
    UsageChanged,
    UserText,
    Withdrawn,
)
from dragoman.client.handshake import Provision
from dragoman.client.policy import (
    BadRule,
    Decision,
    Foreign,
    Policy,
    PolicyRule,
    Question,
    Read,
    Run,
    Several,
    ToolAction,
    Write,
    allow_all,
    allow_reads,
    ask,
    deny_all,
    rules,
)
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
    WrongVersion,
)
from dragoman.client.session import Session
from dragoman.client.sessions import Sessions
from dragoman.client.sync import SyncAgent, SyncSession, connect_sync, connect_url_sync
from dragoman.client.tool_call import ToolCallState
from dragoman.client.turn import Turn
from dragoman.protocol.address import BadAddress
from dragoman.protocol.recorder import NotRecorded, Recorder
from dragoman.protocol.trajectory import TrajectoryRecord, TrajectoryUnreadable, read_trajectory

Content = OtherContent
"""The former name of `OtherContent`."""
Deed = ToolAction
"""The former name of `ToolAction`."""
Rule = PolicyRule
"""The former name of `PolicyRule`."""

__all__ = [
    "Asked",
    "Asking",
    "BadAddress",
    "BadDirectory",
    "BadRule",
    "CancelIgnored",
    "CommandsChanged",
    "ConnectFailed",
    "Content",
    "Decision",
    "Deed",
    "Done",
    "Elicit",
    "Elicitation",
    "Event",
    "Foreign",
    "MissingCapability",
    "ModeChanged",
    "NeedsLogin",
    "NotAnAgent",
    "NotOffered",
    "NotRecorded",
    "Noticed",
    "OptionsChanged",
    "Other",
    "OtherContent",
    "PlanChanged",
    "Policy",
    "PolicyRule",
    "PromptRunning",
    "Provision",
    "Question",
    "Read",
    "Recorder",
    "Refused",
    "RemoteAgent",
    "Reply",
    "Rule",
    "Run",
    "Session",
    "SessionClosed",
    "Sessions",
    "Several",
    "StartTimeout",
    "SyncAgent",
    "SyncSession",
    "Text",
    "Thought",
    "TitleChanged",
    "ToolAction",
    "ToolCallState",
    "ToolChanged",
    "TrajectoryRecord",
    "TrajectoryUnreadable",
    "Turn",
    "TurnStopped",
    "UsageChanged",
    "UserText",
    "Withdrawn",
    "Write",
    "WrongVersion",
    "accept",
    "allow_all",
    "allow_reads",
    "ask",
    "connect",
    "connect_sync",
    "connect_url",
    "connect_url_sync",
    "decline",
    "deny_all",
    "read_trajectory",
    "rules",
]
