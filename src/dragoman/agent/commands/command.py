"""A slash command of the program."""

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from dragoman.agent.turn import Turn

COMMAND_NAME = re.compile(r"[\w:.-]+")
"""The names that a prompt can call: a command of another name would be offered and never run."""


class SlashCommand(msgspec.Struct, frozen=True):
    """A command that a person runs by `/name`; its function answers the turn, as that of a prompt does."""

    name: str
    description: str
    run: "Callable[[Turn], Awaitable[Any]]"
    hint: str | None = None
    """The arguments after the name."""
    goes_on: bool = False
    """Whether the turn goes on with the function for prompts: the command has only filled in the prompt."""
