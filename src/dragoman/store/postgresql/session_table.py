"""The sessions in a database: their owners, their blocks, and the facts that lists show.

Only the owner of a session writes to it. One conditional UPDATE acquires the session and raises its fence. Every write
names the fence and the end that it follows. If another node has acquired the session, the fence is old and the write
changes nothing. If a write was committed but its answer was lost, it is recognised by the end that it left.

Blocks are sent in binary (`%b`). Otherwise a list of blocks would be sent as text with two digits per byte, which takes
longer than everything else that a node does with them.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from typing import LiteralString

import msgspec

from dragoman.errors import SessionBusyError, SessionNotFoundError, SessionUnreadableError
from dragoman.store.block import Block, Header, find_blocks, read_seal
from dragoman.store.history import ListedFacts
from dragoman.store.naming import normalise
from dragoman.store.postgresql.database import Database
from dragoman.store.postgresql.errors import DatabaseRefusedError, FencedError
from dragoman.store.store import ArchiveFilter

READ_BYTES = 1 << 21
"""The most bytes that are read at a time."""

_READ_ROWS = 2000

_FRESH = 0.6
"""A node has at least this part of its lease left while its heartbeat is not overdue. It sends five per lease."""

_OWNER_LIVES: LiteralString = """EXISTS (
    SELECT FROM dragoman_node n WHERE n.id = e.owner AND n.beat + n.lease > clock_timestamp())"""
_NOW_MS: LiteralString = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"

_CREATE: LiteralString = """
WITH made AS (
    INSERT INTO dragoman_session (scope, id, header, cwd) VALUES (%s, %s, %s, %s)
    ON CONFLICT DO NOTHING RETURNING key)
INSERT INTO dragoman_end (session, owner, fence, checksum) SELECT key, %s, 1, 0 FROM made RETURNING session
"""
_ACQUIRE: LiteralString = f"""
UPDATE dragoman_end e SET owner = %s, fence = fence + 1 FROM dragoman_session s
WHERE s.scope = %s AND s.id = %s AND e.session = s.key AND (owner IS NULL OR owner = %s OR NOT {_OWNER_LIVES})
RETURNING s.key, e.fence, e.last, e.checksum, s.header, s.updated, s.title, s.messages, s.prompted, s.archived, s.shown
"""
_RELEASE: LiteralString = "UPDATE dragoman_end SET owner = NULL WHERE session = %s AND fence = %s"
_OWN_END: LiteralString = """
WITH owned AS (
    UPDATE dragoman_end SET last = %(last)s, checksum = %(sum)s, bytes = bytes + %(bytes)s
    WHERE session = %(key)s AND fence = %(fence)s AND last = %(before)s AND checksum = %(sum_before)s
    RETURNING session)
"""
_AND_SET_FACTS: LiteralString = f""",
listed AS (
    UPDATE dragoman_session s SET title = %(title)s, messages = %(messages)s, prompted = %(prompted)s,
        archived = %(archived)s, shown = %(shown)s,
        updated = coalesce(%(updated)s::bigint, greatest(updated + 1, {_NOW_MS}))
    FROM owned WHERE s.key = owned.session)
"""
# Most updates are one block. Without arrays, writing one takes the database a third less time.
_INSERT_ONE: LiteralString = """
INSERT INTO dragoman_block (session, first, last, data)
SELECT session, %(first)s, %(last)s, %(block)b FROM owned RETURNING first
"""
_INSERT_MANY: LiteralString = """
INSERT INTO dragoman_block (session, first, last, data)
SELECT owned.session, new.* FROM owned, unnest(%(firsts)b::bigint[], %(lasts)b::bigint[], %(blocks)b::bytea[]) AS new
RETURNING first
"""
_SET_FACTS: LiteralString = f"""
UPDATE dragoman_session s SET title = %s, messages = %s, prompted = %s, archived = %s, shown = %s,
    updated = coalesce(%s::bigint, greatest(updated + 1, {_NOW_MS}))
FROM dragoman_end e WHERE s.key = %s AND e.session = s.key AND e.fence = %s RETURNING s.key
"""
_SET_COPIED_FACTS: LiteralString = f"""
UPDATE dragoman_session SET title = %s, messages = %s, prompted = %s, archived = %s, shown = %s,
    updated = coalesce(%s, {_NOW_MS}) WHERE key = %s
"""
_INSERT: LiteralString = """
INSERT INTO dragoman_block (session, first, last, data)
SELECT %s, new.* FROM unnest(%b::bigint[], %b::bigint[], %b::bytea[]) AS new
"""
_SET_END: LiteralString = "UPDATE dragoman_end SET last = %s, checksum = %s, bytes = %s WHERE session = %s"
_END: LiteralString = "SELECT fence, last, checksum FROM dragoman_end WHERE session = %s"
_READ_FROM: LiteralString = """
SELECT data FROM (
    SELECT first, data, sum(CASE WHEN last > %(after)s THEN length(data) END) OVER (ORDER BY first) - length(data)
        AS before FROM (
        SELECT first, last, data FROM dragoman_block WHERE session = %(key)s AND first <= %(until)s AND first >=
            coalesce((
                SELECT first FROM dragoman_block WHERE session = %(key)s AND first <= %(after)s AND last <= %(after)s
                ORDER BY first DESC LIMIT 1), 0)
        ORDER BY first LIMIT %(rows)s) AS next_ones) AS sized
WHERE before IS NULL OR before < %(bytes)s ORDER BY first
"""
_FIND: LiteralString = "SELECT key, header FROM dragoman_session WHERE scope = %s AND id = %s"
_FIND_END: LiteralString = """
SELECT s.key, e.last, e.checksum, s.title, s.messages, s.prompted, s.archived, s.shown
FROM dragoman_session s JOIN dragoman_end e ON e.session = s.key WHERE s.scope = %s AND s.id = %s
"""
_OWNER: LiteralString = f"""
SELECT n.name, n.pid, extract(epoch FROM n.beat + n.lease - clock_timestamp())::float,
    extract(epoch FROM n.lease)::float
FROM dragoman_session s JOIN dragoman_end e ON e.session = s.key JOIN dragoman_node n ON n.id = e.owner
WHERE s.scope = %s AND s.id = %s AND {_OWNER_LIVES}
"""
_DELETE: LiteralString = f"""
DELETE FROM dragoman_session s USING dragoman_end e
WHERE s.scope = %s AND s.id = %s AND e.session = s.key AND (owner IS NULL OR owner = %s OR NOT {_OWNER_LIVES})
RETURNING s.key
"""
_LOCATE: LiteralString = f"""
SELECT s.key, s.header, e.last, CASE WHEN {_OWNER_LIVES} THEN e.owner END
FROM dragoman_session s JOIN dragoman_end e ON e.session = s.key WHERE s.scope = %s AND s.id = %s
"""
_SCAN: LiteralString = f"""
SELECT s.header, s.title, s.updated, s.prompted, CASE WHEN {_OWNER_LIVES} THEN s.shown END
FROM dragoman_session s JOIN dragoman_end e ON e.session = s.key WHERE s.scope = %s
"""
_IS_LOST: LiteralString = """
SELECT owned.key FROM unnest(%s::bigint[], %s::bigint[]) AS owned (key, fence)
LEFT JOIN dragoman_end e ON e.session = owned.key WHERE e.fence IS DISTINCT FROM owned.fence
"""
_REMOVE_REPLACED: LiteralString = f"""
DELETE FROM dragoman_session s USING dragoman_end e WHERE s.scope = %s AND s.id = %s AND s.key <> %s
    AND e.session = s.key AND (owner IS NULL OR owner = %s OR NOT {_OWNER_LIVES})
"""
_RENAME_SCOPE: LiteralString = "UPDATE dragoman_session SET scope = %s WHERE key = %s"
_SWEEP: LiteralString = f"""
DELETE FROM dragoman_session WHERE key IN (
    SELECT s.key FROM dragoman_session s JOIN dragoman_end e ON e.session = s.key
    WHERE s.scope = %s AND NOT s.prompted AND s.updated <= {_NOW_MS} - %s AND NOT {_OWNER_LIVES} LIMIT 200)
"""
_PAGE: LiteralString = """
SELECT header, title, messages, updated, archived FROM dragoman_session
WHERE scope = %(scope)s AND prompted AND (%(archived)s::boolean IS NULL OR archived = %(archived)s)
    AND (%(after)s::bigint IS NULL OR (updated, id) < (%(after)s, %(after_id)s))
ORDER BY updated DESC, id DESC LIMIT %(limit)s
"""
_PAGE_OF_CWD: LiteralString = """
SELECT header, title, messages, updated, archived FROM dragoman_session
WHERE scope = %(scope)s AND prompted AND cwd = %(cwd)s
    AND (%(archived)s::boolean IS NULL OR archived = %(archived)s)
    AND (%(after)s::bigint IS NULL OR (updated, id) < (%(after)s, %(after_id)s))
ORDER BY updated DESC, id DESC LIMIT %(limit)s
"""

_ARCHIVED: dict[ArchiveFilter, bool | None] = {"exclude": False, "only": True, "include": None}

_decode_header = msgspec.json.Decoder(Header).decode


class SessionEnd(msgspec.Struct, frozen=True):
    """The end of a session's blocks, with everything needed to continue from there."""

    last: int
    checksum: int


class OwnedSession(msgspec.Struct, frozen=True):
    """A session that a node owns."""

    key: int
    fence: int
    header: Header
    end: SessionEnd
    facts: ListedFacts
    scope: str = ""
    updated_ms: int = 0
    """The time of the last change of its conversation before it was acquired."""


class SealedBlocks(msgspec.Struct):
    """Consecutive blocks that are ready to be written."""

    firsts: list[int]
    lasts: list[int]
    blocks: list[bytes]
    end: SessionEnd

    def add(self, first: int, last: int, block: bytes, checksum: int) -> None:
        """Add the next block. `checksum` is the sum of its seal."""
        self.firsts.append(first)
        self.lasts.append(last)
        self.blocks.append(block)
        self.end = SessionEnd(last, checksum)


class LocatedSession(msgspec.Struct, frozen=True):
    """A session, and its owner if that node is alive."""

    key: int
    header: Header
    last: int
    owner: uuid.UUID | None


class ScannedSession(msgspec.Struct, frozen=True):
    """The entry of a session in a bridge's list."""

    header: Header
    title: str | None
    updated_ms: int
    is_prompted: bool
    shown: bytes | None
    """The facts that its owner published. None if no owner is alive."""


class ListedSession(msgspec.Struct, frozen=True):
    """The entry of a session in a list."""

    header: Header
    title: str | None
    message_count: int
    updated_ms: int
    is_archived: bool


def _text(text: str | None) -> str | None:
    """Return a text without NUL, which the database cannot store. Headers and blocks have the original text."""
    return None if text is None else text.replace("\0", "\N{REPLACEMENT CHARACTER}")


async def find_lost(database: Database, sessions: Sequence[OwnedSession]) -> set[int]:
    """Return the keys of sessions that another node has acquired."""
    keys, fences = [session.key for session in sessions], [session.fence for session in sessions]
    return {key for (key,) in await database.fetch(_IS_LOST, (keys, fences))}


class SessionTable:
    """The sessions of one scope."""

    def __init__(self, database: Database, scope: str) -> None:
        self.database = database
        self.scope = scope

    async def create(self, header: Header, node: uuid.UUID) -> OwnedSession | None:
        """Create a session and own it. Return None if its id exists."""
        row = (self.scope, header.id, msgspec.json.encode(header), _text(normalise(header.cwd)), node)
        made = await self.database.fetch(_CREATE, row)
        return OwnedSession(made[0][0], 1, header, SessionEnd(0, 0), ListedFacts(), self.scope) if made else None

    async def acquire(self, session_id: str, node: uuid.UUID) -> OwnedSession:
        """Own a session that has no living owner. Raises SessionNotFoundError, SessionBusyError.

        If the heartbeat of its owner is overdue, wait until the owner is back or its lease has ended.
        """
        while True:
            acquired = await self.database.fetch(_ACQUIRE, (node, self.scope, session_id, node))
            if acquired:
                key, fence, last, checksum, header, updated_ms, *facts = acquired[0]
                end = SessionEnd(last, checksum)
                return OwnedSession(
                    key, fence, _decode_header(header), end, ListedFacts(*facts), self.scope, updated_ms
                )
            if not await self.database.fetch(_FIND, (self.scope, session_id)):
                raise SessionNotFoundError(session_id)
            left_s = await self.refuse_if_busy(session_id)
            await asyncio.sleep(left_s)

    async def release(self, session: OwnedSession) -> None:
        """Release a session, so that other nodes can own it."""
        await self.database.fetch(_RELEASE, (session.key, session.fence))

    async def append(
        self, session: OwnedSession, before: SessionEnd, new: SealedBlocks, facts: ListedFacts | None
    ) -> None:
        """Add blocks after the end `before`, and the facts if they changed, in one commit. Raises FencedError.

        If the answer of an attempt was lost, a repeated call finds its blocks and succeeds.
        """
        statement = _OWN_END
        params: dict[str, object] = {
            "key": session.key,
            "fence": session.fence,
            "before": before.last,
            "sum_before": before.checksum,
            "last": new.end.last,
            "sum": new.end.checksum,
            "bytes": sum(map(len, new.blocks)),
        }
        if facts is not None:
            statement += _AND_SET_FACTS
            params |= {
                "title": _text(facts.title),
                "messages": facts.message_count,
                "prompted": facts.is_prompted,
                "archived": facts.is_archived,
                "shown": facts.shown,
                "updated": facts.updated_ms,
            }
        if len(new.blocks) == 1:
            statement += _INSERT_ONE
            params |= {"first": new.firsts[0], "block": new.blocks[0]}
        else:
            statement += _INSERT_MANY
            params |= {"firsts": new.firsts, "lasts": new.lasts, "blocks": new.blocks}
        written = await self.database.fetch_once(statement, params)
        if not written:
            found = await self.database.fetch_once(_END, (session.key,))
            if found != [(session.fence, new.end.last, new.end.checksum)]:
                raise FencedError(session.header.id)

    async def set_facts(self, session: OwnedSession, facts: ListedFacts) -> None:
        """Set the facts that lists show. Raises FencedError."""
        row = (_text(facts.title), *msgspec.structs.astuple(facts)[1:], session.key, session.fence)
        if not await self.database.fetch_once(_SET_FACTS, row):
            raise FencedError(session.header.id)

    async def find(self, session_id: str) -> Header | None:
        """Return the header of a session, or None."""
        found = await self.database.fetch(_FIND, (self.scope, session_id))
        return _decode_header(found[0][1]) if found else None

    async def find_end(self, session_id: str) -> tuple[int, SessionEnd, ListedFacts]:
        """Return the key, the end and the facts of a session without owning it. Raises SessionNotFoundError."""
        found = await self.database.fetch(_FIND_END, (self.scope, session_id))
        if not found:
            raise SessionNotFoundError(session_id)
        key, last, checksum, *facts = found[0]
        return key, SessionEnd(last, checksum), ListedFacts(*facts)

    async def read_from(self, key: int, after: int, until: int) -> list[Block]:
        """Return the next blocks after line `after`, up to line `until`, or an empty list at the end.

        The block before them is read as well, because the checksum of the next block starts from its sum. Raises
        SessionUnreadableError.
        """
        params = {"key": key, "after": after, "until": until, "rows": _READ_ROWS, "bytes": READ_BYTES}
        blocks = [data for (data,) in await self.database.fetch(_READ_FROM, params)]
        last, checksum = 0, 0
        if blocks and after > 0 and (seal := read_seal(blocks[0]))[0] <= after:
            last, checksum = seal
            del blocks[0]
        buffer = b"".join(blocks)
        found, damaged = find_blocks(buffer, last + 1, checksum)
        if damaged or found.end != len(buffer):
            problem = f"the block after line {after} is damaged"
            raise SessionUnreadableError(f"the database {self.database.name}", problem)
        return found.blocks

    async def locate(self, session_id: str) -> LocatedSession | None:
        """Return a session with its owner, or None if it does not exist."""
        found = await self.database.fetch(_LOCATE, (self.scope, session_id))
        if not found:
            return None
        key, header, last, owner = found[0]
        return LocatedSession(key, _decode_header(header), last, owner)

    async def scan(self) -> list[ScannedSession]:
        """Return the entries of all sessions."""
        rows = await self.database.fetch(_SCAN, (self.scope,))
        return [ScannedSession(_decode_header(header), *rest) for header, *rest in rows]

    async def replace(self, session: OwnedSession, scope: str, node: uuid.UUID) -> None:
        """Move a session of this scope to another scope, in place of the session with the same id there.

        Raises SessionBusyError.
        """
        try:
            async with self.database.transaction() as transaction:
                await transaction.execute(_REMOVE_REPLACED, (scope, session.header.id, session.key, node))
                await transaction.execute(_RENAME_SCOPE, (scope, session.key))
        except DatabaseRefusedError:  # a living node owns the session with that id
            await SessionTable(self.database, scope).refuse_if_busy(session.header.id)
            raise

    async def delete(self, session_id: str, node: uuid.UUID) -> bool:
        """Delete a session, and return whether it existed. Raises SessionBusyError."""
        if await self.database.fetch(_DELETE, (self.scope, session_id, node)):
            return True
        while (left_s := await self.refuse_if_busy(session_id)) > 0:
            await asyncio.sleep(left_s)
            if await self.database.fetch(_DELETE, (self.scope, session_id, node)):
                return True
        return False

    async def refuse_if_busy(self, session_id: str) -> float:
        """Raise SessionBusyError if the owner of a session is alive.

        Return the seconds to wait if its heartbeat is overdue, or 0 if there is no owner.
        """
        owner = await self.database.fetch(_OWNER, (self.scope, session_id))
        if not owner:
            return 0.0
        name, pid, left_s, lease_s = owner[0]
        if left_s > lease_s * _FRESH:
            raise SessionBusyError(session_id, pid, name, left_s)
        return min(max(left_s, 0.0) + 0.05, lease_s / 5)

    async def sweep(self, kept_s: float) -> None:
        """Delete sessions that were never prompted, have no owner, and are older than `kept_s`.

        This is tried only once, because lists wait for it, even if the database is read-only.
        """
        await self.database.fetch_once(_SWEEP, (self.scope, int(1000 * kept_s)))

    async def page(
        self, cwd: str | None, after: tuple[int, str] | None, limit: int, archived: ArchiveFilter
    ) -> Sequence[ListedSession]:
        """Return prompted sessions, newest first, starting after the session `after`."""
        after_ms, after_id = after or (None, None)
        params = {
            "scope": self.scope,
            "cwd": cwd,
            "archived": _ARCHIVED[archived],
            "after": after_ms,
            "after_id": after_id,
            "limit": limit,
        }
        rows = await self.database.fetch(_PAGE if cwd is None else _PAGE_OF_CWD, params)
        return [ListedSession(_decode_header(header), *rest) for header, *rest in rows]

    async def copy(
        self, header: Header, blocks: AsyncIterator[SealedBlocks], facts: ListedFacts, updated_ms: int | None = None
    ) -> bool:
        """Create a session without an owner from blocks, in one transaction. Return whether its id was free."""
        async with self.database.transaction() as transaction:
            row = (self.scope, header.id, msgspec.json.encode(header), _text(normalise(header.cwd)), None)
            made = await (await transaction.execute(_CREATE, row)).fetchone()
            if made is None:
                return False
            end, size = SessionEnd(0, 0), 0
            async for new in blocks:
                await transaction.execute(_INSERT, (made[0], new.firsts, new.lasts, new.blocks))
                end, size = new.end, size + sum(map(len, new.blocks))
            await transaction.execute(_SET_END, (end.last, end.checksum, size, made[0]))
            row = (_text(facts.title), *msgspec.structs.astuple(facts)[1:-1], updated_ms, made[0])
            await transaction.execute(_SET_COPIED_FACTS, row)
        return True
