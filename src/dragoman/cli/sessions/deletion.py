"""`dragoman sessions delete`: sessions by their ids, all of them, or those that were not used for some time."""

import argparse
import asyncio
import sys
from datetime import UTC, datetime, timedelta

from dragoman.cli.exit_codes import FAILED
from dragoman.cli.output import complain, print_json
from dragoman.cli.session_choice import FoundSession, find_sessions
from dragoman.client import RemoteAgent
from dragoman.client.problem import Refused
from dragoman.errors import ConnectionClosed, DragomanError
from dragoman.protocol import v1
from dragoman.protocol.decode import encode
from dragoman.protocol.methods import SESSION_DELETE
from dragoman.text import one_line

SHOWN = 10
"""Sessions that are named before they are deleted; of more, the number is told."""


class NobodyToAsk(Refused):
    """There is no terminal at which somebody could agree."""


async def delete_sessions(agent: RemoteAgent, options: argparse.Namespace) -> int:
    """Delete the sessions that are meant, once somebody has agreed; an error of one does not keep the others."""
    agent.check.method(SESSION_DELETE)
    found = await _choose(agent, options)
    if not found:
        _tell(options, [], [], "There is no such session; nothing was deleted.")
        return 0
    if not options.yes and not await _agrees(_question(found)):
        print("Nothing was deleted.", file=sys.stderr)
        return FAILED
    deleted: list[FoundSession] = []
    failed: list[tuple[FoundSession, DragomanError]] = []
    for session in found:
        try:
            await agent.delete(session.session_id)
            deleted.append(session)
        except ConnectionClosed:
            raise
        except DragomanError as error:
            if len(found) == 1:
                raise
            failed.append((session, error))
    _tell(options, deleted, failed, _result(deleted))
    return FAILED if failed else 0


async def _choose(agent: RemoteAgent, options: argparse.Namespace) -> list[FoundSession]:
    if options.words:
        return await find_sessions(agent, options.words)
    infos = [info async for info in agent.list_sessions(options.cwd, archived="include")]
    if options.older_than is not None:
        infos = [info for info in infos if _is_older(info, options.older_than)]
    return [FoundSession(info.session_id, info.cwd, info) for info in infos]


def _is_older(info: v1.SessionInfo, age: timedelta) -> bool:
    """Tell whether a session was not used for so long; one of which that is not known is kept."""
    try:
        updated = datetime.fromisoformat(info.updated_at or "")
    except ValueError:
        return False
    return datetime.now(UTC) - (updated if updated.tzinfo else updated.replace(tzinfo=UTC)) > age


def _question(found: list[FoundSession]) -> str:
    if len(found) == 1:
        return f"Delete {_name(found[0])} for good? [y/N] "
    names = "".join(f"  {_name(session)}\n" for session in found[:SHOWN])
    more = f"  and {len(found) - SHOWN:,} more\n" if len(found) > SHOWN else ""
    return f"{names}{more}Delete these {len(found):,} sessions for good? [y/N] "


def _result(deleted: list[FoundSession]) -> str:
    if len(deleted) == 1:
        [session] = deleted
        return f"Deleted {_name(session)}." if session.info else f"There is no session {_name(session)} any more."
    return f"Deleted {len(deleted):,} sessions."


def _tell(
    options: argparse.Namespace,
    deleted: list[FoundSession],
    failed: list[tuple[FoundSession, DragomanError]],
    words: str,
) -> None:
    for session, error in failed:
        complain("sessions", f"{_name(session)} is not deleted: {error}")
    if options.format == "json":
        failures = [{"sessionId": session.session_id, "error": str(error)} for session, error in failed]
        print_json(encode({"deleted": [session.session_id for session in deleted], "failed": failures}))
    else:
        print(one_line(words))


def _name(found: FoundSession) -> str:
    title = found.info.title if found.info else None
    return one_line(f"{title} ({found.session_id})" if title else found.session_id)


async def _agrees(question: str) -> bool:
    """Ask at the terminal, without holding up the loop: a signal still ends it. Raises NobodyToAsk."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise NobodyToAsk("nobody can be asked here whether to delete it; say --yes to delete it without a question")
    print(question, end="", file=sys.stderr, flush=True)
    loop = asyncio.get_running_loop()
    answered = asyncio.Event()
    loop.add_reader(sys.stdin, answered.set)
    try:
        await answered.wait()
    finally:
        loop.remove_reader(sys.stdin)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
