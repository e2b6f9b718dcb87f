"""What the scenes have learnt of the agent, and what the judges saw of it."""

import asyncio

from dragoman.check.driver.desk import Object
from dragoman.check.judge import Judge, Memory


class Knowledge:
    """Shared by all scenes of a check."""

    def __init__(self) -> None:
        self.judges: list[Judge] = []
        self.memory = Memory()
        self.greeting: Object | None = None
        """The agent's answer to `initialize`, once it has given a good one."""
        self.has_answered = False
        """Whether it has given any, be it with another version."""
        self.permission_prompt: str | None = None
        """A prompt that has led to a permission request."""
        self.has_conversed = asyncio.Event()
        """Set once the first conversation is over, and `permission_prompt` is known if there is one."""
