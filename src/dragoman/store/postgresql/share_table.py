"""Shares of the bridges that share a database: what other people may read, and until when, by the database's clock.

The code of a share is used up by one conditional UPDATE, which notes the attempt: an attempt whose answer was lost is
made again under the same id, and succeeds again. A share that is made or withdrawn wakes all bridges with the same
commit.
"""

import uuid
from typing import LiteralString

import msgspec

from dragoman.store.postgresql.database import Database
from dragoman.store.postgresql.message_table import WAKE_FOR_SHARES

_COLUMNS: LiteralString = (
    "id, floor(extract(epoch FROM created))::bigint, floor(extract(epoch FROM expires))::bigint, agent, session, "
    "title, CASE WHEN opened IS NULL THEN code END"
)
_READ: LiteralString = f"SELECT {_COLUMNS} FROM dragoman_share WHERE realm = %s AND expires > clock_timestamp()"
_MAKE: LiteralString = f"""
WITH made AS (
    INSERT INTO dragoman_share (realm, id, expires, agent, session, title, code)
    SELECT %(realm)s, %(id)s, clock_timestamp() + make_interval(secs => %(life_s)s), %(agent)s::text,
        %(session)s::text, %(title)s, %(code)s::bytea
    WHERE (SELECT count(*) FROM dragoman_share
        WHERE realm = %(realm)s AND id <> %(id)s AND expires > clock_timestamp()) < %(limit)s
    ON CONFLICT (realm, id) DO UPDATE SET title = excluded.title RETURNING *)
SELECT {_COLUMNS}, {WAKE_FOR_SHARES} FROM made
"""
_REDEEM: LiteralString = f"""
UPDATE dragoman_share SET opened = %(attempt)s
WHERE realm = %(realm)s AND code = %(code)s AND (opened IS NULL OR opened = %(attempt)s)
    AND expires > clock_timestamp() AND created + make_interval(secs => %(life_s)s) > clock_timestamp()
RETURNING {_COLUMNS}
"""
_WITHDRAW: LiteralString = f"""
WITH gone AS (DELETE FROM dragoman_share WHERE realm = %s AND id = %s RETURNING id)
SELECT id, {WAKE_FOR_SHARES} FROM gone
"""
_SWEEP: LiteralString = "DELETE FROM dragoman_share WHERE expires <= clock_timestamp()"


class ShareRow(msgspec.Struct, frozen=True):
    """A share as it is in the database."""

    id: str
    created: int
    """Seconds since 1970, as is `expires`."""
    expires: int
    agent: str | None
    session: str | None
    title: str
    code: bytes | None
    """The hash of the code of its link; None once that was used."""


class ShareTable:
    """The shares of the bridges of one realm, which are those that have the same token."""

    def __init__(self, database: Database, realm: str) -> None:
        self._database = database
        self._realm = realm

    async def read(self) -> list[ShareRow]:
        """Return all shares that are not over."""
        return [ShareRow(*row) for row in await self._database.fetch_once(_READ, (self._realm,))]

    async def make(self, share: ShareRow, life_s: int, limit: int) -> ShareRow | None:
        """Add a share, for so long from now; None if there are as many as there may be."""
        params = {**msgspec.structs.asdict(share), "realm": self._realm, "life_s": life_s, "limit": limit}
        made = await self._database.fetch(_MAKE, params)
        return ShareRow(*made[0][:-1]) if made else None

    async def redeem(self, code: bytes, life_s: float) -> ShareRow | None:
        """Use up the code of a share, which is good for so long; None if it is unknown, used or too old."""
        params = {"realm": self._realm, "code": code, "life_s": life_s, "attempt": uuid.uuid4()}
        found = await self._database.fetch(_REDEEM, params)
        return ShareRow(*found[0]) if found else None

    async def withdraw(self, share_id: str) -> bool:
        """Remove a share; tells whether there was one."""
        return bool(await self._database.fetch(_WITHDRAW, (self._realm, share_id)))

    async def sweep(self) -> None:
        """Remove the shares that are over, of all realms."""
        await self._database.fetch_once(_SWEEP)
