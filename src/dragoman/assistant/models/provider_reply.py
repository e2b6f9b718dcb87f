"""A reply as the model library streams it, turned into our parts one event at a time."""

import json
import uuid
from collections.abc import Iterable
from typing import Any, cast

from pydantic_ai.messages import (
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
)

from dragoman.assistant.models.message import ProviderDetails, ToolUse
from dragoman.assistant.models.model import (
    LONG_ARGUMENTS_CHARS,
    Part,
    ReplyStop,
    ReplyText,
    ReplyThought,
    TokenUsage,
    ToolStart,
)
from dragoman.assistant.models.provider_messages import keep_details

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
