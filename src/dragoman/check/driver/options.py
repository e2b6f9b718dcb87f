"""The options for checking an agent, and its script: `--script FILE`, a YAML or JSON list of turns."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from dragoman.check.rule import Version
from dragoman.errors import DragomanError

Answer = Literal["allow", "reject"]
When = Literal["update", "permission"]


class InvalidScriptError(DragomanError):
    """A script is invalid."""


class ScriptTurn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A prompt, the answer to permission requests in its turn, and when to cancel it, if at all."""

    prompt: str
    permission: Answer = "allow"
    cancel: When | None = None


def read_script(path: Path) -> tuple[ScriptTurn, ...]:
    """Read a script. Raises InvalidScriptError with the problem."""
    try:
        turns = msgspec.yaml.decode(path.read_bytes(), type=list[ScriptTurn])
    except OSError as error:
        raise InvalidScriptError(f"{path} cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidScriptError(
            f"{path} is not a script: {error}. Expected a list of turns, for example `- prompt: list the files`,"
            " each with `permission: allow` or `reject` and optionally `cancel: update` or `permission`"
        ) from None
    if not turns:
        raise InvalidScriptError(f"{path} contains no turns; a script is a list of `- prompt: …`")
    return tuple(turns)


HELLO = "Hello! Answer in one short sentence, please."
"""The default prompt, which every agent can answer."""


class AgentOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The agent to check, and how to drive it."""

    command: tuple[str, ...] = ()
    url: str = ""
    token: str | None = None
    env: dict[str, str] = {}
    turns: tuple[ScriptTurn, ...] = (ScriptTurn(HELLO),)
    prompt: bool = True
    """Whether to send prompts. False is for an agent whose answers cost money."""
    auth: str | None = None
    """The id of the auth method to use before the first session."""
    without: frozenset[str] = frozenset()
    """The capabilities that we do not offer to the agent: `fs`, `terminal`, `elicitation`."""
    start_timeout_s: float = 15.0
    """Time from its start to the answer to `initialize`. The slowest agents need three seconds, or ten if busy."""
    timeout_s: float = 5.0
    """Time for an answer that needs no model."""
    turn_timeout_s: float = 60.0
    exit_timeout_s: float = 5.0
    """Time for an agent to exit after its stdin was closed. Longer than any known agent needs."""
    protocols: tuple[Version, ...] | None = None
    """The protocol versions to judge. None means version 1, and version 2 if the agent answers it."""
    scenes: frozenset[str] | None = None
    """The names of the scenes to play after the first one, or None for all."""
    on_scene: Callable[[str], None] | None = None
    """Called with the name of each scene when it starts."""
