"""A session as a readable transcript: messages, tool calls and the plan, in the order in which they began.

In Markdown, messages are copied as Markdown, and everything else is fenced.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import msgspec

from dragoman.client.events import (
    CompactionChanged,
    Event,
    NonTextChunk,
    PlanChanged,
    Role,
    TextChunk,
    ThoughtChunk,
    ToolCallChanged,
    UserTextChunk,
)
from dragoman.client.sessions.session import Session, drop_withdrawn
from dragoman.client.sessions.state import SessionState
from dragoman.client.sessions.tool_call import ToolCallState
from dragoman.client.transcripts.hunks import hunk_lines
from dragoman.protocol import v1
from dragoman.protocol.decode import encode
from dragoman.protocol.unions import UnknownVariant
from dragoman.text import clean_text, escape_json, one_line

Chunk = v1.AgentMessageChunk | v1.AgentThoughtChunk | v1.UserMessageChunk

_ROLES: dict[type[Chunk], Role] = {
    v1.AgentMessageChunk: "agent",
    v1.AgentThoughtChunk: "thought",
    v1.UserMessageChunk: "user",
}


class TranscriptMessage(msgspec.Struct, frozen=True):
    """One message of the user or the agent."""

    role: Role
    blocks: tuple[v1.ContentBlock, ...]


class TranscriptPlan(msgspec.Struct, frozen=True):
    """The agent's plan."""

    entries: tuple[v1.PlanEntry, ...]


TranscriptEntry = TranscriptMessage | ToolCallState | TranscriptPlan


class Transcript(msgspec.Struct, frozen=True):
    """A session with all its messages, tool calls and plans."""

    session_id: str
    cwd: str
    agent: str
    entries: tuple[TranscriptEntry, ...]
    updates: tuple[v1.SessionUpdate, ...]
    title: str | None = None
    updated_at: str | None = None


def read_transcript(session: Session, agent: str, info: v1.SessionInfo | None = None) -> Transcript:
    """Return the transcript of a loaded session."""
    return Transcript(
        session.id,
        session.cwd,
        agent,
        tuple(_gather(session.history)),
        tuple(update for event in session.history if (update := getattr(event, "update", None)) is not None),
        session.title or (info.title if info else None),
        session.updated_at or (info.updated_at if info else None),
    )


def make_transcript(info: v1.SessionInfo, agent: str, updates: Iterable[v1.SessionUpdate]) -> Transcript:
    """Return the transcript of a session from all its updates."""
    state = SessionState(info.session_id, info.cwd)
    kept = tuple(updates)
    events = drop_withdrawn([state.apply(update) for update in kept])
    entries = tuple(_gather(events))
    title, updated_at = info.title or state.title, info.updated_at or state.updated_at
    return Transcript(info.session_id, info.cwd, agent, entries, kept, title, updated_at)


def write_transcript(transcript: Transcript, kind: str) -> str:
    """Return a transcript as `html` or `json`. For any other kind return Markdown."""
    match kind:
        case "html":
            from dragoman.client.transcripts.transcript_html import to_html

            return to_html(transcript)
        case "json":
            return _to_json(transcript)
        case _:
            return to_markdown(transcript)


class SessionRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session in the JSON output of commands, with keys in snake_case."""

    session_id: str
    cwd: str
    title: str | None = None
    updated_at: str | None = None
    additional_directories: Sequence[str] = ()
    archived: bool | None = None
    meta: dict[str, Any] | None = None


def session_row(info: v1.SessionInfo) -> SessionRow:
    """Convert a listed session to its row in the JSON output."""
    return msgspec.convert(info, SessionRow, from_attributes=True)


def _to_json(transcript: Transcript) -> str:
    info = v1.SessionInfo(
        session_id=transcript.session_id,
        cwd=transcript.cwd,
        title=transcript.title,
        updated_at=transcript.updated_at,
    )
    content = {"session": session_row(info), "agent": transcript.agent, "updates": transcript.updates}
    return escape_json(msgspec.json.format(encode(content), indent=2).decode()) + "\n"


def _gather(events: Iterable[Event]) -> Iterable[TranscriptEntry]:
    """Return the entries of a transcript. A tool call or plan keeps its first position and shows its last state."""
    entries: list[_OpenMessage | TranscriptEntry] = []
    places: dict[str, int] = {}

    def put(key: str, entry: ToolCallState | TranscriptPlan) -> None:
        if key in places:
            entries[places[key]] = entry
        else:
            places[key] = len(entries)
            entries.append(entry)

    for event in events:
        match event:
            # Calls and the plan replace their earlier state. Chunks extend the last message if they belong to it.
            case ToolCallChanged(call):
                put(f"call {call.tool_call_id}", call)
            case PlanChanged(planned):
                put("plan", TranscriptPlan(planned))
            case CompactionChanged(compaction) if compaction.status == "completed":
                summary = v1.TextContent(text=f"The conversation so far was summarized.\n\n{compaction.text}")
                entries.append(TranscriptMessage("thought", (summary,)))
            case TextChunk() | ThoughtChunk() | UserTextChunk() | NonTextChunk():
                last = entries[-1] if entries else None
                if not isinstance(last, _OpenMessage) or not last.continues(event.update):
                    last = _OpenMessage(event.update)
                    entries.append(last)
                last.blocks.append(event.update.content)
            case _:
                pass
    return (entry.finish() if isinstance(entry, _OpenMessage) else entry for entry in entries)


class _OpenMessage:
    """A message that may still grow."""

    def __init__(self, first: Chunk) -> None:
        self.blocks: list[v1.ContentBlock] = []
        self._kind = type(first)
        self._message_id = first.message_id

    def continues(self, chunk: Chunk) -> bool:
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


SPEAKERS = {"user": "User", "agent": "Agent", "thought": "Thought"}
MARKS = {"pending": "[ ]", "in_progress": "[~]", "completed": "[x]"}

_TICKS = re.compile(r"`{3,}")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)
_MARKUP = re.compile(r"([\\`*_\[\]<>#|])")


def to_markdown(transcript: Transcript) -> str:
    """Return a transcript as Markdown."""
    facts = [f"- Session: {_words(transcript.session_id)}", f"- Agent: {_words(transcript.agent)}"]
    facts.append(f"- Directory: {_words(transcript.cwd)}")
    if transcript.updated_at:
        facts.append(f"- Updated: {_words(transcript.updated_at)}")
    parts = [f"# {_words(transcript.title or transcript.session_id)}", "\n".join(facts)]
    for entry in transcript.entries:
        match entry:
            case TranscriptMessage():
                parts += _message(entry)
            case ToolCallState():
                parts += _call(entry)
            case TranscriptPlan(entries):
                parts.append("## Plan")
                parts.append("\n".join(f"- {MARKS.get(step.status, '[ ]')} {_words(step.content)}" for step in entries))
    return "\n\n".join(parts) + "\n"


def describe_block(block: v1.ContentBlock) -> str:
    """Describe a content block other than text in one line."""
    match block:
        case v1.ImageContent():
            return f"image, {block.mime_type}"
        case v1.AudioContent():
            return f"audio, {block.mime_type}"
        case v1.ResourceLink():
            return f"{block.title or block.name}: {block.uri}"
        case v1.EmbeddedResource():
            return f"attached: {block.resource.uri}"
        case UnknownVariant(tag=tag):
            return f"a block of type {tag}"
        case v1.TextContent():
            return block.text


def as_json(value: object) -> str:
    """Return any value of the protocol as indented JSON."""
    return msgspec.json.format(encode(value), indent=2).decode()


def _message(message: TranscriptMessage) -> Iterator[str]:
    yield f"## {SPEAKERS[message.role]}"
    for block in message.blocks:
        match block:
            case v1.TextContent(text=text):
                shown = _closed(clean_text(text).strip("\n"))
                yield _quoted(shown) if message.role == "thought" else shown
            case v1.EmbeddedResource(resource=v1.TextResourceContents(text=text)):
                yield f"*{_words(describe_block(block))}*"
                yield _fenced(text)
            case _:
                yield f"*{_words(describe_block(block))}*"


def _call(call: ToolCallState) -> Iterator[str]:
    yield f"### Tool: {_words(call.title or call.tool_call_id)} ({call.status})"
    for location in call.locations:
        yield f"*{_words(location.path)}*"
    if call.raw_input is not None:
        yield _fenced(as_json(call.raw_input), "json")
    for item in call.content:
        match item:
            case v1.Content(content=v1.TextContent(text=text)):
                yield _fenced(text)
            case v1.Content(content=block):
                yield f"*{_words(describe_block(block))}*"
            case v1.Diff():
                yield _fenced(diff_lines(item), "diff")
            case v1.Terminal():
                yield f"*terminal {_words(item.terminal_id)}*"
            case UnknownVariant(tag=tag):
                yield f"*content of type {_words(tag)}*"


def diff_lines(diff: v1.Diff) -> str:
    """Return a change as a unified diff."""
    before = diff.path if diff.old_text is not None else "/dev/null"
    hunks = hunk_lines(diff)
    return "\n".join([f"--- {before}", f"+++ {diff.path}", *hunks] if hunks else [])


def _words(text: str) -> str:
    """Return a text in one line with its Markdown markup escaped."""
    return _MARKUP.sub(r"\\\1", one_line(text))


def _fenced(text: str, language: str = "") -> str:
    text = clean_text(text).rstrip("\n")
    ticks = "`" * max([3, *(len(run) + 1 for run in _TICKS.findall(text))])
    return f"{ticks}{language}\n{text}\n{ticks}"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def _closed(text: str) -> str:
    """Close an open fence, which would otherwise swallow the rest of the transcript."""
    opened = ""
    for fence in _FENCE.findall(text):
        if not opened:
            opened = fence
        elif fence[0] == opened[0] and len(fence) >= len(opened):
            opened = ""
    return f"{text}\n{opened}" if opened else text
