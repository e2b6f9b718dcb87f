"""Our messages as the model library wants them."""

import base64
import binascii
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

_TEXT_TYPES = ("text/", "application/json", "application/xml", "application/yaml", "application/toml")


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
        return ToolReturnPart(use.name, result.text, use.id, outcome="failed" if result.failed else "success")

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
            about = f": {block.description}" if block.description else ""
            return f"[{block.title or block.name}]({block.uri}){about}"
        case v1.EmbeddedResource(resource=resource):
            return _embedded(resource, takes)
        case _:
            return "[something of a kind that this agent does not know]"


def _embedded(resource: v1.EmbeddedResourceResource, takes: frozenset[str]) -> UserContent:
    if isinstance(resource, v1.TextResourceContents):
        return _resource(resource.uri, resource.text)
    return _blob(resource, takes)


def _blob(resource: v1.BlobResourceContents, takes: frozenset[str]) -> UserContent:
    media_type = resource.mime_type or "application/octet-stream"
    if media_type.startswith(_TEXT_TYPES):
        data = _decode(resource.blob)
        return _resource(resource.uri, (data or b"").decode(errors="replace"))
    kind = "document" if media_type == "application/pdf" else media_type.partition("/")[0]
    return _binary(kind, resource.blob, media_type, takes, uri=resource.uri)


def _binary(kind: str, encoded: str, media_type: str, takes: frozenset[str], *, uri: str = "") -> UserContent:
    named = f"{uri}, {media_type}" if uri else media_type
    if kind not in takes:
        return f"[{kind} ({named}) that this model cannot be given]"
    data = _decode(encoded)
    if data is None:
        return f"[{kind} ({named}) that is not base64]"
    return BinaryContent(data, media_type=media_type)


def _resource(uri: str, text: str) -> str:
    return f'<resource uri="{uri}">\n{text}\n</resource>'


def _decode(encoded: str) -> bytes | None:
    try:
        return base64.b64decode(encoded, validate=True)
    except binascii.Error:
        return None


def _plain_parts(message: AssistantMessage) -> list[ModelResponsePart]:
    """Text and tool calls alone: a thought without what the provider kept with it would be refused."""
    parts: list[ModelResponsePart] = [TextPart(message.text)] if message.text else []
    return parts + [ToolCallPart(use.name, use.arguments, use.id) for use in message.tool_uses]
