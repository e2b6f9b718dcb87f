"""What a model remembers of a conversation, message by message; as JSON, the `model` records of a session's log."""

from typing import Any

import msgspec

from dragoman.protocol import v1


class ToolUse(msgspec.Struct, frozen=True):
    """A tool that the model wants to be called."""

    id: str
    name: str
    arguments: dict[str, Any]


class ToolResult(msgspec.Struct, frozen=True):
    """What came of it, in words for the model."""

    id: str
    text: str
    failed: bool = False


class UserMessage(msgspec.Struct, frozen=True, tag_field="role", tag="user"):
    """A prompt, as the client sent it."""

    content: list[v1.ContentBlock]


class AssistantMessage(msgspec.Struct, frozen=True, tag_field="role", tag="assistant", omit_defaults=True):
    """A reply of the model."""

    text: str = ""
    thought: str = ""
    tool_uses: list[ToolUse] = []


class ToolMessage(msgspec.Struct, frozen=True, tag_field="role", tag="tool"):
    """The results of all the tools that a reply asked for."""

    results: list[ToolResult]


Message = UserMessage | AssistantMessage | ToolMessage
