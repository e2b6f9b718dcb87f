"""One rule of the protocol that the checker can judge, as data."""

from typing import Literal

import msgspec

from dragoman.check.conversation import Side

Level = Literal["must", "should", "disputed"]
"""How severe a breach is."""

Version = Literal[1, 2]
"""A version of the protocol. Version 2 is a draft."""

VERSIONS: tuple[Version, ...] = (1, 2)
V1: tuple[Version, ...] = (1,)
V2: tuple[Version, ...] = (2,)

SITE = "https://agentclientprotocol.com"

LAST_OF_AGENT = 100
"""Rules with a higher number in their area are for clients."""

PROPOSALS = "rfds/"
"""The path of the pages of proposals, which do not belong to a version."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A duty of one side: the clause of the specification, the occasion to break it, and how to fix it.

    Rules for agents are numbered from 001 in each area, rules for clients from 101. A duty in both protocol versions is
    one rule. `v1` and `v2` are its clauses as `page#section`. One is empty if that version does not have the duty.
    """

    id: str
    title: str
    v1: str = ""
    v2: str = ""
    level: Level
    exercised: str
    fix: str

    @property
    def area(self) -> str:
        """The area of the protocol, which is part of the id."""
        return self.id.split("-")[1]

    @property
    def side(self) -> Side:
        """The side that has the duty."""
        return "agent" if int(self.id.split("-")[2]) <= LAST_OF_AGENT else "client"

    @property
    def clauses(self) -> dict[Version, str]:
        """The clause in each version that has the duty: a page of the specification and its section."""
        return {version: clause for version, clause in zip(VERSIONS, (self.v1, self.v2), strict=True) if clause}

    @property
    def versions(self) -> tuple[Version, ...]:
        """The protocol versions that the rule applies to."""
        return tuple(self.clauses)

    @property
    def clause(self) -> str:
        """The clause in the first version that has the duty."""
        return self.clauses[self.versions[0]]

    @property
    def url(self) -> str:
        """The URL of that clause."""
        return self.url_in(self.versions[0])

    def url_in(self, version: Version) -> str:
        """Return the URL of a version's clause."""
        clause = self.clauses[version]
        return f"{SITE}/{clause}" if clause.startswith(PROPOSALS) else f"{SITE}/protocol/v{version}/{clause}"
