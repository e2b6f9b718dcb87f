"""`dragoman sessions delete`: sessions by their ids, all of them, or those that were not used for some time."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from dragoman.bridge.delivery.stored_journals import StoredJournal
from dragoman.cli.agent_choice import served_name
from dragoman.cli.exit_codes import FAILED
from dragoman.cli.failure import busy_session_of
from dragoman.cli.output import complain, print_json
from dragoman.cli.session_choice import FoundSession, choose, find_sessions
from dragoman.cli.sessions.journals import BridgeJournals, open_journals
from dragoman.client import RemoteAgent
from dragoman.client.problem import Refused
from dragoman.errors import ConnectionClosed, DragomanError, RemoteError
from dragoman.home import home
from dragoman.protocol import v1
from dragoman.protocol.decode import encode
from dragoman.protocol.methods import SESSION_DELETE
from dragoman.store import is_same_directory
from dragoman.text import one_line

SHOWN = 10
"""Sessions that are named before they are deleted; of more, the number is told."""


class NobodyToAsk(Refused):
    """There is no terminal at which somebody could agree."""


async def delete_sessions(
    agent: RemoteAgent, options: argparse.Namespace, *, is_own: bool, store: str | None = None
) -> int:
    """Delete the sessions that are meant, once somebody has agreed; an error of one does not keep the others."""
    agent.check.method(SESSION_DELETE)
    async with open_journals(home(), store, served_name(options.command), is_own=is_own) as journals:
        deletion = SessionDeletion(agent, None if options.url else journals)
        found = await deletion.choose(options)
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
                await deletion.delete(session)
                deleted.append(session)
            except ConnectionClosed:
                raise
            except DragomanError as error:
                if len(found) == 1:
                    raise
                failed.append((session, error))
        _tell(options, deleted, failed, _result(deleted, deletion.journals_deleted))
        return FAILED if failed else 0


class SessionDeletion:
    """Deletes sessions of an agent, and the journals that bridges have of them."""

    def __init__(self, agent: RemoteAgent, journals: BridgeJournals | None) -> None:
        """`journals` is None for the agent of a bridge, which deletes its own."""
        self.journals_deleted = 0
        self._agent = agent
        self._journals = journals
        self._forgotten: set[str] = set()
        """Sessions that only have a journal: the agent does not list them."""

    async def choose(self, options: argparse.Namespace) -> list[FoundSession]:
        """Return the sessions that are meant; raises AmbiguousSession."""
        if options.words:
            found = await find_sessions(self._agent, options.words)
            if self._journals is None or all(session.info for session in found):
                return found
            stored = await self._find_forgotten([session.info for session in found if session.info], None)
            found = [session if session.info else choose(session.session_id, stored) for session in found]
            return list({session.session_id: session for session in found}.values())
        infos = [info async for info in self._agent.list_sessions(options.cwd, archived="include")]
        if self._journals is not None and self._journals.is_own:
            infos += await self._find_forgotten(infos, options.cwd)
        if options.older_than is not None:
            infos = [info for info in infos if _is_older(info, options.older_than)]
        return [FoundSession(info.session_id, info.cwd, info) for info in infos]

    async def delete(self, session: FoundSession) -> None:
        """Delete a session wherever it is; raises DragomanError."""
        session_id, journals = session.session_id, self._journals
        if journals is None:
            await self._agent.delete(session_id)
            return
        has_journal = await journals.has(session_id)
        is_gone = await journals.delete_at_bridge(session_id)
        await journals.hold(session_id)
        try:
            await self._agent.delete(session_id)
        except RemoteError as error:
            is_forgotten = session_id in self._forgotten and busy_session_of(error) is None
            if not is_gone and not is_forgotten:
                raise
        await journals.delete(session_id)
        self.journals_deleted += has_journal

    async def _find_forgotten(self, known: Sequence[v1.SessionInfo], cwd: str | None) -> list[v1.SessionInfo]:
        if self._journals is None:
            return []
        ids = {info.session_id for info in known}
        found = [_describe(stored) for stored in await self._journals.find() if stored.header.id not in ids]
        found = [info for info in found if cwd is None or is_same_directory(info.cwd, cwd)]
        self._forgotten.update(info.session_id for info in found)
        return found


def _describe(stored: StoredJournal) -> v1.SessionInfo:
    updated = datetime.fromtimestamp(stored.updated_ms / 1000, UTC).isoformat()
    return v1.SessionInfo(session_id=stored.header.id, cwd=stored.header.cwd, title=stored.title, updated_at=updated)


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


def _result(deleted: list[FoundSession], journals: int) -> str:
    if len(deleted) == 1:
        [session] = deleted
        if session.info is None:
            return f"There is no session {_name(session)} any more."
        return f"Deleted {_name(session)}{', and its journal at the bridge' * journals}."
    kept = f", and {journals:,} {'journal' if journals == 1 else 'journals'} at the bridge" if journals else ""
    return f"Deleted {len(deleted):,} sessions{kept}."


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
