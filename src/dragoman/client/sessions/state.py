"""The state of a session: its initial values with every update applied.

`_APPLIERS` maps each type of update to the function that applies it and returns the event.
"""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import UNSET

from dragoman.client import events
from dragoman.client.events import Event
from dragoman.client.internal import internal
from dragoman.client.sessions.entities import Entities
from dragoman.client.sessions.tool_call import ToolCallState, merge
from dragoman.protocol import v1
from dragoman.protocol.void_message import is_void


class SessionState:
    """The state of a session. Each update changes it and becomes an event."""

    def __init__(self, session_id: str, cwd: str, additional_directories: tuple[str, ...] = ()) -> None:
        self.id = session_id
        self.cwd = cwd
        self.additional_directories = additional_directories
        self.modes: v1.SessionModeState | None = None
        self.config_options: tuple[v1.SessionConfigOption, ...] = ()
        self.commands: tuple[v1.AvailableCommand, ...] = ()
        self.title: str | None = None
        self.updated_at: str | None = None
        self.usage: v1.UsageUpdate | None = None
        self.plan: tuple[v1.PlanEntry, ...] = ()
        self.tool_calls: dict[str, ToolCallState] = {}
        """The tool calls by id, each with all its updates."""
        self.entities = Entities()
        """The compactions, the subagents and the messages between them, by id."""

    @internal
    def set_up(self, modes: v1.SessionModeState | None, options: list[v1.SessionConfigOption] | None) -> None:
        """Set the modes and options from the answer that opened the session."""
        if modes is not None:
            self.modes = modes
        if options is not None:
            self.config_options = tuple(options)

    @internal
    def set_mode_id(self, mode_id: str) -> None:
        """Set the current mode."""
        available = self.modes.available_modes if self.modes else []
        self.modes = v1.SessionModeState(current_mode_id=mode_id, available_modes=available)

    @internal
    def apply(self, update: v1.SessionUpdate) -> Event:
        """Apply an update and return its event."""
        apply = _APPLIERS.get(type(update))
        return events.OtherUpdate(update) if apply is None else apply(self, update)

    @internal
    def apply_call(self, update: v1.ToolCall | v1.ToolCallUpdate) -> ToolCallState:
        """Apply an update of a tool call, even of one that was not announced. Return the whole call."""
        call = self.tool_calls[update.tool_call_id] = merge(self.tool_calls.get(update.tool_call_id), update)
        return call


def _apply_agent_chunk(_state: SessionState, update: v1.AgentMessageChunk) -> Event:
    if is_void(update):
        return events.MessageWithdrawn(update.message_id, update)
    if isinstance(update.content, v1.TextContent):
        return events.TextChunk(update.content.text, update)
    return events.NonTextChunk(update.content, "agent", update)


def _apply_thought(_state: SessionState, update: v1.AgentThoughtChunk) -> Event:
    if isinstance(update.content, v1.TextContent):
        return events.ThoughtChunk(update.content.text, update)
    return events.NonTextChunk(update.content, "thought", update)


def _apply_user_chunk(_state: SessionState, update: v1.UserMessageChunk) -> Event:
    if isinstance(update.content, v1.TextContent):
        return events.UserTextChunk(update.content.text, update)
    return events.NonTextChunk(update.content, "user", update)


def _apply_call(state: SessionState, update: v1.ToolCall | v1.ToolCallProgress) -> Event:
    is_new = update.tool_call_id not in state.tool_calls
    return events.ToolCallChanged(state.apply_call(update), is_new, update)


def _apply_plan(state: SessionState, update: v1.Plan) -> Event:
    state.plan = tuple(update.entries)
    return events.PlanChanged(state.plan, update)


def _apply_mode(state: SessionState, update: v1.CurrentModeUpdate) -> Event:
    state.set_mode_id(update.current_mode_id)
    return events.ModeChanged(update.current_mode_id, update)


def _apply_options(state: SessionState, update: v1.ConfigOptionUpdate) -> Event:
    state.config_options = tuple(update.config_options)
    return events.OptionsChanged(state.config_options, update)


def _apply_commands(state: SessionState, update: v1.AvailableCommandsUpdate) -> Event:
    state.commands = tuple(update.available_commands)
    return events.CommandsChanged(state.commands, update)


def _apply_info(state: SessionState, update: v1.SessionInfoUpdate) -> Event:
    if update.updated_at is not UNSET:
        state.updated_at = update.updated_at
    if update.title is UNSET:
        return events.OtherUpdate(update)
    state.title = update.title
    return events.TitleChanged(update.title, update)


def _apply_notice(_state: SessionState, update: v1.Notice) -> Event:
    return events.NoticeReceived(update.severity, update.title, update.description, update)


def _apply_compaction(state: SessionState, update: v1.CompactionUpdate | v1.CompactionSummaryChunk) -> Event:
    is_new = update.compaction_id not in state.entities.compactions
    return events.CompactionChanged(state.entities.apply_compaction(update), is_new, update)


def _apply_subagent(state: SessionState, update: v1.SubagentUpdate) -> Event:
    is_new = update.session_id not in state.entities.subagents
    return events.SubagentChanged(state.entities.apply_subagent(update), is_new, update)


def _apply_message(state: SessionState, update: v1.SessionMessage | v1.SessionMessageChunk) -> Event:
    is_new = update.message_id not in state.entities.messages
    return events.SessionMessageChanged(state.entities.apply_message(update), is_new, update)


def _apply_usage(state: SessionState, update: v1.UsageUpdate) -> Event:
    state.usage = update
    return events.UsageChanged(update.used, update.size, update.cost, update)


_APPLIERS: Mapping[type, Callable[[SessionState, Any], Event]] = {
    v1.AgentMessageChunk: _apply_agent_chunk,
    v1.AgentThoughtChunk: _apply_thought,
    v1.UserMessageChunk: _apply_user_chunk,
    v1.ToolCall: _apply_call,
    v1.ToolCallProgress: _apply_call,
    v1.Plan: _apply_plan,
    v1.CurrentModeUpdate: _apply_mode,
    v1.ConfigOptionUpdate: _apply_options,
    v1.AvailableCommandsUpdate: _apply_commands,
    v1.SessionInfoUpdate: _apply_info,
    v1.UsageUpdate: _apply_usage,
    v1.Notice: _apply_notice,
    v1.CompactionUpdate: _apply_compaction,
    v1.CompactionSummaryChunk: _apply_compaction,
    v1.SubagentUpdate: _apply_subagent,
    v1.SessionMessage: _apply_message,
    v1.SessionMessageChunk: _apply_message,
}
