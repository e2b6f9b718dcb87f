"""A conversation as one text: for a model that is to sum it up, and needs no tools for that."""

import json
from collections.abc import Sequence

from dragoman.agent.models.content import blob_text, link_words, resource_words
from dragoman.agent.models.message import (
    AssistantMessage,
    Message,
    SummaryMessage,
    ToolMessage,
    ToolUse,
    UserMessage,
)
from dragoman.protocol import v1
from dragoman.text.excerpt import shorten_middle

MAX_PIECE = 4_000
"""Characters of one file or one result: what it was about shows at its beginning and its end."""

BEGINNING = 0.25
"""The share of a text that is too long which is kept of its beginning, where it says what was wanted."""

_LEFT_OUT = "\n[… left out …]\n"


def write_transcript(messages: Sequence[Message], max_characters: int) -> str:
    """Write down who said and did what, leaving out of the middle what does not fit."""
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
