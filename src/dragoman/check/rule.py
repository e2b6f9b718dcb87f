"""One rule of the protocol that the checker can judge, as data."""

from typing import Literal

import msgspec

Level = Literal["must", "should", "disputed"]
"""How grave a breach is."""
Role = Literal["agent", "client"]
"""The side that a rule is for."""

SITE = "https://agentclientprotocol.com/protocol/v1"


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A duty of one side, the clause of the specification, the occasion to break it, and the way to mend it.

    Rules on agents are numbered from 001 in each area, rules on clients from 101.
    """

    id: str
    title: str
    page: str
    section: str
    level: Level
    role: Role
    exercised: str
    fix: str

    @property
    def area(self) -> str:
        """Return the part of the protocol that the rule is about, as its id names it."""
        return self.id.split("-")[1]

    @property
    def clause(self) -> str:
        """Return the page of the specification and its section."""
        return f"{self.page}#{self.section}" if self.section else self.page

    @property
    def url(self) -> str:
        """Return where the clause can be read."""
        return f"{SITE}/{self.clause}"
