"""Our messages as the model library wants them."""

from collections.abc import Sequence
from typing import Any

import msgspec
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from dragoman.agent.models import model
from dragoman.agent.models.content import (
    blob_kind,
    blob_text,
    decode_base64,
    link_words,
    refusal_words,
    resource_words,
)
from dragoman.agent.models.message import (
    AssistantMessage,
    Message,
    SummaryMessage,
    ToolMessage,
    ToolResult,
    ToolUse,
    UserMessage,
)
from dragoman.agent.models.provider_memory import restore_parts
from dragoman.protocol import v1

NO_RESULT = "The turn ended before this tool was done; there is no result."

SUMMARY = "This is a summary of our conversation so far; go on from it."


class Recipient(msgspec.Struct, frozen=True):
    """Who the messages are for."""

    provider: str
    """The provider's name for itself, by which it knows what it sent before."""
    takes: frozenset[str]


def to_library(request: model.ModelRequest, recipient: Recipient) -> list[ModelMessage]:
    """Return the conversation so far as the library wants it, with a result for every tool call."""
    writer = _Writer(recipient)
    for message in request.messages:
        writer.add(message)
    return writer.finish(request.instructions)


class _Writer:
    """Puts messages together: requests that follow each other become one, open tool calls are closed."""

    def __init__(self, recipient: Recipient) -> None:
        self._recipient = recipient
        self._messages: list[ModelMessage] = []
        self._parts: list[ModelRequestPart] = []
        self._open: dict[str, ToolUse] = {}

    def add(self, message: Message) -> None:
        match message:
            case UserMessage(content):
                self._close_tools()
                self._parts.append(UserPromptPart(prompt_content(content, self._recipient.takes)))
            case ToolMessage(results):
                self._parts += [self._result(result) for result in results if result.id in self._open]
            case AssistantMessage():
                self._reply(message)
            case SummaryMessage(text):
                self._messages, self._open = [], {}
                self._parts = [UserPromptPart(f"{SUMMARY}\n\n{text}")]

    def finish(self, instructions: str) -> list[ModelMessage]:
        self._close_tools()
        self._messages.append(ModelRequest(self._parts, instructions=instructions or None))
        return self._messages

    def _reply(self, message: AssistantMessage) -> None:
        self._close_tools()
        parts = restore_parts(message, self._recipient.provider) or _plain_parts(message)
        if not parts:  # a reply that was cancelled before it began
            return
        if self._parts:
            self._messages.append(ModelRequest(self._parts))
            self._parts = []
        self._messages.append(ModelResponse(parts, provider_name=self._recipient.provider))
        self._open = {use.id: use for use in message.tool_uses}

    def _result(self, result: ToolResult) -> ToolReturnPart[Any]:
        use = self._open.pop(result.id)
        content = [result.text, *prompt_content(result.attachments, self._recipient.takes)]
        outcome = "failed" if result.failed else "success"
        return ToolReturnPart(use.name, content if result.attachments else result.text, use.id, outcome=outcome)

    def _close_tools(self) -> None:
        for use in list(self._open.values()):
            self._parts.append(self._result(ToolResult(use.id, NO_RESULT, failed=True)))


def prompt_content(blocks: Sequence[v1.ContentBlock], takes: frozenset[str]) -> list[UserContent]:
    """Return a prompt's blocks as the library wants them; what the model cannot take becomes a word about it."""
    return [_block(block, takes) for block in blocks]


def _block(block: v1.ContentBlock, takes: frozenset[str]) -> UserContent:
    match block:
        case v1.TextContent(text=text):
            return text
        case v1.ImageContent(data=data, mime_type=media_type):
            return _binary("image", data, media_type, takes)
        case v1.AudioContent(data=data, mime_type=media_type):
            return _binary("audio", data, media_type, takes)
        case v1.ResourceLink():
            return link_words(block)
        case v1.EmbeddedResource(resource=resource):
            return _embedded(resource, takes)
        case _:
            return "[something of a kind that this agent does not know]"


def _embedded(resource: v1.EmbeddedResourceResource, takes: frozenset[str]) -> UserContent:
    if isinstance(resource, v1.TextResourceContents):
        return resource_words(resource.uri, resource.text)
    text = blob_text(resource)
    if text is not None:
        return resource_words(resource.uri, text)
    kind, media_type = blob_kind(resource)
    return _binary(kind, resource.blob, media_type, takes, uri=resource.uri)


def _binary(kind: str, encoded: str, media_type: str, takes: frozenset[str], *, uri: str = "") -> UserContent:
    named = f"{uri}, {media_type}" if uri else media_type
    if kind not in takes:
        return refusal_words(kind, named)
    data = decode_base64(encoded)
    if data is None:
        return f"[{kind} ({named}) that is not base64]"
    return BinaryContent(data, media_type=media_type)


def _plain_parts(message: AssistantMessage) -> list[ModelResponsePart]:
    """Text and tool calls alone: a thought without what the provider kept with it would be refused."""
    parts: list[ModelResponsePart] = [TextPart(message.text)] if message.text else []
    return parts + [ToolCallPart(use.name, use.arguments, use.id) for use in message.tool_uses]
