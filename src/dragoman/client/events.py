"""The events of a session, as small values; `update` is the decoded update of the agent.

A turn ends with exactly one `Done`, or with an exception.
"""

from typing import Literal

import msgspec

from dragoman.client.entities import CompactionState, SessionMessageState, SubagentState
from dragoman.client.policy import Decision, Question
from dragoman.client.tool_call import ToolCallState
from dragoman.protocol import v1
from dragoman.protocol.unions import UnknownVariant

__all__ = [
    "Asked",
    "CommandsChanged",
    "CompactionChanged",
    "Done",
    "Event",
    "FileWritten",
    "MessagePassed",
    "ModeChanged",
    "Noticed",
    "OptionsChanged",
    "Other",
    "OtherContent",
    "PlanChanged",
    "Role",
    "SubagentChanged",
    "SubagentEvent",
    "Text",
    "Thought",
    "TitleChanged",
    "ToolChanged",
    "UsageChanged",
    "UserText",
    "Withdrawn",
]

Role = Literal["agent", "thought", "user"]
"""Who a block of content comes from."""


class Text(msgspec.Struct, frozen=True, gc=False):
    """A piece of the agent's answer."""

    text: str
    update: v1.AgentMessageChunk


class Thought(msgspec.Struct, frozen=True, gc=False):
    """A piece of the agent's reasoning."""

    text: str
    update: v1.AgentThoughtChunk


class UserText(msgspec.Struct, frozen=True, gc=False):
    """A piece of the user's message, as a load replays it."""

    text: str
    update: v1.UserMessageChunk


class OtherContent(msgspec.Struct, frozen=True, gc=False):
    """Any block that is not text: an image, audio, a resource, or one of a type that is not known."""

    block: v1.ContentBlock
    role: Role
    update: v1.AgentMessageChunk | v1.AgentThoughtChunk | v1.UserMessageChunk


class ToolChanged(msgspec.Struct, frozen=True, gc=False):
    """A tool call began or went on; `call` is all that is known of it at this moment."""

    call: ToolCallState
    is_new: bool
    update: v1.ToolCall | v1.ToolCallProgress


class PlanChanged(msgspec.Struct, frozen=True, gc=False):
    """The agent has a new plan, which replaces the one before."""

    entries: tuple[v1.PlanEntry, ...]
    update: v1.Plan


class ModeChanged(msgspec.Struct, frozen=True, gc=False):
    """The session is in another mode."""

    mode_id: str
    update: v1.CurrentModeUpdate


class OptionsChanged(msgspec.Struct, frozen=True, gc=False):
    """The options of the session, or their values, changed; these are all of them."""

    options: tuple[v1.SessionConfigOption, ...]
    update: v1.ConfigOptionUpdate


class CommandsChanged(msgspec.Struct, frozen=True, gc=False):
    """The slash commands on offer changed; these are all of them."""

    commands: tuple[v1.AvailableCommand, ...]
    update: v1.AvailableCommandsUpdate


class TitleChanged(msgspec.Struct, frozen=True, gc=False):
    """The session has another title, or none any more."""

    title: str | None
    update: v1.SessionInfoUpdate


class UsageChanged(msgspec.Struct, frozen=True, gc=False):
    """The size of the context in tokens, and the cost of the session."""

    used: int
    size: int
    cost: v1.Cost | None
    update: v1.UsageUpdate


class Noticed(msgspec.Struct, frozen=True, gc=False):
    """The agent tells the person something about the conversation, which is no part of the answer."""

    severity: str
    """`info`, `warning`, `error`, or whatever else the agent gave."""
    title: str
    description: str | None
    update: v1.Notice


class CompactionChanged(msgspec.Struct, frozen=True, gc=False):
    """The agent sums up the conversation, because it outgrew its model or was told to."""

    compaction: CompactionState
    is_new: bool
    update: v1.CompactionUpdate | v1.CompactionSummaryChunk


class SubagentChanged(msgspec.Struct, frozen=True, gc=False):
    """The agent has begun a subagent, or something is known about it that was not before."""

    subagent: SubagentState
    is_new: bool
    update: v1.SubagentUpdate


class SubagentEvent(msgspec.Struct, frozen=True):
    """An event of the session of a subagent: its answer, its tool calls and so on."""

    subagent: SubagentState
    event: "Event"


class MessagePassed(msgspec.Struct, frozen=True, gc=False):
    """A message between the agent and a subagent, or a part of it."""

    message: SessionMessageState
    is_new: bool
    update: v1.SessionMessage | v1.SessionMessageChunk


class Withdrawn(msgspec.Struct, frozen=True, gc=False):
    """A message is void, because the agent begins it anew; our own agent reports this."""

    message_id: str | None
    update: v1.AgentMessageChunk


class Asked(msgspec.Struct, frozen=True, gc=False):
    """The agent asked for permission and was answered; without a decision the turn was cancelled meanwhile."""

    question: Question
    decision: Decision | None


class FileWritten(msgspec.Struct, frozen=True, gc=False):
    """The agent wrote a file through us; `before` is None for a file that was not there, or was no text."""

    path: str
    """As the agent named it: absolute."""
    before: str | None
    after: str


class Other(msgspec.Struct, frozen=True, gc=False):
    """An update that has no event of its own, or that nobody knows."""

    update: v1.SessionUpdate | UnknownVariant


class Done(msgspec.Struct, frozen=True, gc=False):
    """The turn is over; `text` is the agent's answer: all its messages, without those that it has withdrawn."""

    stop_reason: str
    """One of the protocol's `StopReason`, or whatever else the agent gave."""
    usage: v1.Usage | None = None
    text: str = ""


Event = (
    Text
    | Thought
    | UserText
    | OtherContent
    | ToolChanged
    | PlanChanged
    | ModeChanged
    | OptionsChanged
    | CommandsChanged
    | TitleChanged
    | UsageChanged
    | Noticed
    | CompactionChanged
    | SubagentChanged
    | SubagentEvent
    | MessagePassed
    | Withdrawn
    | Asked
    | FileWritten
    | Other
    | Done
)
"""Any of them."""
