"""A server's question to the model, which the kit has asked the person about."""

from typing import Any, cast

import msgspec

from dragoman.agent.turn import Turn
from dragoman.assistant.models.message import AssistantMessage, Message, UserMessage
from dragoman.assistant.models.model import ModelRequest
from dragoman.assistant.session import AssistantSession
from dragoman.errors import ErrorCode, ModelFailure, RpcError
from dragoman.protocol import v1
from dragoman.protocol.unions import decode_hook


async def sample(turn: Turn, params: dict[str, Any]) -> dict[str, Any]:
    """Ask the session's model; the answer is an MCP CreateMessageResult. Raises RpcError."""
    own: AssistantSession = turn.session.extra
    request = ModelRequest(_messages(params), (), params.get("systemPrompt") or "", _limit(params))
    try:
        text, stop = await own.ask(turn, request)
    except ModelFailure as failure:
        raise RpcError(ErrorCode.INTERNAL_ERROR, f"the model failed: {failure}") from None
    return {
        "role": "assistant",
        "content": {"type": "text", "text": text},
        "model": own.model.name,
        "stopReason": "maxTokens" if stop == "max_tokens" else "endTurn",
    }


def _messages(params: dict[str, Any]) -> list[Message]:
    """Return the server's messages as the model's; raises RpcError."""
    try:
        return [_message(message) for message in params["messages"]]
    except (AttributeError, KeyError, TypeError, msgspec.ValidationError) as error:
        raise RpcError(ErrorCode.INVALID_PARAMS, f"these messages cannot be read: {error}") from None


def _message(message: dict[str, Any]) -> Message:
    blocks = _blocks(message["content"])
    if message["role"] == "assistant":
        return AssistantMessage("".join(str(block.get("text", "")) for block in blocks))
    return UserMessage([msgspec.convert(block, v1.ContentBlock, dec_hook=decode_hook) for block in blocks])


def _blocks(content: Any) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", content if isinstance(content, list) else [content])


def _limit(params: dict[str, Any]) -> int | None:
    limit = params.get("maxTokens")
    return limit if isinstance(limit, int) and limit > 0 else None
