"""What a model is to a turn: a stream of parts for each request."""

from collections.abc import AsyncIterator, Sequence
from typing import Literal, Protocol

import msgspec

from dragoman.agent.models.message import Message, ToolUse


class Text(msgspec.Struct, frozen=True):
    """Some of the answer."""

    text: str


class Thought(msgspec.Struct, frozen=True):
    """Some of the reasoning before it."""

    text: str


class Usage(msgspec.Struct, frozen=True):
    """Tokens that the request took."""

    input: int
    output: int


class Stop(msgspec.Struct, frozen=True):
    """The model stops for a reason other than being done."""

    reason: Literal["max_tokens", "refusal"]


Part = Text | Thought | ToolUse | Usage | Stop


class Conversation(Protocol):
    """A model in one session."""

    context_size: int

    def reply(self, messages: Sequence[Message]) -> AsyncIterator[Part]:
        """Stream the reply to what was said so far; raises ModelFailure."""
        ...


class Model(Protocol):
    """A model that sessions can be had with."""

    def start(self) -> Conversation:
        """Begin a conversation of its own."""
        ...
