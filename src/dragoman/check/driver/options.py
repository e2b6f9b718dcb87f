"""What a check of an agent is to do."""

from collections.abc import Callable

import msgspec

from dragoman.check.driver.script import Turn

HELLO = "Hello! Answer in one short sentence, please."
"""What is asked when nobody says what to ask: something that every agent can answer."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Which agent, and how it is to be driven."""

    command: tuple[str, ...] = ()
    url: str = ""
    token: str | None = None
    env: dict[str, str] = {}
    turns: tuple[Turn, ...] = (Turn(HELLO),)
    prompt: bool = True
    """False to send no prompt at all, for an agent whose answers cost money."""
    auth: str | None = None
    """The id of the method to authenticate with before the first session."""
    without: frozenset[str] = frozenset()
    """What we do not offer to the agent: `fs`, `terminal`, `elicitation`."""
    start_timeout_s: float = 15.0
    """From its start to the answer to `initialize`: the slowest agents take three seconds, on a busy machine ten."""
    timeout_s: float = 5.0
    """For an answer that no model has part in."""
    turn_timeout_s: float = 60.0
    exit_timeout_s: float = 5.0
    """For an agent to end once its stdin is closed: longer than any that does, shorter than a person's patience."""
    scenes: frozenset[str] | None = None
    """The names of the scenes to play after the greeting; None for all."""
    on_scene: Callable[[str], None] | None = None
    """Is told the name of each scene that begins."""
