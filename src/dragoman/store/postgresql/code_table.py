"""One-time codes that a browser can send to any of the bridges that share a database. Only their hashes are stored.

A code has one purpose: to sign in a browser as the owner's, or to reach data that one node has in memory. A code that
works once is used up by one conditional UPDATE, which stores the id of the attempt. If the answer is lost, the attempt
is repeated with the same id and succeeds again. All times are from the clock of the database.
"""

import uuid
from typing import LiteralString

import msgspec

from dragoman.store.postgresql.database import Database

_PUT: LiteralString = """
WITH oldest AS (
    DELETE FROM dragoman_code WHERE hash IN (
        SELECT hash FROM dragoman_code
        WHERE kind = %(kind)s AND scope = %(scope)s AND node IS NOT DISTINCT FROM %(node)s::uuid
            AND used IS NULL AND hash <> %(hash)s
        ORDER BY created DESC OFFSET %(limit)s - 1))
INSERT INTO dragoman_code (hash, kind, scope, node, expires)
VALUES (%(hash)s, %(kind)s, %(scope)s, %(node)s, clock_timestamp() + make_interval(secs => %(life_s)s))
ON CONFLICT (hash) DO NOTHING
"""
_USE: LiteralString = """
UPDATE dragoman_code SET used = %(attempt)s
WHERE hash = %(hash)s AND kind = %(kind)s AND scope = %(scope)s AND (used IS NULL OR used = %(attempt)s)
    AND expires > clock_timestamp()
RETURNING hash
"""
_LOCATE: LiteralString = """
SELECT c.scope, c.node, n.id IS NOT NULL
FROM dragoman_code c LEFT JOIN dragoman_node n ON n.id = c.node AND n.beat + n.lease > clock_timestamp()
WHERE c.hash = %s AND c.kind = %s AND c.node IS NOT NULL
"""
_SWEEP: LiteralString = "DELETE FROM dragoman_code WHERE expires <= clock_timestamp() - interval '1 day'"
"""Codes are kept for a day, so that opening an expired link, or a link of a node that is gone, can explain itself."""


class LocatedCode(msgspec.Struct, frozen=True):
    """The node that has the data for a code."""

    scope: str
    node: uuid.UUID
    is_alive: bool


class CodeTable:
    """The codes of one kind."""

    def __init__(self, database: Database, kind: str) -> None:
        self._database = database
        self._kind = kind

    async def put(self, hash_: bytes, scope: str, *, life_s: float, limit: int, node: uuid.UUID | None = None) -> None:
        """Add a code that expires after `life_s`. If its scope and node have more than `limit`, remove the oldest."""
        params = {"hash": hash_, "kind": self._kind, "scope": scope, "life_s": life_s, "limit": limit, "node": node}
        await self._database.fetch(_PUT, params)

    async def use(self, hash_: bytes, scope: str) -> bool:
        """Use up a code. Return whether it was valid: known, not used and not expired."""
        params = {"hash": hash_, "kind": self._kind, "scope": scope, "attempt": uuid.uuid4()}
        return bool(await self._database.fetch(_USE, params))

    async def locate(self, hash_: bytes) -> LocatedCode | None:
        """Return the node that has the data for a code, or None if the code is unknown."""
        found = await self._database.fetch(_LOCATE, (hash_, self._kind))
        return LocatedCode(*found[0]) if found else None

    async def sweep(self) -> None:
        """Remove the codes of all kinds that expired more than a day ago."""
        await self._database.fetch_once(_SWEEP)
