"""The events of a session. Most have `update`, the decoded update that the agent sent.

A turn ends with exactly one `TurnFinished`, or with an exception.
"""

from typing import Literal

import msgspec

from dragoman.client.permission.policy import Decision, PermissionQuestion
from dragoman.client.sessions.entities import CompactionState, SessionMessageState, SubagentState
from dragoman.client.sessions.tool_call import ToolCallState
from dragoman.protocol import v1
from dragoman.protocol.notice import notice_key
from dragoman.protocol.unions import UnknownVariant

__all__ = [
    "CommandsChanged",
    "CompactionChanged",
    "Event",
    "FileWritten",
    "MessageWithdrawn",
    "ModeChanged",
    "NonTextChunk",
    "NoticeReceived",
    "OptionsChanged",
    "OtherUpdate",
    "PermissionRequested",
    "PlanChanged",
    "Role",
    "SessionMessageChanged",
    "SubagentChanged",
    "SubagentEvent",
    "TextChunk",
    "ThoughtChunk",
    "TitleChanged",
    "ToolCallChanged",
    "TurnFinished",
    "UsageChanged",
    "UserTextChunk",
]

Role = Literal["agent", "thought", "user"]
"""The author of a content block. A thought is the agent's reasoning."""


class TextChunk(msgspec.Struct, frozen=True, gc=False):
    """A piece of the agent's answer."""

    text: str
    update: v1.AgentMessageChunk


class ThoughtChunk(msgspec.Struct, frozen=True, gc=False):
    """A piece of the agent's reasoning."""

    text: str
    update: v1.AgentThoughtChunk


class UserTextChunk(msgspec.Struct, frozen=True, gc=False):
    """A piece of the user's message, replayed by `session/load`."""

    text: str
    update: v1.UserMessageChunk


class NonTextChunk(msgspec.Struct, frozen=True, gc=False):
    """A content block other than text: an image, audio, a resource, or a block of an unknown type."""

    block: v1.ContentBlock
    role: Role
    update: v1.AgentMessageChunk | v1.AgentThoughtChunk | v1.UserMessageChunk


class ToolCallChanged(msgspec.Struct, frozen=True, gc=False):
    """A tool call that began or changed. `call` is its whole state at this moment."""

    call: ToolCallState
    is_new: bool
    update: v1.ToolCall | v1.ToolCallProgress


class PlanChanged(msgspec.Struct, frozen=True, gc=False):
    """The agent's new plan, which replaces the previous one."""

    entries: tuple[v1.PlanEntry, ...]
    update: v1.Plan


class ModeChanged(msgspec.Struct, frozen=True, gc=False):
    """The new mode of the session."""

    mode_id: str
    update: v1.CurrentModeUpdate


class OptionsChanged(msgspec.Struct, frozen=True, gc=False):
    """All config options of the session, after one or more changed."""

    options: tuple[v1.SessionConfigOption, ...]
    update: v1.ConfigOptionUpdate


class CommandsChanged(msgspec.Struct, frozen=True, gc=False):
    """All slash commands of the session, after they changed."""

    commands: tuple[v1.AvailableCommand, ...]
    update: v1.AvailableCommandsUpdate


class TitleChanged(msgspec.Struct, frozen=True, gc=False):
    """The new title of the session, or None if it was removed."""

    title: str | None
    update: v1.SessionInfoUpdate


class UsageChanged(msgspec.Struct, frozen=True, gc=False):
    """The size of the context in tokens, and the cost of the session."""

    used: int
    size: int
    cost: v1.Cost | None
    update: v1.UsageUpdate


class NoticeReceived(msgspec.Struct, frozen=True, gc=False):
    """A message from the agent about the conversation, which does not belong to the answer."""

    severity: str
    """`info`, `warning`, `error`, or another word from the agent."""
    title: str
    description: str | None
    update: v1.Notice

    @property
    def key(self) -> str | None:
        """The key of its line. A later notice with the same key replaces this one. Our own agent sends keys."""
        return notice_key(self.update)


class CompactionChanged(msgspec.Struct, frozen=True, gc=False):
    """A summary of the conversation that the agent writes when the context is full or the user asks for it."""

    compaction: CompactionState
    is_new: bool
    update: v1.CompactionUpdate | v1.CompactionSummaryChunk


class SubagentChanged(msgspec.Struct, frozen=True, gc=False):
    """A subagent that the agent started, or whose state changed."""

    subagent: SubagentState
    is_new: bool
    update: v1.SubagentUpdate


class SubagentEvent(msgspec.Struct, frozen=True):
    """An event from a subagent's session, such as its answer or a tool call."""

    subagent: SubagentState
    event: "Event"


class SessionMessageChanged(msgspec.Struct, frozen=True, gc=False):
    """A message between the agent and a subagent, which may still grow."""

    message: SessionMessageState
    is_new: bool
    update: v1.SessionMessage | v1.SessionMessageChunk


class MessageWithdrawn(msgspec.Struct, frozen=True, gc=False):
    """A message that the agent withdrew because it will write it again. Our own agent reports this."""

    message_id: str | None
    update: v1.AgentMessageChunk


class PermissionRequested(msgspec.Struct, frozen=True, gc=False):
    """A permission request and its answer. The decision is None if the turn was cancelled first."""

    question: PermissionQuestion
    decision: Decision | None


class FileWritten(msgspec.Struct, frozen=True, gc=False):
    """A file that the agent wrote with `fs/write_text_file`. `before` is None if the file was missing or not text."""

    path: str
    """The absolute path that the agent sent."""
    before: str | None
    after: str


class OtherUpdate(msgspec.Struct, frozen=True, gc=False):
    """An update without an event class, or of an unknown type."""

    update: v1.SessionUpdate | UnknownVariant


class TurnFinished(msgspec.Struct, frozen=True, gc=False):
    """The end of the turn. `text` is the agent's answer: all its messages except the withdrawn ones."""

    stop_reason: str
    """A `StopReason` of the protocol, or another word from the agent."""
    usage: v1.Usage | None = None
    text: str = ""


Event = (
    TextChunk
    | ThoughtChunk
    | UserTextChunk
    | NonTextChunk
    | ToolCallChanged
    | PlanChanged
    | ModeChanged
    | OptionsChanged
    | CommandsChanged
    | TitleChanged
    | UsageChanged
    | NoticeReceived
    | CompactionChanged
    | SubagentChanged
    | SubagentEvent
    | SessionMessageChanged
    | MessageWithdrawn
    | PermissionRequested
    | FileWritten
    | OtherUpdate
    | TurnFinished
)
"""Any event."""
