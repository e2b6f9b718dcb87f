"""What a provider wants back with a reply: the order of its parts, their ids, the signatures of its thoughts.

The words themselves stay where everybody reads them, in the message; here is only how they were cut, so that nothing
is stored twice:

    {"provider": "anthropic", "parts": [
        {"kind": "thought", "size": 120, "signature": "EqoB…"},
        {"kind": "text", "size": 40},
        {"kind": "tool", "use": "toolu_01"}]}

It is given back to the provider that made it and to no other. When it does not fit the message (another version wrote
it, or the reply was cut short) the message goes without: text and tool calls alone are always accepted.
"""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from pydantic_ai.messages import ModelResponse, ModelResponsePart, TextPart, ThinkingPart, ToolCallPart

from dragoman.agent.models.message import AssistantMessage, ToolUse


class KeptPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """How one part was cut from the reply, and what belongs to it."""

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
    """Return what must be given back with the reply, or None when its words suffice."""
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
