"""Events beside the answer, in words of one line: compactions, subagents and messages between agent and subagent."""

from dragoman.client import CompactionState, SubagentState
from dragoman.client.events import CompactionChanged, Event, MessagePassed, SubagentChanged, SubagentEvent, ToolChanged
from dragoman.protocol import v1
from dragoman.text import one_line

MAX_WORDS = 200
"""Characters of a message between agent and subagent that are shown."""

_COMPACTIONS = {
    "in_progress": "summing up the conversation",
    "completed": "the conversation was summed up",
    "cancelled": "summing up the conversation was cancelled",
}


def aside_words(event: Event) -> str | None:
    """Return the words for an event; None for one that is shown elsewhere, or adds nothing."""
    match event:
        case CompactionChanged(compaction, is_new, v1.CompactionUpdate()):
            return _compaction_words(compaction) if is_new or compaction.status != "in_progress" else None
        case SubagentChanged(subagent, True):
            about = f": {one_line(subagent.description)}" if subagent.description else ""
            return f"subagent {subagent_name(subagent)}{about}"
        case SubagentChanged(subagent, _, update) if isinstance(update.state, v1.StateUpdate) and subagent.is_idle:
            return f"subagent {subagent_name(subagent)} is done"
        case SubagentEvent(subagent, ToolChanged(call, True)):
            return f"{subagent_name(subagent)}: {one_line(call.title)}"
        case MessagePassed(message, _, v1.SessionMessage()) if message.text:
            return f"message: {one_line(message.text, MAX_WORDS)}"
        case _:
            return None


def _compaction_words(compaction: CompactionState) -> str | None:
    if compaction.status == "failed":
        return f"summing up the conversation failed: {one_line(compaction.error or 'no reason was given')}"
    return _COMPACTIONS.get(compaction.status)


def subagent_name(subagent: SubagentState) -> str:
    """Return how to call a subagent."""
    return one_line(subagent.title or subagent.session_id)
