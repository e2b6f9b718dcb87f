"""A slash command of the program."""

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from dragoman.agent.turns.turn import Turn

COMMAND_NAME = re.compile(r"[\w:.-]+")
"""The names that a prompt can call. A command with another name could never run."""


class SlashCommand(msgspec.Struct, frozen=True):
    """A command that the user runs by `/name`. Its function answers the turn like the function for prompts."""

    name: str
    description: str
    run: "Callable[[Turn], Awaitable[Any]]"
    hint: str | None = None
    """The arguments shown after the name."""
    fills_prompt: bool = False
    """Whether the command only fills in the prompt, and the turn continues with the function for prompts."""
