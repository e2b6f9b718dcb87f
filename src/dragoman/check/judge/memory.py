"""What is known of an agent over several connections, for what only shows when one comes back."""

import msgspec

INVENTED = "dragoman-invented-"
"""Begins the ids of sessions, cursors and methods that nobody ever issued: whoever sees one accepted knows it."""


class Past(msgspec.Struct):
    """What a session has been through."""

    cwd: str | None = None
    prompts: list[str] = []
    spoke: bool = False
    listed: bool = False
    closed: bool = False
    deleted: bool = False


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
