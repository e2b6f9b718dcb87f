"""A transcript as Markdown: messages stay the Markdown that they are, all else is fenced."""

import re
from collections.abc import Iterator

import msgspec

from dragoman.cli.sessions.transcript import Transcript, TranscriptMessage, TranscriptPlan
from dragoman.cli.terminal.tool_calls import hunk_lines
from dragoman.client import ToolCallState
from dragoman.protocol import v1
from dragoman.protocol.decode import encode
from dragoman.protocol.unions import UnknownVariant
from dragoman.text import clean_text, one_line

SPEAKERS = {"user": "User", "agent": "Agent", "thought": "Thought"}
MARKS = {"pending": "[ ]", "in_progress": "[~]", "completed": "[x]"}

_TICKS = re.compile(r"`{3,}")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)
_MARKUP = re.compile(r"([\\`*_\[\]<>#|])")


def to_markdown(transcript: Transcript) -> str:
    """Write a whole transcript."""
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
                parts.append("## TranscriptPlan")
                parts.append("\n".join(f"- {MARKS.get(step.status, '[ ]')} {_words(step.content)}" for step in entries))
    return "\n\n".join(parts) + "\n"


def describe_block(block: v1.ContentBlock) -> str:
    """Describe a block that is no text, in one line."""
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
    """Write any value of the protocol, for people to read."""
    return msgspec.json.format(encode(value), indent=2).decode()


def _message(message: TranscriptMessage) -> Iterator[str]:
    yield f"## {SPEAKERS[message.role]}"
    for block in message.blocks:
        match block:
            case v1.TextContent(text=text):
                said = _closed(clean_text(text).strip("\n"))
                yield _quoted(said) if message.role == "thought" else said
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
    """Write a change as a diff of its lines."""
    before = diff.path if diff.old_text is not None else "/dev/null"
    hunks = hunk_lines(diff)
    return "\n".join([f"--- {before}", f"+++ {diff.path}", *hunks] if hunks else [])


def _words(text: str) -> str:
    """Return a text in one line that no Markdown reader takes for markup."""
    return _MARKUP.sub(r"\\\1", one_line(text))


def _fenced(text: str, language: str = "") -> str:
    text = clean_text(text).rstrip("\n")
    ticks = "`" * max([3, *(len(run) + 1 for run in _TICKS.findall(text))])
    return f"{ticks}{language}\n{text}\n{ticks}"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def _closed(text: str) -> str:
    """Close a fence that was left open, which would swallow all that follows."""
    opened = ""
    for fence in _FENCE.findall(text):
        if not opened:
            opened = fence
        elif fence[0] == opened[0] and len(fence) >= len(opened):
            opened = ""
    return f"{text}\n{opened}" if opened else text
