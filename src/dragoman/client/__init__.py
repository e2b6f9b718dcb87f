"""The client: driving any ACP agent.

Its names are in groups: this module has `connect`, sessions, turns and their results; `events`, `policies` and
`errors` beside it have those of the events of a turn, of what an agent may do, and of what can go wrong. Names of these
three that were here before can still be imported from here.
"""

# pyright: reportUnusedImport=false

from dragoman.client.agent import RemoteAgent
from dragoman.client.asking import Asking
from dragoman.client.connect import connect, connect_url
from dragoman.client.elicitation import Elicit, Elicitation, Reply, accept, decline
from dragoman.client.entities import CompactionState, Entities, SessionMessageState, SubagentState
from dragoman.client.errors import (  # noqa: F401 -- they could be imported from here before
    BadAddress,
    BadDirectory,
    BadRule,
    CancelIgnored,
    ConnectFailed,
    MissingCapability,
    NeedsLogin,
    NotAnAgent,
    NotOffered,
    NotRecorded,
    PromptRunning,
    Refused,
    SessionClosed,
    StartTimeout,
    TrajectoryUnreadable,
    TurnStopped,
    WrongVersion,
)
from dragoman.client.events import (  # noqa: F401 -- they could be imported from here before
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
from dragoman.client.export import to_atif, to_openai
from dragoman.client.handshake import Provision, TrafficWatch
from dragoman.client.policies import (  # noqa: F401 -- they could be imported from here before
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
from dragoman.client.result import ChangedFile, TurnResult
from dragoman.client.session import Session
from dragoman.client.session_trajectory import (
    SessionTrajectory,
    TrajectoryStep,
    gather_sessions,
    loaded_trajectory,
    read_sessions,
)
from dragoman.client.sessions import Sessions
from dragoman.client.sync import SyncAgent, connect_sync, connect_url_sync
from dragoman.client.sync_session import SyncSession, SyncTurn
from dragoman.client.tool_call import ToolCallState
from dragoman.client.turn import Turn
from dragoman.protocol.recorder import Recorder
from dragoman.protocol.trajectory import TrajectoryRecord, read_trajectory

Content = OtherContent
"""The former name of `OtherContent`."""
Deed = ToolAction
"""The former name of `ToolAction`."""
Rule = PolicyRule
"""The former name of `PolicyRule`."""

__all__ = [
    "Asking",
    "ChangedFile",
    "CompactionState",
    "Elicit",
    "Elicitation",
    "Entities",
    "Provision",
    "Recorder",
    "RemoteAgent",
    "Reply",
    "Session",
    "SessionMessageState",
    "SessionTrajectory",
    "Sessions",
    "SubagentState",
    "SyncAgent",
    "SyncSession",
    "SyncTurn",
    "ToolCallState",
    "TrafficWatch",
    "TrajectoryRecord",
    "TrajectoryStep",
    "Turn",
    "TurnResult",
    "accept",
    "connect",
    "connect_sync",
    "connect_url",
    "connect_url_sync",
    "decline",
    "gather_sessions",
    "loaded_trajectory",
    "read_sessions",
    "read_trajectory",
    "to_atif",
    "to_openai",
]
