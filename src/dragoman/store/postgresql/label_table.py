"""The labels of sessions: small JSON texts that bridges share, by session id."""

from collections.abc import Iterable
from typing import LiteralString

from dragoman.store.postgresql.database import Database

_READ: LiteralString = "SELECT id, label FROM dragoman_label WHERE scope = %s"
_GET: LiteralString = "SELECT id, label FROM dragoman_label WHERE scope = %s AND id = ANY(%s)"
_ADD: LiteralString = """
INSERT INTO dragoman_label (scope, id, label) VALUES (%s, %s, %s) ON CONFLICT (scope, id) DO NOTHING RETURNING id
"""
_CHANGE: LiteralString = """
UPDATE dragoman_label SET label = %s WHERE scope = %s AND id = %s AND label = %s RETURNING id
"""
_DROP: LiteralString = "DELETE FROM dragoman_label WHERE scope = %s AND id = %s AND label = %s RETURNING id"
_REMOVE: LiteralString = "DELETE FROM dragoman_label WHERE scope = %s AND id = %s"


class LabelTable:
    """The labels of one agent's sessions."""

    def __init__(self, database: Database, scope: str) -> None:
        self._database = database
        self._scope = scope

    async def read(self) -> dict[str, bytes]:
        """Return all labels."""
        return dict(await self._database.fetch(_READ, (self._scope,)))

    async def get(self, session_ids: Iterable[str]) -> dict[str, bytes]:
        """Return the labels of the sessions, without sessions that have none."""
        return dict(await self._database.fetch(_GET, (self._scope, list(session_ids))))

    async def replace(self, session_id: str, before: bytes | None, label: bytes | None) -> bool:
        """Replace the label `before` with `label`, and return whether `before` was still there. None means no label.

        If the answer of the first attempt is lost, the return value is False although the label was written.
        """
        if before is None:
            done = await self._database.fetch(_ADD, (self._scope, session_id, label))
        elif label is None:
            done = await self._database.fetch(_DROP, (self._scope, session_id, before))
        else:
            done = await self._database.fetch(_CHANGE, (label, self._scope, session_id, before))
        return bool(done)

    async def remove(self, session_id: str) -> None:
        """Remove the label of a session."""
        await self._database.fetch(_REMOVE, (self._scope, session_id))
