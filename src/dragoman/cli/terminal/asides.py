"""One-line texts for events outside of the answer: compactions, subagents and messages between agents."""

from dragoman.client import CompactionState, SubagentState
from dragoman.client.events import (
    CompactionChanged,
    Event,
    SessionMessageChanged,
    SubagentChanged,
    SubagentEvent,
    ToolCallChanged,
)
from dragoman.protocol import v1
from dragoman.text import one_line

MAX_MESSAGE_CHARS = 200
"""Shown characters of a message between agents."""

_COMPACTIONS = {
    "in_progress": "summarizing the conversation",
    "completed": "the conversation was summarized",
    "cancelled": "summarizing the conversation was cancelled",
}


def aside_text(event: Event) -> str | None:
    """Return a short text for the event. None if it is shown elsewhere or adds nothing."""
    match event:
        case CompactionChanged(compaction, is_new, v1.CompactionUpdate()):
            return _compaction_text(compaction) if is_new or compaction.status != "in_progress" else None
        case SubagentChanged(subagent, True):
            about = f": {one_line(subagent.description)}" if subagent.description else ""
            return f"subagent {subagent_name(subagent)}{about}"
        case SubagentChanged(subagent, _, update) if isinstance(update.state, v1.StateUpdate) and subagent.is_idle:
            return f"subagent {subagent_name(subagent)} is done"
        case SubagentEvent(subagent, ToolCallChanged(call, True)):
            return f"{subagent_name(subagent)}: {one_line(call.title)}"
        case SessionMessageChanged(message, _, v1.SessionMessage()) if message.text:
            return f"message: {one_line(message.text, MAX_MESSAGE_CHARS)}"
        case _:
            return None


def _compaction_text(compaction: CompactionState) -> str | None:
    if compaction.status == "failed":
        return f"summarizing the conversation failed: {one_line(compaction.error or 'no reason given')}"
    return _COMPACTIONS.get(compaction.status)


def subagent_name(subagent: SubagentState) -> str:
    """Return the name to show for a subagent."""
    return one_line(subagent.title or subagent.session_id)
