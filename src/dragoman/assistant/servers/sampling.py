"""A server's question to the model, asked after the person has agreed to it."""

import uuid
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, cast

import msgspec

from dragoman.assistant.models.message import AssistantMessage, Message, UserMessage
from dragoman.assistant.models.model import ModelRequest, ReplyRetry, ReplyStop, ReplyText, TokenUsage
from dragoman.assistant.permission import PermissionDecision
from dragoman.assistant.tools.tool import Action, PreparedCall, ToolOutcome
from dragoman.errors import ErrorCode, ModelFailure, RpcError
from dragoman.protocol import v1
from dragoman.protocol.unions import decode_hook
from dragoman.text import visible

if TYPE_CHECKING:
    from dragoman.assistant.session import Session

SHOWN_LETTERS = 2_000
"""Characters of the question that are shown: enough to judge it."""

ACTION = "sampling"
"""The name in the approved action; the identity beside it is marked, because a server may have a tool of this name."""

REFUSED = -1
"""The code that MCP gives for a person who declined."""


async def sample(session: "Session", server: str, identity: str, params: dict[str, Any]) -> dict[str, Any]:
    """Ask the session's model; the answer is an MCP CreateMessageResult. Raises RpcError."""
    if not session.is_busy:
        # Without a turn the person could not cancel the request, and in some modes would not be asked.
        raise RpcError(ErrorCode.INVALID_REQUEST, "no turn is running in this session, so no model can be asked")
    messages = _messages(params)
    call_id = f"sampling-{uuid.uuid4()}"
    title = f"{server} asks the model"
    shown = v1.Content(content=v1.TextContent(text=visible(_show(params), lines=True)))
    call = PreparedCall(
        title, "think", _cannot_run, action=Action("tool", ACTION, f"{ACTION} {identity}"), content=[shown]
    )
    await session.updates.send(
        v1.ToolCall(tool_call_id=call_id, title=call.title, kind="think", status="pending", content=[shown])
    )
    request = ModelRequest(messages, (), params.get("systemPrompt") or "", _limit(params))
    try:
        decision = await session.permission().decide(call_id, call, {})
        text, stop = await _ask(session, request, decision)
    except BaseException:
        await session.updates.send(v1.ToolCallProgress(tool_call_id=call_id, status="failed"))
        raise
    said = v1.Content(content=v1.TextContent(text=text))
    await session.updates.send(
        v1.ToolCallProgress(
            tool_call_id=call_id, status="completed", content=[shown, said], raw_output={"output": text}
        )
    )
    return {
        "role": "assistant",
        "content": {"type": "text", "text": text},
        "model": session.model.name,
        "stopReason": "maxTokens" if stop == "max_tokens" else "endTurn",
    }


async def _ask(session: "Session", request: ModelRequest, decision: PermissionDecision) -> tuple[str, str | None]:
    if not decision.allowed:
        raise RpcError(REFUSED, decision.reason, phrase="Not allowed")
    said: list[str] = []
    stop: str | None = None
    try:
        async with aclosing(session.conversation.reply(request)) as parts:
            async for part in parts:
                match part:
                    case ReplyText(words):
                        said.append(words)
                    case TokenUsage():
                        session.count(part)
                    case ReplyRetry():
                        said.clear()
                    case ReplyStop(reason):
                        stop = reason
                    case _:
                        pass
    except ModelFailure as failure:
        raise RpcError(ErrorCode.INTERNAL_ERROR, f"the model failed: {failure}") from None
    return "".join(said), stop


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


def _words(block: dict[str, Any]) -> str:
    text = block.get("text")
    return text if isinstance(text, str) else f"[{block.get('type', 'no text')}]"


def _limit(params: dict[str, Any]) -> int | None:
    limit = params.get("maxTokens")
    return limit if isinstance(limit, int) and limit > 0 else None


def _show(params: dict[str, Any]) -> str:
    lines = [f"system: {params['systemPrompt']}"] if params.get("systemPrompt") else []
    for message in params.get("messages", []):
        words = [_words(block) for block in _blocks(message["content"])]
        lines.append(f"{message['role']}: {' '.join(words)}")
    text = "\n".join(lines)
    return text if len(text) <= SHOWN_LETTERS else f"{text[:SHOWN_LETTERS]}… and {len(text) - SHOWN_LETTERS:,} more"


async def _cannot_run(progress: object) -> ToolOutcome:
    raise NotImplementedError("what is asked for here is a decision alone")
