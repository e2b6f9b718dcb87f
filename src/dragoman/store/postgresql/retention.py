"""Applies the retention policy to the logs and journals in a database, in small transactions, on one node at a time.

A batch locks the ends of its sessions, checks their owners again, and only then deletes. A node that tries to acquire
one of them at that moment waits and finds it deleted. No lock outlives a batch. A log and a journal with the same id
are one conversation. It is kept while any part of it is open.

One node at a time applies the policy of the setting. It claims a row, and claims it again before each batch. Another
node may claim the row an hour after the last claim.
"""

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import LiteralString

import msgspec

from dragoman.errors import DragomanError
from dragoman.store.postgresql import schema
from dragoman.store.postgresql.database import Database
from dragoman.store.retention import EXAMPLES, ExpiredSession, PruneResult, RetentionPolicy

BATCH_SESSIONS = 50
BATCH_BYTES = 32_000_000
"""The most bytes that are deleted at a time. This takes less than a second, so others do not wait longer."""

_BATCH_S = 60.0
_CHECK_S = 600.0
"""The time between two attempts of a node to claim the row."""

_NOW_MS: LiteralString = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
_OWNER_LIVES: LiteralString = "n.beat + n.lease > clock_timestamp()"
_IS_OPEN: LiteralString = f"""EXISTS (
    SELECT FROM dragoman_session o JOIN dragoman_end oe ON oe.session = o.key JOIN dragoman_node n ON n.id = oe.owner
    WHERE o.id = s.id AND {_OWNER_LIVES})"""

_OLD: LiteralString = f"s.updated <= {_NOW_MS} - %(delete_ms)s"
_UNARCHIVED: LiteralString = (
    f"s.scope NOT LIKE 'journal:%%' AND s.prompted AND NOT s.archived AND s.updated <= {_NOW_MS} - %(archive_ms)s"
)
"""The condition is for logs only, because a bridge asks the agent which sessions are archived."""

_TOO_LARGE: LiteralString = """s.key IN (
    SELECT key FROM (
        SELECT t.key, sum(te.bytes) OVER (ORDER BY t.updated DESC, t.key DESC) AS newest
        FROM dragoman_session t JOIN dragoman_end te ON te.session = t.key) AS sized
    WHERE newest > %(max_bytes)s)"""

_FROM: LiteralString = "FROM dragoman_session s JOIN dragoman_end e ON e.session = s.key WHERE"
_LOCK: LiteralString = f"""
SELECT s.id, EXISTS (SELECT FROM dragoman_node n WHERE n.id = e.owner AND {_OWNER_LIVES})
{_FROM} s.id = ANY(%s) ORDER BY s.key FOR UPDATE OF e
"""
_SEEN: LiteralString = "unnest(%(keys)s::bigint[], %(times)s::bigint[]) AS seen (key, updated)"
_IS_SEEN: LiteralString = "s.key = seen.key AND s.updated = seen.updated AND s.id = ANY(%(free)s)"
_DELETE: LiteralString = f"""
WITH gone AS (
    DELETE FROM dragoman_session s USING {_SEEN} WHERE {_IS_SEEN} RETURNING s.key, s.scope, s.id),
unlabelled AS (
    DELETE FROM dragoman_label l USING gone WHERE l.scope = gone.scope AND l.id = gone.id)
SELECT key FROM gone
"""
_ARCHIVE: LiteralString = f"UPDATE dragoman_session s SET archived = true FROM {_SEEN} WHERE {_IS_SEEN} RETURNING s.key"
_CLAIM: LiteralString = """
INSERT INTO dragoman_task (name, node) VALUES ('prune', %(node)s)
ON CONFLICT (name) DO UPDATE SET node = %(node)s, taken = clock_timestamp()
WHERE dragoman_task.node = %(node)s OR dragoman_task.taken < clock_timestamp() - interval '1 hour' RETURNING name
"""

_log = logging.getLogger("dragoman.store")


class _Rule(msgspec.Struct, frozen=True):
    """One rule of a policy: the condition for sessions, and whether they are archived or deleted."""

    condition: LiteralString
    params: dict[str, int]
    is_archiving: bool = False


class _Due(msgspec.Struct, frozen=True):
    """A session that is due."""

    key: int
    scope: str
    id: str
    title: str | None
    updated_ms: int
    size: int


async def prune(
    database: Database,
    policy: RetentionPolicy,
    *,
    is_dry: bool = False,
    may_continue: Callable[[], Awaitable[bool]] | None = None,
) -> PruneResult:
    """Apply a policy, or with `is_dry` only count what it would do. `may_continue` is called before each batch.

    Raises SchemaMismatchError, DatabaseUnavailableError, DatabaseRefusedError.
    """
    await schema.check(database)
    result = PruneResult()
    for rule in _rules(policy):
        query: LiteralString = f"SELECT count(*) {_FROM} {rule.condition} AND {_IS_OPEN}"
        ((is_open,),) = await database.fetch(query, rule.params)
        result.open += is_open
        if is_dry:
            await _count(database, rule, result)
            continue
        while may_continue is None or await may_continue():
            due = await _find(database, rule, BATCH_SESSIONS)
            if not due or not await _apply(database, rule, due, result):
                break
    return result


def _rules(policy: RetentionPolicy) -> list[_Rule]:
    """Return the rules of a policy. A session that matches several rules counts for the first."""
    rules: list[_Rule] = []
    params: dict[str, int] = {}
    earlier: LiteralString = ""
    if policy.delete_after_s is not None:
        params = {"delete_ms": int(1000 * policy.delete_after_s)}
        rules.append(_Rule(_OLD, params))
        earlier = f" AND NOT ({_OLD})"
    if policy.max_bytes is not None:
        params = {**params, "max_bytes": policy.max_bytes}
        rules.append(_Rule(f"{_TOO_LARGE}{earlier}", params))
        earlier = f"{earlier} AND NOT ({_TOO_LARGE})"
    if policy.archive_after_s is not None:
        params = {**params, "archive_ms": int(1000 * policy.archive_after_s)}
        rules.append(_Rule(f"{_UNARCHIVED}{earlier}", params, is_archiving=True))
    return rules


async def _count(database: Database, rule: _Rule, result: PruneResult) -> None:
    total: LiteralString = "SELECT count(*), coalesce(sum(e.bytes), 0)::bigint"
    query: LiteralString = f"{total} {_FROM} {rule.condition} AND NOT {_IS_OPEN}"
    ((sessions, size),) = await database.fetch(query, rule.params)
    if rule.is_archiving:
        result.archived += sessions
    else:
        result.deleted += sessions
        result.deleted_bytes += size
    for due in await _find(database, rule, EXAMPLES - len(result.examples)):
        updated_at = datetime.fromtimestamp(due.updated_ms / 1000, UTC).isoformat(timespec="seconds")
        result.examples.append(ExpiredSession(due.scope, due.id, due.title, updated_at, due.size))


async def _find(database: Database, rule: _Rule, limit: int) -> list[_Due]:
    """Return sessions that are due and not open, oldest first."""
    query: LiteralString = (
        f"SELECT s.key, s.scope, s.id, s.title, s.updated, e.bytes {_FROM} {rule.condition} AND NOT {_IS_OPEN} "
        "ORDER BY s.updated, s.key LIMIT %(limit)s"
    )
    return [_Due(*row) for row in await database.fetch(query, {**rule.params, "limit": limit})]


async def _apply(database: Database, rule: _Rule, due: list[_Due], result: PruneResult) -> int:
    """Archive or delete the first sessions that are due, and return how many.

    A session that has changed since it was found, or was opened, is left alone.
    """
    batch, size = list[_Due](), 0
    for session in due:
        if batch and size + session.size > BATCH_BYTES:
            break
        batch.append(session)
        size += session.size
    async with database.transaction() as transaction, asyncio.timeout(_BATCH_S):
        # The locks keep other nodes from acquiring these sessions until the commit.
        locked = await (await transaction.execute(_LOCK, ([session.id for session in batch],))).fetchall()
        taken = {session_id for session_id, is_taken in locked if is_taken}
        params = {
            "keys": [session.key for session in batch],
            "times": [session.updated_ms for session in batch],
            "free": [session_id for session_id, _ in locked if session_id not in taken],
        }
        cursor = await transaction.execute(_ARCHIVE if rule.is_archiving else _DELETE, params)
        done = {key for (key,) in await cursor.fetchall()}
    if rule.is_archiving:
        result.archived += len(done)
    else:
        result.deleted += len(done)
        result.deleted_bytes += sum(session.size for session in batch if session.key in done)
    return len(done)


class Pruner:
    """Applies the policy of a node at regular intervals. Without a policy it does nothing."""

    def __init__(self, database: Database, node: uuid.UUID, policy: RetentionPolicy | None) -> None:
        self._database = database
        self._node = node
        self._policy = policy
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the task, unless it was started or there is no policy."""
        if self._task is None and self._policy is not None:
            self._task = asyncio.create_task(self._run(self._policy))

    async def stop(self) -> None:
        """Stop the task. A batch that is in progress is rolled back."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _run(self, policy: RetentionPolicy) -> None:
        while True:
            try:
                if await self._claim():
                    done = await prune(self._database, policy, may_continue=self._claim)
                    if done.archived or done.deleted:
                        _log.info("old sessions: %d archived, %d deleted", done.archived, done.deleted)
            except DragomanError as error:
                _log.warning("old sessions could not be archived or deleted: %s", error)
            await asyncio.sleep(_CHECK_S)

    async def _claim(self) -> bool:
        """Claim the task, and return whether this node has it."""
        return bool(await self._database.fetch(_CLAIM, {"node": self._node}))
