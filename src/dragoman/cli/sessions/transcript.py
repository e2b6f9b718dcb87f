"""A session as something to read: messages, tool calls and the plan, in the order in which they began."""

from collections.abc import Iterable
from itertools import groupby
from typing import Literal

import msgspec

from dragoman.client import (
    Event,
    OtherContent,
    PlanChanged,
    Session,
    Text,
    Thought,
    ToolCallState,
    ToolChanged,
    UserText,
)
from dragoman.protocol import v1

Role = Literal["agent", "thought", "user"]
Chunk = v1.AgentMessageChunk | v1.AgentThoughtChunk | v1.UserMessageChunk

_ROLES: dict[type[Chunk], Role] = {
    v1.AgentMessageChunk: "agent",
    v1.AgentThoughtChunk: "thought",
    v1.UserMessageChunk: "user",
}


class TranscriptMessage(msgspec.Struct, frozen=True):
    """One message of one side."""

    role: Role
    blocks: tuple[v1.ContentBlock, ...]


class TranscriptPlan(msgspec.Struct, frozen=True):
    """The agent's plan."""

    entries: tuple[v1.PlanEntry, ...]


TranscriptEntry = TranscriptMessage | ToolCallState | TranscriptPlan


class Transcript(msgspec.Struct, frozen=True):
    """A whole session."""

    session_id: str
    cwd: str
    agent: str
    entries: tuple[TranscriptEntry, ...]
    updates: tuple[v1.SessionUpdate, ...]
    title: str | None = None
    updated_at: str | None = None


def read_transcript(session: Session, agent: str, info: v1.SessionInfo | None = None) -> Transcript:
    """Return the transcript of a session that was loaded."""
    return Transcript(
        session.id,
        session.cwd,
        agent,
        tuple(_gather(session.history)),
        tuple(update for event in session.history if (update := getattr(event, "update", None)) is not None),
        session.title or (info.title if info else None),
        session.updated_at or (info.updated_at if info else None),
    )


def _gather(events: Iterable[Event]) -> Iterable[TranscriptEntry]:
    entries: list[_Speech | ToolCallState | TranscriptPlan] = []
    places: dict[str, int] = {}

    def put(key: str, entry: ToolCallState | TranscriptPlan) -> None:
        if key in places:
            entries[places[key]] = entry
        else:
            places[key] = len(entries)
            entries.append(entry)

    for event in events:
        match event:
            case ToolChanged(call):
                put(f"call {call.tool_call_id}", call)
            case PlanChanged(planned):
                put("plan", TranscriptPlan(planned))
            case Text() | Thought() | UserText() | OtherContent():
                last = entries[-1] if entries else None
                if not isinstance(last, _Speech) or not last.goes_on(event.update):
                    last = _Speech(event.update)
                    entries.append(last)
                last.blocks.append(event.update.content)
            case _:
                pass
    return (entry.finish() if isinstance(entry, _Speech) else entry for entry in entries)


class _Speech:
    """A message that may go on."""

    def __init__(self, first: Chunk) -> None:
        self.blocks: list[v1.ContentBlock] = []
        self._kind = type(first)
        self._message_id = first.message_id

    def goes_on(self, chunk: Chunk) -> bool:
        return type(chunk) is self._kind and chunk.message_id == self._message_id

    def finish(self) -> TranscriptMessage:
        blocks: list[v1.ContentBlock] = []
        for is_text, group in groupby(self.blocks, lambda block: isinstance(block, v1.TextContent)):
            if is_text:
                text = "".join(block.text for block in group if isinstance(block, v1.TextContent))
                blocks.append(v1.TextContent(text=text))
            else:
                blocks += group
        return TranscriptMessage(_ROLES[self._kind], tuple(blocks))
