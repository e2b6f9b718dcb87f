"""A slash command, and its answer for the model."""

from collections.abc import Awaitable, Callable

import msgspec

from dragoman.assistant.models.message import Message
from dragoman.assistant.session import Session


class ContinueWithModel(msgspec.Struct, frozen=True):
    """An answer that is for the model: it goes on with these messages as if the person had written them."""

    messages: list[Message]


class SlashCommand(msgspec.Struct, frozen=True):
    """A command that a person runs by `/name`."""

    name: str
    description: str
    run: Callable[[Session, str], Awaitable[str | ContinueWithModel]]
    hint: str | None = None
    """The arguments after the name."""
