"""The replies of a scripted model. A script has one reply per request to the model.

No framework is imported here: each import costs seconds, in every process that collects the tests.
"""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Reply:
    """One reply of a model. `waits` makes it hang after its text."""

    text: str = ""
    thought: str = ""
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    waits: bool = False
    fails: str = ""


@dataclass
class Script:
    """The remaining replies. `seen` has a line for each message of each request to the model."""

    replies: list[Reply]
    seen: list[list[str]] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)

    def next(self, messages: list[str], tools: list[str]) -> Reply:
        self.seen.append(messages)
        self.tools = tools
        reply = self.replies.pop(0)
        if reply.fails:
            raise RuntimeError(reply.fails)
        return reply
