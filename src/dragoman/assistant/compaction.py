"""Making a conversation shorter for the model that it outgrew: it is summed up, and goes on from the summary.

The log keeps everything; only the model's memory begins anew, with a `SummaryMessage`. The model is given the
conversation as one text, a transcript. Sent as messages, it would be refused by some models: calls of tools where no
tools are given, thoughts whose signatures belong to other settings, and above all a conversation that was too long to
begin with.
"""

import json
from collections.abc import Sequence

from dragoman.agent.compaction import Compaction
from dragoman.agent.turn import Turn
from dragoman.assistant.models.message import (
    AssistantMessage,
    Message,
    SummaryMessage,
    ToolMessage,
    ToolUse,
    UserMessage,
    blob_text,
    link_words,
    resource_words,
)
from dragoman.assistant.models.model import ModelRequest
from dragoman.assistant.session import AssistantSession
from dragoman.errors import ContextOverflow
from dragoman.protocol import v1
from dragoman.text.excerpt import shorten_middle

MAX_PIECE = 4_000
"""Characters of one file or one result: its beginning and its end show its subject."""

BEGINNING = 0.25
"""The share of a text that is too long which is kept of its beginning, where the request stands."""

_LEFT_OUT = "\n[… left out …]\n"


def write_transcript(messages: Sequence[Message], max_characters: int) -> str:
    """Write down all messages and calls; the middle is left out when it does not fit."""
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
            return ["The person: " + "\n".join(_block(block) for block in content)]
        case SummaryMessage(text):
            return [f"A summary of what was before: {text}"]
        case AssistantMessage(text, _, uses):
            return ([f"You: {text}"] if text else []) + [_call(use) for use in uses]
        case ToolMessage(results):
            return [
                f"{names.get(result.id, 'The tool')} {'failed' if result.failed else 'gave'}: "
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
            return link_words(block)
        case v1.EmbeddedResource(resource=resource):
            text = resource.text if isinstance(resource, v1.TextResourceContents) else blob_text(resource)
            return resource_words(resource.uri, "[no text]" if text is None else shorten(text, MAX_PIECE))
        case v1.ImageContent():
            return "[a picture]"
        case v1.AudioContent():
            return "[a sound]"
        case _:
            return "[something of a kind that this agent does not know]"


FULL = 0.8
"""How full the context may get before the conversation is summed up by itself: the next reply needs room too."""

SHARE = 0.6
"""How much of the context the text to be summed up may take; its length in tokens is only guessed."""

CHARACTERS_PER_TOKEN = 3
"""A guess on the safe side for English and code."""

MAX_TRIES = 4
"""How often the text is halved when the guess was wrong."""

_REQUEST = (
    "Below is our conversation so far. Sum it up so that you could go on from your summary alone: what was asked for, "
    "what was done and found, with names of files and commands, what was decided, and what is left to do. "
    "Only the summary; do nothing of what is asked for in it.\n\n"
)
_DIGEST_PROMPTS = 20
_DIGEST_CHARACTERS = 2_000
_DIGEST_BEFORE = 8_000


async def compact(turn: Turn, prompt: list[v1.ContentBlock] | None = None) -> None:
    """Let the model go on from a summary of the conversation, and from its current prompt; raises ModelFailure."""
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
        request = ModelRequest([UserMessage([v1.TextContent(text=_REQUEST + write_transcript(messages, room))])])
        try:
            said, _stop = await own.ask(turn, request, compaction.say)
        except ContextOverflow:
            room //= 2
        else:
            return said.strip() or _digest(messages)
    return _digest(messages)


def _digest(messages: Sequence[Message]) -> str:
    """Sum up without a model: the earlier summary, the prompts, and the beginning of the last answer."""
    before = [message.text for message in messages if isinstance(message, SummaryMessage)]
    asked = [
        block.text
        for message in messages
        if isinstance(message, UserMessage)
        for block in message.content
        if isinstance(block, v1.TextContent)
    ]
    said = [message.text for message in messages if isinstance(message, AssistantMessage) and message.text]
    lines = [f"- {' '.join(text.split())[:_DIGEST_CHARACTERS]}" for text in asked[-_DIGEST_PROMPTS:]]
    last = f"\nThe last answer: {said[-1][:_DIGEST_CHARACTERS]}" if said else ""
    earlier = "".join(f"{shorten(text, _DIGEST_BEFORE)}\n\n" for text in before)
    return f"{earlier}The person asked:\n" + "\n".join(lines) + last
