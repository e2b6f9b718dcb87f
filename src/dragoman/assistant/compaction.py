"""Compaction: a conversation that outgrew the model's context is replaced by a summary.

The log keeps everything. Only the model's memory starts again, with a `SummaryMessage`. The conversation to summarize
is sent as one text, a transcript. Some models would refuse it as messages: they may contain tool calls without tools,
or thoughts signed for other settings, and the conversation was too long in the first place.
"""

import json
from collections.abc import Sequence

from dragoman.agent.turns.compaction import Compaction
from dragoman.agent.turns.turn import Turn
from dragoman.assistant.models.message import (
    AssistantMessage,
    Message,
    SummaryMessage,
    ToolMessage,
    ToolUse,
    UserMessage,
    blob_text,
    link_text,
    resource_text,
)
from dragoman.assistant.models.model import ReplyRequest
from dragoman.assistant.session import AssistantSession
from dragoman.errors import ContextOverflowError
from dragoman.protocol import v1
from dragoman.text.excerpt import shorten_middle

MAX_PIECE = 4_000
"""Characters of one file or result. Its beginning and end reveal its subject."""

BEGINNING = 0.25
"""The share of a shortened text that comes from its beginning, which contains the request."""

_LEFT_OUT = "\n[… cut …]\n"


def write_transcript(messages: Sequence[Message], max_characters: int) -> str:
    """Return a transcript of all messages and calls. Its middle is cut if it is too long."""
    names = {
        use.id: use.name for message in messages if isinstance(message, AssistantMessage) for use in message.tool_uses
    }
    return shorten("\n\n".join(piece for message in messages for piece in _pieces(message, names)), max_characters)


def shorten(text: str, max_characters: int) -> str:
    """Return the beginning and the end of a text that is too long."""
    return shorten_middle(text, max_characters, _LEFT_OUT, beginning=BEGINNING)


def _pieces(message: Message, names: dict[str, str]) -> list[str]:
    match message:
        case UserMessage(content):
            return ["The user: " + "\n".join(_block(block) for block in content)]
        case SummaryMessage(text):
            return [f"A summary of the earlier conversation: {text}"]
        case AssistantMessage(text, _, uses):
            return ([f"You: {text}"] if text else []) + [_call(use) for use in uses]
        case ToolMessage(results):
            return [
                f"{names.get(result.id, 'The tool')} {'failed' if result.failed else 'returned'}: "
                f"{shorten(result.text, MAX_PIECE)}"
                for result in results
            ]


def _call(use: ToolUse) -> str:
    return f"You called {use.name}: {shorten(json.dumps(use.arguments, ensure_ascii=False), MAX_PIECE)}"


def _block(block: v1.ContentBlock) -> str:
    match block:
        case v1.TextContent(text=text):
            return text
        case v1.ResourceLink():
            return link_text(block)
        case v1.EmbeddedResource(resource=resource):
            text = resource.text if isinstance(resource, v1.TextResourceContents) else blob_text(resource)
            return resource_text(resource.uri, "[no text]" if text is None else shorten(text, MAX_PIECE))
        case v1.ImageContent():
            return "[a picture]"
        case v1.AudioContent():
            return "[a sound]"
        case _:
            return "[content of an unknown type]"


FULL = 0.8
"""How full the context may get before automatic compaction. The next reply needs space as well."""

SHARE = 0.6
"""The share of the context for the transcript. Its length in tokens is only an estimate."""

CHARACTERS_PER_TOKEN = 3
"""A conservative estimate for English and code."""

MAX_TRIES = 4
"""How often to halve the transcript if the estimate was too high."""

_REQUEST = (
    "Below is our conversation so far. Summarize it so that you could continue from your summary alone: what was "
    "asked for, what was done and found, with names of files and commands, what was decided, and what is left to do. "
    "Only the summary; do nothing of what is asked for in it.\n\n"
)
_DIGEST_PROMPTS = 20
_DIGEST_CHARACTERS = 2_000
_DIGEST_BEFORE = 8_000


async def compact(turn: Turn, prompt: list[v1.ContentBlock] | None = None) -> None:
    """Replace the conversation by a summary, followed by the current prompt. Raises ModelError."""
    own: AssistantSession = turn.session.extra
    async with turn.compaction(messages=len(own.memory.messages)) as compaction:
        summary = await _summarise(turn, own, compaction)
        compaction.start_over(summary)
        own.memory.remember(SummaryMessage(summary, prompt or []))


async def _summarise(turn: Turn, own: AssistantSession, compaction: Compaction) -> str:
    messages = own.memory.messages
    if not own.model.summarises:
        return _digest(messages)
    room = int(own.model.context_size * SHARE * CHARACTERS_PER_TOKEN)
    for _ in range(MAX_TRIES):
        request = ReplyRequest([UserMessage([v1.TextContent(text=_REQUEST + write_transcript(messages, room))])])
        try:
            summary, _stop = await own.ask(turn, request, compaction.say)
        except ContextOverflowError:
            room //= 2
        else:
            return summary.strip() or _digest(messages)
    return _digest(messages)


def _digest(messages: Sequence[Message]) -> str:
    """Summarize without a model: the earlier summary, the prompts and the beginning of the last answer."""
    before = [message.text for message in messages if isinstance(message, SummaryMessage)]
    asked = [
        block.text
        for message in messages
        if isinstance(message, UserMessage)
        for block in message.content
        if isinstance(block, v1.TextContent)
    ]
    answers = [message.text for message in messages if isinstance(message, AssistantMessage) and message.text]
    lines = [f"- {' '.join(text.split())[:_DIGEST_CHARACTERS]}" for text in asked[-_DIGEST_PROMPTS:]]
    last = f"\nThe last answer: {answers[-1][:_DIGEST_CHARACTERS]}" if answers else ""
    earlier = "".join(f"{shorten(text, _DIGEST_BEFORE)}\n\n" for text in before)
    return f"{earlier}The user asked:\n" + "\n".join(lines) + last
