"""Sampling: an MCP server's request to the model. The kit has already asked the user for permission."""

from typing import Any, cast

import msgspec

from dragoman.agent.turns.turn import Turn
from dragoman.assistant.models.message import AssistantMessage, Message, UserMessage
from dragoman.assistant.models.model import ReplyRequest
from dragoman.assistant.session import AssistantSession
from dragoman.errors import ErrorCode, ModelError, RpcError
from dragoman.protocol import v1
from dragoman.protocol.unions import decode_hook


async def sample(turn: Turn, params: dict[str, Any]) -> dict[str, Any]:
    """Ask the session's model and return an MCP CreateMessageResult. Raises RpcError."""
    own: AssistantSession = turn.session.extra
    request = ReplyRequest(_messages(params), (), params.get("systemPrompt") or "", _limit(params))
    try:
        text, stop = await own.ask(turn, request)
    except ModelError as failure:
        raise RpcError(ErrorCode.INTERNAL_ERROR, f"the model failed: {failure}") from None
    return {
        "role": "assistant",
        "content": {"type": "text", "text": text},
        "model": own.model.name,
        "stopReason": "maxTokens" if stop == "max_tokens" else "endTurn",
    }


def _messages(params: dict[str, Any]) -> list[Message]:
    """Return the server's messages in our form. Raises RpcError."""
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
