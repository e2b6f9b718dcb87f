"""`dragoman store prune`: archive and delete old sessions, in a database or in a home."""

import argparse
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from dragoman.cli.exit_codes import DONE
from dragoman.cli.options import UsageError
from dragoman.cli.output import print_json
from dragoman.errors import SessionBusy
from dragoman.home import home
from dragoman.store import FileStore, Summary, find_homes
from dragoman.store.retention import EXAMPLES, BadRetention, ExpiredSession, PruneResult, RetentionPolicy, make_policy
from dragoman.text import one_line


async def prune(address: str | None, options: argparse.Namespace) -> int:
    """Follow the rules of the command line; without an address, in the home."""
    rules = {
        "archive-after": options.archive_after,
        "delete-after": options.delete_after,
        "max-size": options.max_size,
    }
    try:
        policy = make_policy(rules)
    except BadRetention as error:
        raise UsageError(str(error)) from None
    if address is None:
        result = await _prune_home(home(), policy, is_dry=options.dry_run)
    else:
        result = await _prune_database(address, policy, is_dry=options.dry_run)
    if options.format == "json":
        print_json(msgspec.json.encode(result))
    else:
        for line in _lines(result, is_dry=options.dry_run):
            print(line)
    return DONE


async def _prune_database(address: str, policy: RetentionPolicy, *, is_dry: bool) -> PruneResult:
    from dragoman.store.postgresql import Database
    from dragoman.store.postgresql.retention import prune

    database = Database(address)
    try:
        return await prune(database, policy, is_dry=is_dry)
    finally:
        await database.close()


async def _prune_home(root: Path, policy: RetentionPolicy, *, is_dry: bool) -> PruneResult:
    """Follow a policy over the sessions of all agents below a home."""
    stores = {scope: FileStore(directory) for scope, directory in find_homes(root)}
    result, now, size = PruneResult(), datetime.now(UTC), 0
    try:
        sessions = [(scope, listed) for scope, store in stores.items() for listed in await _list(store)]
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
    except SessionBusy:
        result.open += 1
        return
    if is_archiving:
        result.archived += 1
    else:
        result.deleted += 1
        result.deleted_bytes += expired.size_bytes


async def _archive(store: FileStore, session_id: str) -> None:
    from dragoman.agent.history import amend

    log = await store.open(session_id)
    try:
        await amend(log, archived=True)
    finally:
        await log.close()


def _lines(result: PruneResult, *, is_dry: bool) -> Iterator[str]:
    would = "would be " if is_dry else ""
    yield (
        f"{would}archived: {result.archived:,}; {would}deleted: {result.deleted:,}, "
        f"{result.deleted_bytes / 1e6:,.1f} MB"
    )
    if result.open:
        yield f"due, but open in a process: {result.open:,}; they stay"
    for session in result.examples:
        title = one_line(session.title or "(no title)")
        yield f"  {session.updated_at[:10]}  {session.scope}  {session.id}  {session.size_bytes:,} bytes  {title}"
    if len(result.examples) < result.archived + result.deleted and is_dry:
        yield f"  … and {result.archived + result.deleted - len(result.examples):,} more"
