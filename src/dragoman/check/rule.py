"""One rule of the protocol that the checker can judge, as data."""

from typing import Literal

import msgspec

Level = Literal["must", "should", "disputed"]
"""How grave a breach is."""
Role = Literal["agent", "client"]
"""The side that a rule is for."""

Version = Literal[1, 2]
"""A version of the protocol; version 2 is a draft."""

VERSIONS: tuple[Version, ...] = (1, 2)
V1: tuple[Version, ...] = (1,)
V2: tuple[Version, ...] = (2,)

SITE = "https://agentclientprotocol.com"

PROPOSALS = "rfds/"
"""Where the pages of proposals are, which belong to no version."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A duty of one side, the clause of the specification, the occasion to break it, and the way to mend it.

    Rules on agents are numbered from 001 in each area, rules on clients from 101. A duty that both versions of the
    protocol have is one rule: `page` and `section` are its clause in version 1, `v2` that in version 2, as
    `page#section`; each is empty where that version does not have the duty.
    """

    id: str
    title: str
    page: str = ""
    section: str = ""
    v2: str = ""
    level: Level
    role: Role
    exercised: str
    fix: str

    @property
    def area(self) -> str:
        """Return the part of the protocol that the rule is about, as its id names it."""
        return self.id.split("-")[1]

    @property
    def clauses(self) -> dict[Version, str]:
        """Return the clause in each version that has the duty: a page of the specification and its section."""
        first = f"{self.page}#{self.section}" if self.section else self.page
        return {version: clause for version, clause in zip(VERSIONS, (first, self.v2), strict=True) if clause}

    @property
    def versions(self) -> tuple[Version, ...]:
        """Return the versions of the protocol that the rule holds for."""
        return tuple(self.clauses)

    @property
    def clause(self) -> str:
        """Return the clause in the first version that has the duty."""
        return self.clauses[self.versions[0]]

    @property
    def url(self) -> str:
        """Return where that clause can be read."""
        return self.url_in(self.versions[0])

    def url_in(self, version: Version) -> str:
        """Return where the clause of a version can be read."""
        clause = self.clauses[version]
        return f"{SITE}/{clause}" if clause.startswith(PROPOSALS) else f"{SITE}/protocol/v{version}/{clause}"
