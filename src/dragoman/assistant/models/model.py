"""The interface between a model and a turn: a stream of parts for each request."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Literal, Protocol

import msgspec

from dragoman.agent.usage import TokenUsage
from dragoman.assistant.models.message import Message, ProviderDetails, ToolUse


class ToolDefinition(msgspec.Struct, frozen=True):
    """A tool as a model sees it; `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]
    title: str = ""
    """Its name for people, when that is another one."""


class ModelRequest(msgspec.Struct, frozen=True):
    """All that a model is given for one reply."""

    messages: Sequence[Message]
    tools: Sequence[ToolDefinition] = ()
    instructions: str = ""
    max_output_tokens: int | None = None
    thought_level: str | None = None


class ReplyText(msgspec.Struct, frozen=True):
    """Some of the answer."""

    text: str


class ReplyThought(msgspec.Struct, frozen=True):
    """Some of the reasoning before it."""

    text: str


LONG_ARGUMENTS_CHARS = 256
"""Longer arguments are announced before they are whole: a person should not wait for the whole text of a file."""


class ToolStart(msgspec.Struct, frozen=True):
    """The model writes long arguments for a tool; the `ToolUse` of the same id follows when they are whole."""

    id: str
    name: str


class ReplyRetry(msgspec.Struct, frozen=True):
    """The provider has to be asked again; `reason` is for a person. The parts of this reply so far are void."""

    reason: str
    delay_s: float

    def words(self) -> str:
        """Say it to the person."""
        return f"{self.reason}; trying again in {self.delay_s:.0f} s"


class ReplyStop(msgspec.Struct, frozen=True):
    """The model stops for a reason other than being done."""

    reason: Literal["max_tokens", "refusal"]


Part = ReplyText | ReplyThought | ToolStart | ToolUse | TokenUsage | ReplyRetry | ReplyStop | ProviderDetails


class ModelConversation(Protocol):
    """A model in one session."""

    def reply(self, request: ModelRequest) -> AsyncGenerator[Part]:
        """Stream the reply; raises ModelFailure, and MissingKey when there is no way in."""
        ...


class Model(Protocol):
    """A model that sessions can be had with."""

    name: str
    context_size: int
    takes: frozenset[str]
    """The kinds of content it can be given beyond text: `image`, `audio`, `document`."""
    thought_levels: Sequence[str]
    """How hard it can be made to think, least first; empty when that cannot be chosen."""
    summarises: bool
    """Whether it can be asked to sum up a conversation."""

    def start(self) -> ModelConversation:
        """Begin a conversation of its own."""
        ...

    async def close(self) -> None:
        """Release its resources beyond its conversations, such as connections; it can be used again afterwards."""
        ...
