"""Our messages in the form of the model library, with the details that a provider wants back; and its replies in ours.

A provider wants back the order of a reply's parts, their ids, and the signatures of its thoughts. The text itself is
in the message; the details only say how it was cut, so that nothing is stored twice:

    {"provider": "anthropic", "parts": [
        {"kind": "thought", "size": 120, "signature": "EqoB…"},
        {"kind": "text", "size": 40},
        {"kind": "tool", "use": "toolu_01"}]}

The details go back to the provider that made them and to no other. When they do not fit the message (another version
wrote them, or the reply was cut short) the message goes without them: text and tool calls alone are always accepted.

A reply is turned into our parts one event at a time, as the library streams it.
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
    link_words,
    refusal_words,
    resource_words,
)
from dragoman.assistant.models.model import (
    LONG_ARGUMENTS_CHARS,
    Part,
    ReplyStop,
    ReplyText,
    ReplyThought,
    TokenUsage,
    ToolStart,
)
from dragoman.protocol import v1


class KeptPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """How one part was cut from the reply, with its id and signature."""

    kind: Literal["text", "thought", "tool"]
    size: int = 0
    use: str = ""
    id: str | None = None
    signature: str | None = None
    details: dict[str, Any] | None = None


class KeptReply(msgspec.Struct, frozen=True):
    """All that is kept of one reply."""

    provider: str
    parts: list[KeptPart]


def keep_details(response: ModelResponse, tool_ids: dict[str, str]) -> dict[str, Any] | None:
    """Return the details that must go back with the reply, or None when its words suffice."""
    parts = [kept for part in response.parts if (kept := _keep(part, tool_ids)) is not None]
    if not any(part.id or part.signature or part.details for part in parts):
        return None
    return msgspec.to_builtins(KeptReply(response.provider_name or "", parts))


def restore_parts(message: AssistantMessage, provider: str) -> Sequence[ModelResponsePart] | None:
    """Return the parts as the provider sent them, or None when that cannot be told."""
    if message.provider is None:
        return None
    try:
        kept = msgspec.convert(message.provider, KeptReply)
    except msgspec.ValidationError:
        return None
    if kept.provider != provider or not _fits(kept, message):
        return None
    return _Restorer(message, provider).restore(kept.parts)


def _keep(part: ModelResponsePart, tool_ids: dict[str, str]) -> KeptPart | None:
    if isinstance(part, TextPart):
        return KeptPart("text", len(part.content), id=part.id, details=part.provider_details)
    if isinstance(part, ThinkingPart):
        size = len(part.content)
        return KeptPart("thought", size, id=part.id, signature=part.signature, details=part.provider_details)
    if isinstance(part, ToolCallPart):
        use = tool_ids.get(part.tool_call_id, part.tool_call_id)
        return KeptPart("tool", use=use, id=part.id, details=part.provider_details)
    return None


def _fits(kept: KeptReply, message: AssistantMessage) -> bool:
    sizes = {"text": 0, "thought": 0, "tool": 0}
    for part in kept.parts:
        sizes[part.kind] += part.size
    uses = {part.use for part in kept.parts if part.kind == "tool"}
    said = (len(message.text), len(message.thought), {use.id for use in message.tool_uses})
    return said == (sizes["text"], sizes["thought"], uses)


class _Restorer:
    """Cuts a message into the parts that it came in."""

    def __init__(self, message: AssistantMessage, provider: str) -> None:
        self._provider = provider
        self._rest = {"text": message.text, "thought": message.thought}
        self._uses: dict[str, ToolUse] = {use.id: use for use in message.tool_uses}

    def restore(self, parts: Sequence[KeptPart]) -> list[ModelResponsePart]:
        return [self._part(part) for part in parts]

    def _part(self, part: KeptPart) -> ModelResponsePart:
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
        words, self._rest[part.kind] = self._rest[part.kind][: part.size], self._rest[part.kind][part.size :]
        if part.kind == "text":
            return TextPart(words, id=part.id, provider_name=self._provider, provider_details=part.details)
        return ThinkingPart(
            words,
            id=part.id,
            signature=part.signature,
            provider_name=self._provider,
            provider_details=part.details,
        )


NO_RESULT = "The turn ended before this tool was done; there is no result."

SUMMARY = "This is a summary of our conversation so far; go on from it."


class Recipient(msgspec.Struct, frozen=True):
    """The recipient of the messages."""

    provider: str
    """The provider's name for itself, by which it recognizes its own details."""
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
    """Return a prompt's blocks in the library's form; content that the model cannot take becomes a word about it."""
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
    """Return text and tool calls alone: a thought without the provider's signature would be refused."""
    parts: list[ModelResponsePart] = [TextPart(message.text)] if message.text else []
    return parts + [ToolCallPart(use.name, use.arguments, use.id) for use in message.tool_uses]


MAX_SHOWN_ARGUMENTS = 200
"""Characters of unreadable arguments that the model is shown: enough to see its mistake."""


class BrokenOff(Exception):
    """The stream ended, but the reply was not whole."""


class ProviderReplyReader:
    """Reads one reply; tool calls get ids that are new to the conversation, as some servers count from 0 each time."""

    def __init__(self, used_ids: frozenset[str]) -> None:
        self._used_ids = used_ids
        self._ids: dict[str, str] = {}
        self._done: set[str] = set()
        self._starting: dict[int, tuple[ToolStart, int]] = {}
        """Calls that are not announced yet, by the index of their part, with the length of their arguments so far."""

    def take(self, event: ModelResponseStreamEvent) -> Iterable[Part]:
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
            return self._whole(event.part)
        return ()

    def finish(self, response: ModelResponse, *, ended: bool) -> Iterable[Part]:
        """Return the remaining parts at the end of the stream; raises BrokenOff when it ended too early."""
        if response.finish_reason == "error" or not ended:
            raise BrokenOff
        for part in response.parts:
            if isinstance(part, ToolCallPart) and part.tool_call_id not in self._done:
                yield self._use(part)
        details = response.provider_details or {}
        if response.finish_reason == "content_filter" and isinstance(refusal := details.get("refusal"), str):
            yield ReplyText(refusal)
        elif (kept := keep_details(response, self._ids)) is not None:
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
        """Announce a call when its arguments turn out to be long."""
        if index not in self._starting or not isinstance(arguments, str):
            return ()
        start, length = self._starting[index]
        length += len(arguments)
        if length < LONG_ARGUMENTS_CHARS:
            self._starting[index] = (start, length)
            return ()
        del self._starting[index]
        return (start,)

    def _whole(self, part: ToolCallPart[Any]) -> Iterable[Part]:
        """Servers may send the fragments of parallel calls in turns, so that a part that ended may yet grow."""
        if not part.args or _read_arguments(part.args)[1] is not None:
            return ()
        return (self._use(part),)

    def _use(self, part: ToolCallPart[Any]) -> ToolUse:
        self._done.add(part.tool_call_id)
        arguments, problem = _read_arguments(part.args)
        return ToolUse(self._id(part), part.tool_name, arguments, problem)

    def _id(self, part: ToolCallPart[Any]) -> str:
        given = part.tool_call_id
        if given not in self._ids:
            self._ids[given] = f"{given}-{uuid.uuid4().hex[:12]}" if given in self._used_ids else given
        return self._ids[given]


def _read_arguments(arguments: str | dict[str, Any] | None) -> tuple[dict[str, Any], str | None]:
    """Return the arguments, and the problem with them in words for the model."""
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
    except (LookupError, ValueError, AssertionError):  # no price is known for it
        return None


def _stop(response: ModelResponse) -> Iterable[ReplyStop]:
    if response.finish_reason == "length":
        yield ReplyStop("max_tokens")
    elif response.finish_reason == "content_filter":
        yield ReplyStop("refusal")
