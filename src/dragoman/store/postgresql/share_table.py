"""The shares of the bridges of one database: which agents or sessions other people may read, and until when.

All times are from the clock of the database. The code of a share is used up by one conditional UPDATE, which stores the
id of the attempt. If the answer is lost, the attempt is repeated with the same id and succeeds again. Adding or
withdrawing a share notifies all bridges in the same commit.
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
    """Seconds since 1970, like `expires`."""
    expires: int
    agent: str | None
    session: str | None
    title: str
    code: bytes | None
    """The hash of the code in its link. None after the code was used."""


class ShareTable:
    """The shares of one realm, which is all bridges with the same token."""

    def __init__(self, database: Database, realm: str) -> None:
        self._database = database
        self._realm = realm

    async def read(self) -> list[ShareRow]:
        """Return all shares that have not expired."""
        return [ShareRow(*row) for row in await self._database.fetch_once(_READ, (self._realm,))]

    async def make(self, share: ShareRow, life_s: int, limit: int) -> ShareRow | None:
        """Add a share that expires after `life_s`. Return None if the realm already has `limit` shares."""
        params = {**msgspec.structs.asdict(share), "realm": self._realm, "life_s": life_s, "limit": limit}
        made = await self._database.fetch(_MAKE, params)
        return ShareRow(*made[0][:-1]) if made else None

    async def redeem(self, code: bytes, life_s: float) -> ShareRow | None:
        """Use up the code of a share, and return the share. Return None if the code is unknown, used or too old.

        A code is valid for `life_s` after the share was created.
        """
        params = {"realm": self._realm, "code": code, "life_s": life_s, "attempt": uuid.uuid4()}
        found = await self._database.fetch(_REDEEM, params)
        return ShareRow(*found[0]) if found else None

    async def withdraw(self, share_id: str) -> bool:
        """Remove a share, and return whether it existed."""
        return bool(await self._database.fetch(_WITHDRAW, (self._realm, share_id)))

    async def sweep(self) -> None:
        """Remove the expired shares of all realms."""
        await self._database.fetch_once(_SWEEP)
