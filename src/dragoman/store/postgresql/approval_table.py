"""The permanent decisions of users, per project. An action is identified by its bytes."""

from typing import LiteralString

from dragoman.store.postgresql.database import Database

_FIND: LiteralString = "SELECT decision FROM dragoman_approval WHERE scope = %s AND cwd = %s AND action = %s"
_KEEP: LiteralString = """
INSERT INTO dragoman_approval (scope, cwd, action, decision) VALUES (%s, %s, %s, %s)
ON CONFLICT (scope, cwd, action) DO UPDATE SET decision = excluded.decision, decided = clock_timestamp()
"""


class ApprovalTable:
    """The decisions for the projects of one agent."""

    def __init__(self, database: Database, scope: str) -> None:
        self._database = database
        self._scope = scope

    async def find(self, cwd: str, action: bytes) -> str | None:
        """Return the decision about an action, or None if there is none."""
        found = await self._database.fetch(_FIND, (self._scope, cwd, action))
        return found[0][0] if found else None

    async def keep(self, cwd: str, action: bytes, decision: str) -> None:
        """Store a decision. It replaces an earlier one."""
        await self._database.fetch(_KEEP, (self._scope, cwd, action, decision))
