"""What a model remembers of a conversation, message by message; as JSON, the `model` records of a session's log."""

from typing import Any

import msgspec

from dragoman.protocol import v1


class ToolUse(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool that the model wants to be called."""

    id: str
    name: str
    arguments: dict[str, Any]
    problem: str | None = None
    """Why the arguments cannot be used, when the model wrote something that is no JSON object."""


class ProviderDetails(msgspec.Struct, frozen=True):
    """What the provider wants back with a reply: the last of its parts, to be kept in `AssistantMessage.provider`."""

    data: dict[str, Any]


class ToolResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of it, in words for the model, and what else it may look at."""

    id: str
    text: str
    failed: bool = False
    attachments: list[v1.ContentBlock] = []


class UserMessage(msgspec.Struct, frozen=True, tag_field="role", tag="user"):
    """A prompt, as the model was given it."""

    content: list[v1.ContentBlock]


class AssistantMessage(msgspec.Struct, frozen=True, tag_field="role", tag="assistant", omit_defaults=True):
    """A reply of the model."""

    text: str = ""
    thought: str = ""
    tool_uses: list[ToolUse] = []
    provider: dict[str, Any] | None = None
    """What the provider wants back beside the words, such as signatures of thoughts: opaque to all but the model."""


class ToolMessage(msgspec.Struct, frozen=True, tag_field="role", tag="tool"):
    """The results of all the tools that a reply asked for."""

    results: list[ToolResult]


class SummaryMessage(msgspec.Struct, frozen=True, tag_field="role", tag="summary", omit_defaults=True):
    """Stands for all that was said before it, which the model is no longer given; the log keeps it."""

    text: str
    prompt: list[v1.ContentBlock] = []
    """The prompt that is being answered, which stays in its own words."""


Message = UserMessage | AssistantMessage | ToolMessage | SummaryMessage
