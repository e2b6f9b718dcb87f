"""A session as a conversation shows it: its turns, tool calls, modes and options."""

import msgspec

from dragoman.check.conversation import Entry
from dragoman.check.judge.message import Message, Object

FINISHED = frozenset({"completed", "failed"})
MAX_SAID = 200
MAX_SAID_CHARS = 2000
"""How much of what the agent said is remembered, to know it again when it is replayed."""


class ToolCall(msgspec.Struct, eq=False):
    """A tool call, and what was answered when permission was asked for it."""

    id: str
    entry: Entry
    status: str = "pending"
    turn: "Turn | None" = None
    granted: Entry | None = None
    rejected: Entry | None = None
    ran: bool = False


class Turn(msgspec.Struct, eq=False):
    """A prompt and what became of it."""

    prompt: Message
    cancel: Entry | None = None
    awaited: list[Message] = []
    """What the agent was waiting for from the client when the turn was cancelled."""
    heard: Entry | None = None
    """What proves that the agent had read the cancel by then."""
    calls: dict[str, ToolCall] = {}
    dismissed: Entry | None = None
    """A permission that was answered with `cancelled`."""
    rivals: list[Entry] = []
    """Prompts that were sent to the session while this one ran, or that ran when it was sent."""
    end: Message | None = None
    said: list[str] = []
    """What the agent said, from one tool call to the next."""
    is_pausing: bool = True
    """Whether what the agent says next is a piece of its own."""

    def hear(self, words: str) -> None:
        """Take a piece of the agent's text in."""
        if self.is_pausing:
            if len(self.said) < MAX_SAID:
                self.said.append(words[:MAX_SAID_CHARS])
                self.is_pausing = False
        elif len(self.said[-1]) < MAX_SAID_CHARS:
            self.said[-1] += words[:MAX_SAID_CHARS]


class Session(msgspec.Struct, eq=False):
    """A session that was opened on this connection."""

    id: str
    opened: Message
    cwd: str | None = None
    roots: list[str] = []
    turn: Turn | None = None
    queued: list[Turn] = []
    last: Turn | None = None
    """The turn that ended last."""
    calls: dict[str, ToolCall] = {}
    modes: set[str] | None = None
    mode_id: str | None = None
    options: dict[str, Object] = {}
    once_offered: dict[str, Object] = {}
    """All options that it ever had, as they were last seen."""
    closing: Entry | None = None
    closed: Entry | None = None
    is_talking: bool = False
    """Whether its turn is running and has brought some text, so that more of it is nothing new."""

    def running(self) -> list[Turn]:
        """Return the turns that are not over, the oldest first."""
        return [self.turn, *self.queued] if self.turn is not None else list(self.queued)
