"""`dragoman store`: the place that keeps sessions: its tables, its state, moves into a database and back, retention."""

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from dragoman.cli.exit_codes import DONE, FAILED
from dragoman.cli.options import UsageError
from dragoman.cli.output import complain, print_json
from dragoman.cli.store.pruning import prune
from dragoman.errors import DragomanError
from dragoman.event_loop import Stopped, run
from dragoman.home import home
from dragoman.store import FileStore, find_address, find_homes
from dragoman.text import one_line

if TYPE_CHECKING:
    from dragoman.store.move import MoveResult
    from dragoman.store.postgresql.status import StoreStatus


def main(options: argparse.Namespace) -> int:
    """Run the action; 1 when it cannot be done, 2 for a wrong command line."""
    try:
        address = find_address(options.store)
    except DragomanError as error:
        raise UsageError(str(error)) from None
    if address is None and options.action != "prune":
        raise UsageError("no database is named; give --store postgresql://USER@HOST/NAME, or set DRAGOMAN_STORE")
    try:
        if address is None:
            return run(prune(None, options))
        return run(_ACTIONS[options.action](address, options))
    except UsageError:
        raise
    except DragomanError as error:
        complain("store", error)
        return FAILED
    except Stopped as stopped:
        return 128 + stopped.signal_number


async def _migrate(address: str, options: argparse.Namespace) -> int:
    """Make the tables, or upgrade them."""
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
        print(f"{database.name}: the tables are there, version {after}")
    elif before == 0:
        print(f"{database.name}: the tables are made, version {after}")
    else:
        print(f"{database.name}: the tables were version {before}, and are version {after} now")
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
        yield f"  {scope.scope}: {_count(scope.prompted)}, {_megabytes(scope.size_bytes)}, {scope.owned:,} of all open"
    if not status.nodes:
        yield "  no process uses it now"
    for node in status.nodes:
        state = "" if node.is_alive else ", gone: its sessions can be taken over"
        serves = f", serves {', '.join(node.agents)}, {node.waiting:,} messages wait for it" if node.agents else ""
        task = ", prunes" if node.is_pruning else ""
        yield (
            f"  process {node.pid} on {node.host}: {_count(node.sessions)}, heard {node.silent_s:.1f} s ago, "
            f"lease {node.lease_s:g} s{serves}{task}{state}"
        )
    for session in status.open:
        title = one_line(session.title or "(no title)")
        yield f"  open: {session.id} of {session.scope} in process {session.pid} on {session.host}: {title}"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


async def _move(address: str, options: argparse.Namespace) -> int:
    from dragoman.cli.store.journals import move_journals
    from dragoman.store.move import MoveResult, move_sessions
    from dragoman.store.postgresql import PostgresStore

    total = MoveResult()
    for scope, directory in find_homes(home()):
        files, database = FileStore(directory), PostgresStore(address, scope)
        source, target = (files, database) if options.to == "database" else (database, files)

        async def tell(result: MoveResult, scope: str = scope) -> None:
            if sys.stderr.isatty():
                print(f"\r{scope}: {result.moved + result.known:,} sessions", end="", file=sys.stderr, flush=True)

        try:
            result = await move_sessions(source, target, tell)
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
    print(f"{_count(sessions.moved)} moved, {sessions.known:,} {were} there already")
    if journals.moved or journals.known:
        print(f"journals of bridges: {journals.moved:,} moved, {journals.known:,} there already")
    problems = [*sessions.problems, *journals.problems]
    for problem in problems:
        complain("store", problem)
    if not problems:
        print("each was compared line by line; the originals are still there")


def _count(sessions: int) -> str:
    return "1 session" if sessions == 1 else f"{sessions:,} sessions"


_ACTIONS = {"init": _migrate, "migrate": _migrate, "status": _status, "move": _move, "prune": prune}
