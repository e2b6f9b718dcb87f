"""What is known of an agent over several connections, for what only shows when one comes back."""

import msgspec

INVENTED = "dragoman-invented-"
"""Begins the ids of sessions, cursors and methods that nobody ever issued: whoever sees one accepted knows it."""


MAX_KEPT = 200
"""Of each kind of what was said in a session: enough to see that something is missing when it is replayed."""


class Past(msgspec.Struct):
    """What a session has been through."""

    cwd: str | None = None
    births: int = 0
    """How often its id was given to a new session."""
    prompts: list[str] = []
    spoke: bool = False
    has_begun: bool = False
    """Whether the agent spoke before anybody asked."""
    asked: list[str] = []
    """Texts of prompts whose turns have ended well, and so are part of the conversation."""
    said: list[str] = []
    """What the agent said in those turns, from one tool call to the next."""
    calls: list[str] = []
    """Tool calls that were completed in them."""
    listed: bool = False
    closed: bool = False
    deleted: bool = False

    @property
    def is_shared(self) -> bool:
        """Tell whether its id is that of several sessions, so that it is not known which of them is meant."""
        return self.births > 1

    @property
    def is_lost(self) -> bool:
        """Tell whether it may be gone for a good reason: it was deleted, or one that has its id was."""
        return self.deleted or self.is_shared

    def keep(self, asked: list[str], said: list[str], calls: list[str]) -> None:
        """Remember a turn that has ended well."""
        for kept, more in ((self.asked, asked), (self.said, said), (self.calls, calls)):
            kept.extend(more[: MAX_KEPT - len(kept)])


class Memory:
    """The sessions of an agent, and the protocol versions it agreed to; one for all connections to the same agent."""

    def __init__(self) -> None:
        self.sessions: dict[str, Past] = {}
        self.versions: set[int] = set()
        self.taken: set[str] = set()
        """Kinds of content that were taken in prompts."""

    def past(self, session_id: str) -> Past:
        """Return the past of a session, empty when nothing is known of it."""
        return self.sessions.setdefault(session_id, Past())
