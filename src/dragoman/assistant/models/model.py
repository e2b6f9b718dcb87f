"""The interface between a model and a turn: each request returns a stream of parts."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Literal, Protocol

import msgspec

from dragoman.agent.turns.usage import TokenUsage
from dragoman.assistant.models.message import Message, ProviderDetails, ToolUse


class ToolDefinition(msgspec.Struct, frozen=True):
    """A tool as a model sees it. `parameters` is the JSON schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]
    title: str = ""
    """Its name for users, if different."""


class ReplyRequest(msgspec.Struct, frozen=True):
    """Everything sent to a model for one reply."""

    messages: Sequence[Message]
    tools: Sequence[ToolDefinition] = ()
    instructions: str = ""
    max_output_tokens: int | None = None
    thought_level: str | None = None


class ReplyText(msgspec.Struct, frozen=True):
    """A piece of the answer."""

    text: str


class ReplyThought(msgspec.Struct, frozen=True):
    """A piece of the reasoning before the answer."""

    text: str


LONG_ARGUMENTS_CHARS = 256
"""Longer arguments are announced before they are complete, so that the user need not wait for a whole file."""


class ToolStart(msgspec.Struct, frozen=True):
    """The model writes long arguments for a tool. The `ToolUse` with the same id follows when they are complete."""

    id: str
    name: str


class ReplyRetry(msgspec.Struct, frozen=True):
    """The provider must be asked again. `reason` is for the user. The earlier parts of this reply are void."""

    reason: str
    delay_s: float

    def message(self) -> str:
        """Return the message for the user."""
        return f"{self.reason}; trying again in {self.delay_s:.0f} s"


class ReplyStop(msgspec.Struct, frozen=True):
    """The model stopped before it was done."""

    reason: Literal["max_tokens", "refusal"]


Part = ReplyText | ReplyThought | ToolStart | ToolUse | TokenUsage | ReplyRetry | ReplyStop | ProviderDetails


class ModelConversation(Protocol):
    """A model in one session."""

    def reply(self, request: ReplyRequest) -> AsyncGenerator[Part]:
        """Stream the reply. Raises ModelError, or MissingKeyError if the provider's key is missing."""
        ...


class Model(Protocol):
    """A model that can be used in sessions."""

    name: str
    context_size: int
    content_types: frozenset[str]
    """The content types it accepts besides text: `image`, `audio`, `document`."""
    thought_levels: Sequence[str]
    """The selectable thought levels, lowest first. Empty if the model has none."""
    summarises: bool
    """Whether it can summarize a conversation."""

    def start(self) -> ModelConversation:
        """Start a new conversation."""
        ...

    async def close(self) -> None:
        """Release resources shared by its conversations, such as connections. The model stays usable."""
        ...
