"""`dragoman sessions delete`: delete sessions by id, by age, or all of them."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from dragoman.bridge.delivery.stored_histories import StoredHistory
from dragoman.cli.agent_choice import served_name
from dragoman.cli.exit_codes import FAILED
from dragoman.cli.failure import busy_session_of
from dragoman.cli.output import print_error, print_json
from dragoman.cli.session_choice import FoundSession, choose, find_sessions
from dragoman.cli.sessions.journals import BridgeJournals, open_journals
from dragoman.client import AgentConnection
from dragoman.client.problem import RequestNotSentError
from dragoman.errors import ConnectionClosedError, DragomanError, RemoteError
from dragoman.home import home
from dragoman.protocol import v1
from dragoman.protocol.decode import encode
from dragoman.protocol.methods import SESSION_DELETE
from dragoman.store import is_same_directory
from dragoman.text import one_line

SHOWN = 10
"""Sessions named in the question. Of further sessions, only the number is shown."""


class NoTerminalError(RequestNotSentError):
    """The user cannot be asked, because stdin is not a terminal."""


async def delete_sessions(
    agent: AgentConnection, options: argparse.Namespace, *, is_own: bool, store: str | None = None
) -> int:
    """Delete the chosen sessions after the user agrees. An error does not stop the other deletions."""
    # Nothing is deleted before the whole selection is known and confirmed. A failure of one session is reported at the
    # end, unless it is the only one or the connection is lost.
    agent.check.method(SESSION_DELETE)
    async with open_journals(home(), store, served_name(options.command), is_own=is_own) as journals:
        deletion = SessionDeletion(agent, None if options.url else journals)
        found = await deletion.choose(options)
        if not found:
            _print_result(options, [], [], "No session matches; nothing was deleted.")
            return 0
        if not options.yes:
            _check_listed(agent, found)
        if not options.yes and not await _confirm(_question(found)):
            print("Nothing was deleted.", file=sys.stderr)
            return FAILED
        deleted: list[FoundSession] = []
        failed: list[tuple[FoundSession, DragomanError]] = []
        for session in found:
            try:
                await deletion.delete(session)
                deleted.append(session)
            except ConnectionClosedError:
                raise
            except DragomanError as error:
                if len(found) == 1:
                    raise
                failed.append((session, error))
        _print_result(options, deleted, failed, _result(deleted, deletion.journals_deleted))
        return FAILED if failed else 0


class UnlistedSessionError(RequestNotSentError):
    """A session to delete is not in the agent's list."""


class SessionDeletion:
    """Deletes an agent's sessions and the bridges' journals of them."""

    def __init__(self, agent: AgentConnection, journals: BridgeJournals | None) -> None:
        """`journals` is None for a bridge's agent, because the bridge deletes its own journals."""
        self.journals_deleted = 0
        self._agent = agent
        self._journals = journals
        self._orphaned: set[str] = set()
        """Sessions that have only a journal. The agent no longer lists them."""

    async def choose(self, options: argparse.Namespace) -> list[FoundSession]:
        """Return the sessions to delete. Raises AmbiguousSessionError."""
        # The agent's list comes first. Sessions that have only a journal are added for our own agent, or if an id that
        # the user named is not in the agent's list.
        if options.words:
            found = await find_sessions(self._agent, options.words)
            if self._journals is None or all(session.info for session in found):
                return found
            stored = await self._find_orphaned([session.info for session in found if session.info], None)
            found = [session if session.info else choose(session.session_id, stored) for session in found]
            return list({session.session_id: session for session in found}.values())
        infos = [info async for info in self._agent.list_sessions(options.cwd, archived="include")]
        if self._journals is not None and self._journals.is_own:
            infos += await self._find_orphaned(infos, options.cwd)
        if options.older_than is not None:
            infos = [info for info in infos if _is_older(info, options.older_than)]
        return [FoundSession(info.session_id, info.cwd, info) for info in infos]

    async def delete(self, session: FoundSession) -> None:
        """Delete a session and its journals. Raises DragomanError."""
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
            is_orphaned = session_id in self._orphaned and busy_session_of(error) is None
            if not is_gone and not is_orphaned:
                raise
        await journals.delete(session_id)
        self.journals_deleted += has_journal

    async def _find_orphaned(self, known: Sequence[v1.SessionInfo], cwd: str | None) -> list[v1.SessionInfo]:
        if self._journals is None:
            return []
        ids = {info.session_id for info in known}
        found = [_describe(stored) for stored in await self._journals.find() if stored.id not in ids]
        found = [info for info in found if cwd is None or is_same_directory(info.cwd, cwd)]
        self._orphaned.update(info.session_id for info in found)
        return found


def _check_listed(agent: AgentConnection, found: Sequence[FoundSession]) -> None:
    """Raise UnlistedSessionError for a session that is not listed, if the agent has a list."""
    missing = next((session for session in found if session.info is None), None)
    if missing is not None and agent.capabilities.session_capabilities.list is not None:
        problem = f"{agent.name} lists no session {missing.session_id!r}; see dragoman sessions list --all"
        raise UnlistedSessionError(f"{problem}. Use --yes to ask the agent to delete it anyway")


def _describe(stored: StoredHistory) -> v1.SessionInfo:
    updated = datetime.fromtimestamp(stored.updated_ms / 1000, UTC).isoformat()
    return v1.SessionInfo(session_id=stored.id, cwd=stored.cwd, title=stored.title, updated_at=updated)


def _is_older(info: v1.SessionInfo, age: timedelta) -> bool:
    """Return whether a session was unused for this long. False if its last use is unknown."""
    try:
        updated = datetime.fromisoformat(info.updated_at or "")
    except ValueError:
        return False
    return datetime.now(UTC) - (updated if updated.tzinfo else updated.replace(tzinfo=UTC)) > age


def _question(found: list[FoundSession]) -> str:
    if len(found) == 1:
        return f"Delete {_name(found[0])} permanently? [y/N] "
    names = "".join(f"  {_name(session)}\n" for session in found[:SHOWN])
    more = f"  and {len(found) - SHOWN:,} more\n" if len(found) > SHOWN else ""
    return f"{names}{more}Delete these {len(found):,} sessions permanently? [y/N] "


def _result(deleted: list[FoundSession], journals: int) -> str:
    if len(deleted) == 1:
        [session] = deleted
        if session.info is None:
            return f"Session {_name(session)} no longer exists."
        return f"Deleted {_name(session)}{', and its journal on the bridge' * journals}."
    kept = f", and {journals:,} {'journal' if journals == 1 else 'journals'} on the bridge" if journals else ""
    return f"Deleted {len(deleted):,} sessions{kept}."


def _print_result(
    options: argparse.Namespace,
    deleted: list[FoundSession],
    failed: list[tuple[FoundSession, DragomanError]],
    text: str,
) -> None:
    for session, error in failed:
        print_error("sessions", f"{_name(session)} was not deleted: {error}")
    if options.format == "json":
        failures = [{"session_id": session.session_id, "error": str(error)} for session, error in failed]
        print_json(encode({"deleted": [session.session_id for session in deleted], "failed": failures}))
    else:
        print(one_line(text))


def _name(found: FoundSession) -> str:
    title = found.info.title if found.info else None
    return one_line(f"{title} ({found.session_id})" if title else found.session_id)


async def _confirm(question: str) -> bool:
    """Ask at the terminal without blocking the loop, so that signals still end it. Raises NoTerminalError."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise NoTerminalError("cannot ask for confirmation: stdin is not a terminal; add --yes")
    print(question, end="", file=sys.stderr, flush=True)
    loop = asyncio.get_running_loop()
    answered = asyncio.Event()
    loop.add_reader(sys.stdin, answered.set)
    try:
        await answered.wait()
    finally:
        loop.remove_reader(sys.stdin)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
