"""The state of a session: its values when it was opened, with every update since."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import UNSET

from dragoman.client import events
from dragoman.client.entities import Entities
from dragoman.client.events import Event
from dragoman.client.internal import internal
from dragoman.client.tool_call import ToolCallState, merge
from dragoman.protocol import v1
from dragoman.protocol.notice import is_void


class SessionState:
    """The state of a session; each update changes it, and becomes an event."""

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
        """Every tool call, by its id, with all that was said of it."""
        self.entities = Entities()
        """Its compactions, its subagents and the messages between them, by their ids."""

    @internal
    def set_up(self, modes: v1.SessionModeState | None, options: list[v1.SessionConfigOption] | None) -> None:
        """Take the agent's answer when the session was opened."""
        if modes is not None:
            self.modes = modes
        if options is not None:
            self.config_options = tuple(options)

    @internal
    def set_mode_id(self, mode_id: str) -> None:
        """Take the mode that the session is in."""
        available = self.modes.available_modes if self.modes else []
        self.modes = v1.SessionModeState(current_mode_id=mode_id, available_modes=available)

    @internal
    def note(self, update: v1.SessionUpdate) -> Event:
        """Take an update and return its event."""
        take = _TAKERS.get(type(update))
        return events.Other(update) if take is None else take(self, update)

    @internal
    def note_call(self, update: v1.ToolCall | v1.ToolCallUpdate) -> ToolCallState:
        """Take an update of a tool call, announced or not, and return the whole call."""
        call = self.tool_calls[update.tool_call_id] = merge(self.tool_calls.get(update.tool_call_id), update)
        return call


def _take_said(state: SessionState, update: v1.AgentMessageChunk) -> Event:
    del state
    if is_void(update):
        return events.Withdrawn(update.message_id, update)
    if isinstance(update.content, v1.TextContent):
        return events.Text(update.content.text, update)
    return events.OtherContent(update.content, "agent", update)


def _take_thought(state: SessionState, update: v1.AgentThoughtChunk) -> Event:
    del state
    if isinstance(update.content, v1.TextContent):
        return events.Thought(update.content.text, update)
    return events.OtherContent(update.content, "thought", update)


def _take_user(state: SessionState, update: v1.UserMessageChunk) -> Event:
    del state
    if isinstance(update.content, v1.TextContent):
        return events.UserText(update.content.text, update)
    return events.OtherContent(update.content, "user", update)


def _take_call(state: SessionState, update: v1.ToolCall | v1.ToolCallProgress) -> Event:
    is_new = update.tool_call_id not in state.tool_calls
    return events.ToolChanged(state.note_call(update), is_new, update)


def _take_plan(state: SessionState, update: v1.Plan) -> Event:
    state.plan = tuple(update.entries)
    return events.PlanChanged(state.plan, update)


def _take_mode(state: SessionState, update: v1.CurrentModeUpdate) -> Event:
    state.set_mode_id(update.current_mode_id)
    return events.ModeChanged(update.current_mode_id, update)


def _take_options(state: SessionState, update: v1.ConfigOptionUpdate) -> Event:
    state.config_options = tuple(update.config_options)
    return events.OptionsChanged(state.config_options, update)


def _take_commands(state: SessionState, update: v1.AvailableCommandsUpdate) -> Event:
    state.commands = tuple(update.available_commands)
    return events.CommandsChanged(state.commands, update)


def _take_info(state: SessionState, update: v1.SessionInfoUpdate) -> Event:
    if update.updated_at is not UNSET:
        state.updated_at = update.updated_at
    if update.title is UNSET:
        return events.Other(update)
    state.title = update.title
    return events.TitleChanged(update.title, update)


def _take_notice(state: SessionState, update: v1.Notice) -> Event:
    del state
    return events.Noticed(update.severity, update.title, update.description, update)


def _take_compaction(state: SessionState, update: v1.CompactionUpdate | v1.CompactionSummaryChunk) -> Event:
    is_new = update.compaction_id not in state.entities.compactions
    return events.CompactionChanged(state.entities.take_compaction(update), is_new, update)


def _take_subagent(state: SessionState, update: v1.SubagentUpdate) -> Event:
    is_new = update.session_id not in state.entities.subagents
    return events.SubagentChanged(state.entities.take_subagent(update), is_new, update)


def _take_message(state: SessionState, update: v1.SessionMessage | v1.SessionMessageChunk) -> Event:
    is_new = update.message_id not in state.entities.messages
    return events.MessagePassed(state.entities.take_message(update), is_new, update)


def _take_usage(state: SessionState, update: v1.UsageUpdate) -> Event:
    state.usage = update
    return events.UsageChanged(update.used, update.size, update.cost, update)


_TAKERS: Mapping[type, Callable[[SessionState, Any], Event]] = {
    v1.AgentMessageChunk: _take_said,
    v1.AgentThoughtChunk: _take_thought,
    v1.UserMessageChunk: _take_user,
    v1.ToolCall: _take_call,
    v1.ToolCallProgress: _take_call,
    v1.Plan: _take_plan,
    v1.CurrentModeUpdate: _take_mode,
    v1.ConfigOptionUpdate: _take_options,
    v1.AvailableCommandsUpdate: _take_commands,
    v1.SessionInfoUpdate: _take_info,
    v1.UsageUpdate: _take_usage,
    v1.Notice: _take_notice,
    v1.CompactionUpdate: _take_compaction,
    v1.CompactionSummaryChunk: _take_compaction,
    v1.SubagentUpdate: _take_subagent,
    v1.SessionMessage: _take_message,
    v1.SessionMessageChunk: _take_message,
}
