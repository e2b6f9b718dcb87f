"""Labels of sessions, by the id of the session: small JSON texts that bridges share."""

from typing import LiteralString

from dragoman.store.postgresql.database import Database

_READ: LiteralString = "SELECT id, label FROM dragoman_label WHERE scope = %s"
_PUT: LiteralString = """
INSERT INTO dragoman_label (scope, id, label) VALUES (%s, %s, %s)
ON CONFLICT (scope, id) DO UPDATE SET label = excluded.label
"""
_REMOVE: LiteralString = "DELETE FROM dragoman_label WHERE scope = %s AND id = %s"


class LabelTable:
    """The labels of one agent's sessions."""

    def __init__(self, database: Database, scope: str) -> None:
        self._database = database
        self._scope = scope

    async def read(self) -> dict[str, bytes]:
        """Return all labels."""
        return dict(await self._database.fetch(_READ, (self._scope,)))

    async def put(self, session_id: str, label: bytes | None) -> None:
        """Set the label of a session, or remove it."""
        if label is None:
            await self._database.fetch(_REMOVE, (self._scope, session_id))
        else:
            await self._database.fetch(_PUT, (self._scope, session_id, label))
