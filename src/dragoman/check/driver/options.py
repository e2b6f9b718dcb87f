"""The options of a check of an agent, and its script: `--script FILE`, a YAML or JSON list of turns."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from dragoman.check.rule import Version
from dragoman.errors import DragomanError

Answer = Literal["allow", "reject"]
When = Literal["update", "permission"]


class BadScript(DragomanError):
    """A script that cannot be used."""


class ScriptTurn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A prompt, the answer to permission requests in its turn, and the moment to cancel it, if any."""

    prompt: str
    permission: Answer = "allow"
    cancel: When | None = None


def read_script(path: Path) -> tuple[ScriptTurn, ...]:
    """Read a script. Raises BadScript, which says how it is wrong."""
    try:
        turns = msgspec.yaml.decode(path.read_bytes(), type=list[ScriptTurn])
    except OSError as error:
        raise BadScript(f"{path} cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadScript(
            f"{path} is no script: {error}. Expected a list of turns, for example `- prompt: list the files`,"
            " each with `permission: allow` or `reject` and `cancel: update` or `permission` if wanted"
        ) from None
    if not turns:
        raise BadScript(f"{path} has no turns in it; a script is a list of `- prompt: …`")
    return tuple(turns)


HELLO = "Hello! Answer in one short sentence, please."
"""The default prompt: every agent can answer it."""


class AgentOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The agent to check, and the way to drive it."""

    command: tuple[str, ...] = ()
    url: str = ""
    token: str | None = None
    env: dict[str, str] = {}
    turns: tuple[ScriptTurn, ...] = (ScriptTurn(HELLO),)
    prompt: bool = True
    """False to send no prompt at all, for an agent whose answers cost money."""
    auth: str | None = None
    """The id of the method to authenticate with before the first session."""
    without: frozenset[str] = frozenset()
    """The capabilities that we do not offer to the agent: `fs`, `terminal`, `elicitation`."""
    start_timeout_s: float = 15.0
    """From its start to the answer to `initialize`: the slowest agents take three seconds, on a busy machine ten."""
    timeout_s: float = 5.0
    """The time for an answer that needs no model."""
    turn_timeout_s: float = 60.0
    exit_timeout_s: float = 5.0
    """For an agent to end once its stdin is closed: longer than any that does, shorter than a person's patience."""
    protocols: tuple[Version, ...] | None = None
    """The versions of the protocol to judge; None for version 1, and version 2 too if the agent answers it."""
    scenes: frozenset[str] | None = None
    """The names of the scenes to play after the greeting; None for all."""
    on_scene: Callable[[str], None] | None = None
    """Called with the name of each scene at its beginning."""
