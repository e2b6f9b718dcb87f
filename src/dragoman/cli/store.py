"""`dragoman store`: create, inspect, move and prune the store of sessions."""

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from dragoman.cli.exit_codes import DONE, FAILED
from dragoman.cli.options import UsageError
from dragoman.cli.output import print_error, print_json
from dragoman.errors import DragomanError
from dragoman.event_loop import run
from dragoman.home import home
from dragoman.store import FileStore, find_address, find_homes
from dragoman.text import one_line

if TYPE_CHECKING:
    from dragoman.store.move import MoveResult
    from dragoman.store.postgresql.status import StoreStatus
    from dragoman.store.retention import PruneResult, RetentionPolicy


def main(options: argparse.Namespace) -> int:
    """Run the action. Return 1 on failure, 2 for a usage error."""
    try:
        address = find_address(options.store)
    except DragomanError as error:
        raise UsageError(str(error)) from None
    if address is None and options.action != "prune":
        raise UsageError("no database given; add --store postgresql://USER@HOST/NAME, or set DRAGOMAN_STORE")
    try:
        if address is None:
            return run(_prune(None, options))
        return run(_ACTIONS[options.action](address, options))
    except UsageError:
        raise
    except DragomanError as error:
        print_error("store", error)
        return FAILED


async def _migrate(address: str, options: argparse.Namespace) -> int:
    """Create or upgrade the tables."""
    from dragoman.store.postgresql import Database, schema

    database = Database(address)
    try:
        version = await schema.read_version(database)
        if options.action == "migrate" and version == 0:
            await schema.check(database)
        before, after = await schema.migrate(database)
    finally:
        await database.close()
    if options.format == "json":
        print_json(msgspec.json.encode({"database": database.name, "before": before, "version": after}))
    elif before == after:
        print(f"{database.name}: the tables exist, version {after}")
    elif before == 0:
        print(f"{database.name}: the tables were created, version {after}")
    else:
        print(f"{database.name}: the tables were upgraded from version {before} to {after}")
    return DONE


async def _status(address: str, options: argparse.Namespace) -> int:
    from dragoman.store.postgresql import Database
    from dragoman.store.postgresql.status import read_status

    database = Database(address)
    try:
        status = await read_status(database)
    finally:
        await database.close()
    if options.format == "json":
        print_json(msgspec.json.encode(status))
    else:
        for line in _lines(status):
            print(line)
    return DONE


def _lines(status: "StoreStatus") -> Iterator[str]:
    yield (
        f"{status.database}: tables of version {status.version}, {_megabytes(status.block_bytes)} of blocks, "
        f"{_megabytes(status.database_bytes)} in all"
    )
    for scope in status.scopes:
        yield f"  {scope.scope}: {_count(scope.prompted)}, {_megabytes(scope.size_bytes)}, {scope.owned:,} open"
    if not status.nodes:
        yield "  no process is using it"
    for node in status.nodes:
        state = "" if node.is_alive else ", gone; other processes can take over its sessions"
        serves = f", serves {', '.join(node.agents)}, {node.waiting:,} messages waiting" if node.agents else ""
        task = ", prunes" if node.is_pruning else ""
        yield (
            f"  process {node.pid} on {node.host}: {_count(node.sessions)}, last seen {node.silent_s:.1f} s ago, "
            f"lease {node.lease_s:g} s{serves}{task}{state}"
        )
    for session in status.open:
        title = one_line(session.title or "(no title)")
        yield f"  open: {session.id} of {session.scope} in process {session.pid} on {session.host}: {title}"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


async def _move(address: str, options: argparse.Namespace) -> int:
    from dragoman.bridge.journal_move import move_journals
    from dragoman.store.move import MoveResult, move_sessions
    from dragoman.store.postgresql import PostgresStore

    total = MoveResult()
    for scope, directory in find_homes(home()):
        files, database = FileStore(directory), PostgresStore(address, scope)
        source, target = (files, database) if options.to == "database" else (database, files)

        async def show_progress(result: MoveResult, scope: str = scope) -> None:
            if sys.stderr.isatty():
                print(f"\r{scope}: {result.moved + result.known:,} sessions", end="", file=sys.stderr, flush=True)

        try:
            result = await move_sessions(source, target, show_progress)
        finally:
            await files.close()
            await database.close()
        if sys.stderr.isatty():
            print(file=sys.stderr)
        total.moved += result.moved
        total.known += result.known
        total.problems += [f"{scope}: {problem}" for problem in result.problems]
    journals = await move_journals(address, home(), to_files=options.to == "files")
    _report(total, journals, options)
    total.problems += journals.problems
    return FAILED if total.problems else DONE


def _report(sessions: "MoveResult", journals: "MoveResult", options: argparse.Namespace) -> None:
    if options.format == "json":
        print_json(msgspec.json.encode({**msgspec.structs.asdict(sessions), "journals": journals}))
        return
    were = "was" if sessions.known == 1 else "were"
    print(f"{_count(sessions.moved)} moved, {sessions.known:,} {were} already there")
    if journals.moved or journals.known:
        print(f"journals of bridges: {journals.moved:,} moved, {journals.known:,} already there")
    problems = [*sessions.problems, *journals.problems]
    for problem in problems:
        print_error("store", problem)
    if not problems:
        print("each was compared line by line; the originals were kept")


def _count(sessions: int) -> str:
    return "1 session" if sessions == 1 else f"{sessions:,} sessions"


async def _prune(address: str | None, options: argparse.Namespace) -> int:
    """Apply the retention rules of the command line, in the home if no address is passed."""
    from dragoman.store.retention import InvalidRetentionError, make_policy

    rules = {
        "archive-after": options.archive_after,
        "delete-after": options.delete_after,
        "max-size": options.max_size,
    }
    try:
        policy = make_policy(rules)
    except InvalidRetentionError as error:
        raise UsageError(str(error)) from None
    if address is None:
        from dragoman.agent.sessions.pruning import prune_home

        result = await prune_home(home(), policy, is_dry=options.dry_run)
    else:
        result = await _prune_database(address, policy, is_dry=options.dry_run)
    if options.format == "json":
        print_json(msgspec.json.encode(result))
    else:
        for line in _prune_lines(result, is_dry=options.dry_run):
            print(line)
    return DONE


async def _prune_database(address: str, policy: "RetentionPolicy", *, is_dry: bool) -> "PruneResult":
    from dragoman.store.postgresql import Database
    from dragoman.store.postgresql.retention import prune

    database = Database(address)
    try:
        return await prune(database, policy, is_dry=is_dry)
    finally:
        await database.close()


def _prune_lines(result: "PruneResult", *, is_dry: bool) -> Iterator[str]:
    would = "would be " if is_dry else ""
    yield (
        f"{would}archived: {result.archived:,}; {would}deleted: {result.deleted:,}, "
        f"{result.deleted_bytes / 1e6:,.1f} MB"
    )
    if result.open:
        yield f"kept, because a process has them open: {result.open:,}"
    for session in result.examples:
        title = one_line(session.title or "(no title)")
        yield f"  {session.updated_at[:10]}  {session.scope}  {session.id}  {session.size_bytes:,} bytes  {title}"
    if len(result.examples) < result.archived + result.deleted and is_dry:
        yield f"  … and {result.archived + result.deleted - len(result.examples):,} more"


_ACTIONS = {"init": _migrate, "migrate": _migrate, "status": _status, "move": _move, "prune": _prune}
