"""Requests to a model, and the parts of its replies."""

from collections.abc import Sequence
from typing import Any

from dragoman.assistant.models.message import UserMessage
from dragoman.assistant.models.model import ModelConversation, ModelRequest, Part, ReplyText, ToolDefinition
from dragoman.protocol import v1


def prompt(text: str) -> UserMessage:
    return UserMessage([v1.TextContent(text=text)])


def tool(name: str, description: str = "", **parameters: Any) -> ToolDefinition:
    return ToolDefinition(name, description, parameters or {"type": "object"})


def asking(text: str, tools: Sequence[ToolDefinition] = (), max_output_tokens: int | None = 24) -> ModelRequest:
    return ModelRequest([prompt(text)], tools, "You are a helpful agent.", max_output_tokens)


async def ask(conversation: ModelConversation, request: ModelRequest) -> list[Part]:
    return [part async for part in conversation.reply(request)]


def said(parts: Sequence[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, ReplyText))
