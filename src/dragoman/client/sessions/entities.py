"""Entities of a session that later updates change: compactions, subagents and messages between sessions.

An update names its entity by id. A missing field leaves the value unchanged, null clears it, and any other value
replaces it. A chunk is appended to the content.
"""

from typing import Any

import msgspec
from msgspec import UNSET

from dragoman.protocol import v1


class CompactionState(msgspec.Struct, frozen=True):
    """A compaction, which summarizes the conversation, at one moment."""

    compaction_id: str
    status: str = "in_progress"
    """`in_progress`, `completed`, `failed`, `cancelled`, or another word from the agent."""
    summary: tuple[v1.ContentBlock, ...] = ()
    error: str | None = None

    @property
    def text(self) -> str:
        """The text of the summary."""
        return _text(self.summary)


class SubagentState(msgspec.Struct, frozen=True):
    """A subagent at one moment: a session that the agent started for a part of its work."""

    session_id: str
    title: str | None = None
    description: str | None = None
    state: v1.StateUpdate | None = None
    """`running`, `idle` or `requires_action`. None if the agent does not report it."""
    capabilities: v1.SubagentSessionCapabilities | None = None
    cwd: str | None = None
    additional_directories: tuple[str, ...] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether the subagent has finished its work."""
        return self.state is not None and self.state.state == "idle"


class SessionMessageState(msgspec.Struct, frozen=True):
    """A message between two sessions at one moment: from an agent to its subagent, or back."""

    message_id: str
    sender_session_id: str | None = None
    recipient_session_id: str | None = None
    content: tuple[v1.ContentBlock, ...] = ()

    @property
    def text(self) -> str:
        """The text of the message."""
        return _text(self.content)


class Entities:
    """The entities of one session, by id."""

    def __init__(self) -> None:
        self.compactions: dict[str, CompactionState] = {}
        self.subagents: dict[str, SubagentState] = {}
        self.messages: dict[str, SessionMessageState] = {}

    def apply_compaction(self, update: v1.CompactionUpdate | v1.CompactionSummaryChunk) -> CompactionState:
        """Apply an update and return the whole compaction."""
        state = self.compactions.get(update.compaction_id) or CompactionState(update.compaction_id)
        if isinstance(update, v1.CompactionSummaryChunk):
            changes: dict[str, Any] = {"summary": (*state.summary, update.content)}
        else:
            changes = {"status": update.status, **_changes(update, "error")}
            if update.summary is not UNSET:
                changes["summary"] = tuple(update.summary or ())
        state = self.compactions[state.compaction_id] = msgspec.structs.replace(state, **changes)
        return state

    def apply_subagent(self, update: v1.SubagentUpdate) -> SubagentState:
        """Apply an update and return the whole subagent."""
        state = self.subagents.get(update.session_id) or SubagentState(update.session_id)
        changes = _changes(update, "title", "description", "state", "capabilities", "cwd")
        if update.additional_directories is not UNSET:
            directories = update.additional_directories
            changes["additional_directories"] = None if directories is None else tuple(directories)
        state = self.subagents[state.session_id] = msgspec.structs.replace(state, **changes)
        return state

    def apply_message(self, update: v1.SessionMessage | v1.SessionMessageChunk) -> SessionMessageState:
        """Apply an update and return the whole message between sessions."""
        state = self.messages.get(update.message_id) or SessionMessageState(update.message_id)
        if isinstance(update, v1.SessionMessageChunk):
            changes: dict[str, Any] = {"content": (*state.content, update.content)}
        else:
            changes = _changes(update, "sender_session_id", "recipient_session_id")
            if update.content is not UNSET:
                changes["content"] = tuple(update.content or ())
        state = self.messages[state.message_id] = msgspec.structs.replace(state, **changes)
        return state


def _changes(update: msgspec.Struct, *names: str) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(update, name)) is not UNSET}


def _text(blocks: tuple[v1.ContentBlock, ...]) -> str:
    return "".join(block.text for block in blocks if isinstance(block, v1.TextContent))
