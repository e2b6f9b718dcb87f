"""Retention in a home: sessions are archived or deleted by a policy. A database prunes itself."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from dragoman.agent.sessions.history import amend
from dragoman.errors import SessionBusyError
from dragoman.store import FileStore, Summary, find_homes
from dragoman.store.retention import EXAMPLES, ExpiredSession, PruneResult, RetentionPolicy


async def prune_home(root: Path, policy: RetentionPolicy, *, is_dry: bool) -> PruneResult:
    """Apply a policy to the sessions of all agents in a home."""
    stores = {scope: FileStore(directory) for scope, directory in find_homes(root)}
    result, now, size = PruneResult(), datetime.now(UTC), 0
    try:
        sessions = [(scope, listed) for scope, store in stores.items() for listed in await _list(store)]
        # The newest sessions come first, so that a size limit removes the oldest ones.
        sessions.sort(key=lambda each: each[1].updated_at, reverse=True)
        for scope, listed in sessions:
            expired = ExpiredSession(
                scope, listed.id, listed.title, listed.updated_at, await stores[scope].measure(listed.id)
            )
            size += expired.size_bytes
            is_over = policy.max_bytes is not None and size > policy.max_bytes
            if is_over or _is_older(listed, policy.delete_after_s, now):
                await _apply(stores[scope], expired, result, is_archiving=False, is_dry=is_dry)
            elif not listed.is_archived and _is_older(listed, policy.archive_after_s, now):
                await _apply(stores[scope], expired, result, is_archiving=True, is_dry=is_dry)
    finally:
        for store in stores.values():
            await store.close()
    return result


async def _list(store: FileStore) -> list[Summary]:
    sessions, cursor = list[Summary](), None
    while True:
        page = await store.page(None, cursor, archived="include")
        sessions += page.sessions
        cursor = page.next_cursor
        if cursor is None:
            return sessions


def _is_older(listed: Summary, age_s: float | None, now: datetime) -> bool:
    return age_s is not None and datetime.fromisoformat(listed.updated_at) <= now - timedelta(seconds=age_s)


async def _apply(
    store: FileStore, expired: ExpiredSession, result: PruneResult, *, is_archiving: bool, is_dry: bool
) -> None:
    """Archive or delete a session, unless another process has it open."""
    try:
        if is_dry:
            result.examples += [expired] if len(result.examples) < EXAMPLES else []
        elif is_archiving:
            await _archive(store, expired.id)
        else:
            await store.delete(expired.id)
    except SessionBusyError:
        result.open += 1
        return
    if is_archiving:
        result.archived += 1
    else:
        result.deleted += 1
        result.deleted_bytes += expired.size_bytes


async def _archive(store: FileStore, session_id: str) -> None:
    log = await store.open(session_id)
    try:
        await amend(log, archived=True)
    finally:
        await log.close()
