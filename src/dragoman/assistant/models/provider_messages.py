"""Converts messages to the model library's form and replies back, with the details that a provider needs back.

A provider needs the order of a reply's parts, their ids and the signatures of its thoughts. The text is in the message.
The details only say how it was divided, so that nothing is stored twice:

    {"provider": "anthropic", "parts": [
        {"kind": "thought", "size": 120, "signature": "EqoB…"},
        {"kind": "text", "size": 40},
        {"kind": "tool", "use": "toolu_01"}]}

The details go back only to the provider that created them. They may not fit the message, because another version wrote
them or the reply was cut short. Then the message goes without them. Plain text and tool calls are always accepted.

A reply is converted one event at a time, as the library streams it.
"""

import json
import uuid
from collections.abc import Iterable, Sequence
from typing import Any, Literal, cast

import msgspec
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from dragoman.agent.turns.usage import TokenUsage
from dragoman.assistant.models import model
from dragoman.assistant.models.message import (
    AssistantMessage,
    Message,
    ProviderDetails,
    SummaryMessage,
    ToolMessage,
    ToolResult,
    ToolUse,
    UserMessage,
    blob_kind,
    blob_text,
    decode_base64,
    link_text,
    refusal_text,
    resource_text,
)
from dragoman.assistant.models.model import (
    LONG_ARGUMENTS_CHARS,
    Part,
    ReplyStop,
    ReplyText,
    ReplyThought,
    ToolStart,
)
from dragoman.protocol import v1


class StoredPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """One part of the reply: its kind and length, its id and signature."""

    kind: Literal["text", "thought", "tool"]
    size: int = 0
    use: str = ""
    id: str | None = None
    signature: str | None = None
    details: dict[str, Any] | None = None


class StoredReply(msgspec.Struct, frozen=True):
    """The stored details of one reply."""

    provider: str
    parts: list[StoredPart]


def details_to_keep(response: ModelResponse, tool_ids: dict[str, str]) -> dict[str, Any] | None:
    """Return the details that must go back with the reply, or None if its text suffices."""
    parts = [kept for part in response.parts if (kept := _store_part(part, tool_ids)) is not None]
    if not any(part.id or part.signature or part.details for part in parts):
        return None
    return msgspec.to_builtins(StoredReply(response.provider_name or "", parts))


def restore_parts(message: AssistantMessage, provider: str) -> Sequence[ModelResponsePart] | None:
    """Return the parts as the provider sent them, or None if they cannot be restored."""
    if message.provider is None:
        return None
    try:
        kept = msgspec.convert(message.provider, StoredReply)
    except msgspec.ValidationError:
        return None
    if kept.provider != provider or not _fits(kept, message):
        return None
    return _Restorer(message, provider).restore(kept.parts)


def _store_part(part: ModelResponsePart, tool_ids: dict[str, str]) -> StoredPart | None:
    if isinstance(part, TextPart):
        return StoredPart("text", len(part.content), id=part.id, details=part.provider_details)
    if isinstance(part, ThinkingPart):
        size = len(part.content)
        return StoredPart("thought", size, id=part.id, signature=part.signature, details=part.provider_details)
    if isinstance(part, ToolCallPart):
        use = tool_ids.get(part.tool_call_id, part.tool_call_id)
        return StoredPart("tool", use=use, id=part.id, details=part.provider_details)
    return None


def _fits(kept: StoredReply, message: AssistantMessage) -> bool:
    sizes = {"text": 0, "thought": 0, "tool": 0}
    for part in kept.parts:
        sizes[part.kind] += part.size
    uses = {part.use for part in kept.parts if part.kind == "tool"}
    lengths = (len(message.text), len(message.thought), {use.id for use in message.tool_uses})
    return lengths == (sizes["text"], sizes["thought"], uses)


class _Restorer:
    """Divides a message into the parts in which it arrived."""

    def __init__(self, message: AssistantMessage, provider: str) -> None:
        self._provider = provider
        self._rest = {"text": message.text, "thought": message.thought}
        self._uses: dict[str, ToolUse] = {use.id: use for use in message.tool_uses}

    def restore(self, parts: Sequence[StoredPart]) -> list[ModelResponsePart]:
        return [self._part(part) for part in parts]

    def _part(self, part: StoredPart) -> ModelResponsePart:
        if part.kind == "tool":
            use = self._uses[part.use]
            return ToolCallPart(
                use.name,
                use.arguments,
                use.id,
                id=part.id,
                provider_name=self._provider,
                provider_details=part.details,
            )
        text, self._rest[part.kind] = self._rest[part.kind][: part.size], self._rest[part.kind][part.size :]
        if part.kind == "text":
            return TextPart(text, id=part.id, provider_name=self._provider, provider_details=part.details)
        return ThinkingPart(
            text,
            id=part.id,
            signature=part.signature,
            provider_name=self._provider,
            provider_details=part.details,
        )


NO_RESULT = "The turn ended before this tool finished, so there is no result."

SUMMARY = "This is a summary of our conversation so far. Continue from it."


class Recipient(msgspec.Struct, frozen=True):
    """The provider that receives the messages."""

    provider: str
    """The provider's own name, to recognize its details."""
    content_types: frozenset[str]


def to_library(request: model.ReplyRequest, recipient: Recipient) -> list[ModelMessage]:
    """Return the conversation in the library's form, with a result for every tool call."""
    writer = _Writer(recipient)
    for message in request.messages:
        writer.add(message)
    return writer.finish(request.instructions)


class _Writer:
    """Builds the library's messages. Merges consecutive requests and adds missing tool results."""

    def __init__(self, recipient: Recipient) -> None:
        self._recipient = recipient
        self._messages: list[ModelMessage] = []
        self._parts: list[ModelRequestPart] = []
        self._open: dict[str, ToolUse] = {}

    def add(self, message: Message) -> None:
        match message:
            case UserMessage(content):
                self._close_tools()
                self._parts.append(UserPromptPart(prompt_content(content, self._recipient.content_types)))
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
        if not parts:  # the reply was cancelled before it began
            return
        if self._parts:
            self._messages.append(ModelRequest(self._parts))
            self._parts = []
        self._messages.append(ModelResponse(parts, provider_name=self._recipient.provider))
        self._open = {use.id: use for use in message.tool_uses}

    def _result(self, result: ToolResult) -> ToolReturnPart[Any]:
        use = self._open.pop(result.id)
        content = [result.text, *prompt_content(result.attachments, self._recipient.content_types)]
        outcome = "failed" if result.failed else "success"
        return ToolReturnPart(use.name, content if result.attachments else result.text, use.id, outcome=outcome)

    def _close_tools(self) -> None:
        for use in list(self._open.values()):
            self._parts.append(self._result(ToolResult(use.id, NO_RESULT, failed=True)))


def prompt_content(blocks: Sequence[v1.ContentBlock], content_types: frozenset[str]) -> list[UserContent]:
    """Return a prompt's blocks in the library's form. Content that the model does not accept is replaced by a note."""
    return [_block(block, content_types) for block in blocks]


def _block(block: v1.ContentBlock, content_types: frozenset[str]) -> UserContent:
    match block:
        case v1.TextContent(text=text):
            return text
        case v1.ImageContent(data=data, mime_type=media_type):
            return _binary("image", data, media_type, content_types)
        case v1.AudioContent(data=data, mime_type=media_type):
            return _binary("audio", data, media_type, content_types)
        case v1.ResourceLink():
            return link_text(block)
        case v1.EmbeddedResource(resource=resource):
            return _embedded(resource, content_types)
        case _:
            return "[content of an unknown type]"


def _embedded(resource: v1.EmbeddedResourceResource, content_types: frozenset[str]) -> UserContent:
    if isinstance(resource, v1.TextResourceContents):
        return resource_text(resource.uri, resource.text)
    text = blob_text(resource)
    if text is not None:
        return resource_text(resource.uri, text)
    kind, media_type = blob_kind(resource)
    return _binary(kind, resource.blob, media_type, content_types, uri=resource.uri)


def _binary(kind: str, encoded: str, media_type: str, content_types: frozenset[str], *, uri: str = "") -> UserContent:
    named = f"{uri}, {media_type}" if uri else media_type
    if kind not in content_types:
        return refusal_text(kind, named)
    data = decode_base64(encoded)
    if data is None:
        return f"[{kind} ({named}) that is not base64]"
    return BinaryContent(data, media_type=media_type)


def _plain_parts(message: AssistantMessage) -> list[ModelResponsePart]:
    """Return only text and tool calls, because a thought without the provider's signature would be refused."""
    parts: list[ModelResponsePart] = [TextPart(message.text)] if message.text else []
    return parts + [ToolCallPart(use.name, use.arguments, use.id) for use in message.tool_uses]


MAX_SHOWN_ARGUMENTS = 200
"""Characters of unreadable arguments shown to the model, enough to see its mistake."""


class IncompleteReplyError(Exception):
    """The stream ended before the reply was complete."""


class ProviderReplyReader:
    """Reads one reply. Tool calls get ids unique in the conversation, because some servers restart at 0."""

    def __init__(self, used_ids: frozenset[str]) -> None:
        self._used_ids = used_ids
        self._ids: dict[str, str] = {}
        self._done: set[str] = set()
        self._starting: dict[int, tuple[ToolStart, int]] = {}
        """Unannounced calls by the index of their part, with the length of their arguments so far."""

    def read(self, event: ModelResponseStreamEvent) -> Iterable[Part]:
        """Return the parts of an event."""
        if isinstance(event, PartDeltaEvent):
            delta = event.delta
            if isinstance(delta, TextPartDelta):
                return (ReplyText(delta.content_delta),) if delta.content_delta else ()
            if isinstance(delta, ThinkingPartDelta):
                return (ReplyThought(delta.content_delta),) if delta.content_delta else ()
            return self._grow(event.index, delta.args_delta) if isinstance(delta, ToolCallPartDelta) else ()
        if isinstance(event, PartStartEvent):
            return self._start(event.index, event.part)
        if isinstance(event, PartEndEvent) and isinstance(event.part, ToolCallPart):
            return self._finish_call(event.part)
        return ()

    def finish(self, response: ModelResponse, *, ended: bool) -> Iterable[Part]:
        """Return the remaining parts at the end of the stream. Raises IncompleteReplyError if it ended too early."""
        if response.finish_reason == "error" or not ended:
            raise IncompleteReplyError
        for part in response.parts:
            if isinstance(part, ToolCallPart) and part.tool_call_id not in self._done:
                yield self._use(part)
        details = response.provider_details or {}
        if response.finish_reason == "content_filter" and isinstance(refusal := details.get("refusal"), str):
            yield ReplyText(refusal)
        elif (kept := details_to_keep(response, self._ids)) is not None:
            yield ProviderDetails(kept)
        yield from _usage(response)
        yield from _stop(response)

    def _start(self, index: int, part: ModelResponsePart) -> Iterable[Part]:
        if isinstance(part, TextPart):
            return (ReplyText(part.content),) if part.content else ()
        if isinstance(part, ThinkingPart):
            return (ReplyThought(part.content),) if part.content else ()
        if isinstance(part, ToolCallPart):
            self._starting[index] = (ToolStart(self._id(part), part.tool_name), 0)
            return self._grow(index, part.args)
        return ()

    def _grow(self, index: int, arguments: object) -> Iterable[Part]:
        """Announce a call once its arguments turn out to be long."""
        if index not in self._starting or not isinstance(arguments, str):
            return ()
        start, length = self._starting[index]
        length += len(arguments)
        if length < LONG_ARGUMENTS_CHARS:
            self._starting[index] = (start, length)
            return ()
        del self._starting[index]
        return (start,)

    def _finish_call(self, part: ToolCallPart[Any]) -> Iterable[Part]:
        """Return the tool use if its arguments are complete.

        Servers may interleave the fragments of parallel calls, so a part that ended may still grow.
        """
        if not part.args or _read_arguments(part.args)[1] is not None:
            return ()
        return (self._use(part),)

    def _use(self, part: ToolCallPart[Any]) -> ToolUse:
        self._done.add(part.tool_call_id)
        arguments, problem = _read_arguments(part.args)
        return ToolUse(self._id(part), part.tool_name, arguments, problem)

    def _id(self, part: ToolCallPart[Any]) -> str:
        id_ = part.tool_call_id
        if id_ not in self._ids:
            self._ids[id_] = f"{id_}-{uuid.uuid4().hex[:12]}" if id_ in self._used_ids else id_
        return self._ids[id_]


def _read_arguments(arguments: str | dict[str, Any] | None) -> tuple[dict[str, Any], str | None]:
    """Return the arguments, and the problem with them as text for the model."""
    if not arguments:
        return {}, None
    if isinstance(arguments, dict):
        return arguments, None
    shown = arguments if len(arguments) <= MAX_SHOWN_ARGUMENTS else f"{arguments[:MAX_SHOWN_ARGUMENTS]}…"
    try:
        value: object = json.loads(arguments)
    except (ValueError, RecursionError) as error:
        return {}, f"the arguments are not JSON ({error}): {shown}; call the tool again with a JSON object"
    if not isinstance(value, dict):
        return {}, f"the arguments are not a JSON object: {shown}; call the tool again with a JSON object"
    return cast("dict[str, Any]", value), None


def _usage(response: ModelResponse) -> Iterable[TokenUsage]:
    usage = response.usage
    if usage.input_tokens or usage.output_tokens:
        yield TokenUsage(
            usage.input_tokens,
            usage.output_tokens,
            _cost_usd(response),
            cached_read=usage.cache_read_tokens,
            cached_write=usage.cache_write_tokens,
            thought=usage.output_reasoning_tokens,
        )


def _cost_usd(response: ModelResponse) -> float | None:
    if response.usage.cost is not None:
        return float(response.usage.cost)
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError, AssertionError):  # its price is unknown
        return None


def _stop(response: ModelResponse) -> Iterable[ReplyStop]:
    if response.finish_reason == "length":
        yield ReplyStop("max_tokens")
    elif response.finish_reason == "content_filter":
        yield ReplyStop("refusal")
