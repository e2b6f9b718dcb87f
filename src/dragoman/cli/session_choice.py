"""Finds the earlier session that the command line means: by id, by a prefix of it, or the newest of a directory."""

from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path

import msgspec

from dragoman.client import AgentConnection
from dragoman.client.errors import MissingCapabilityError
from dragoman.client.problem import RequestNotSentError
from dragoman.protocol import v1

MOST_NAMED = 5


class AmbiguousSessionError(RequestNotSentError):
    """Several session ids begin with the given prefix."""

    def __init__(self, name: str, ids: list[str]) -> None:
        self.given = name
        self.ids = ids
        more = ", …" if len(ids) > MOST_NAMED else ""
        super().__init__(
            f"several sessions begin with {name!r}: {', '.join(ids[:MOST_NAMED])}{more}; write more of the id"
        )


class FoundSession(msgspec.Struct, frozen=True):
    """A session, with its entry in the agent's list if it has one."""

    session_id: str
    cwd: str
    info: v1.SessionInfo | None = None

    @property
    def additional_directories(self) -> list[str]:
        """The session's other directories."""
        return self.info.additional_directories if self.info else []


async def find_session(agent: AgentConnection, name: str, cwd: str | None = None) -> FoundSession:
    """Return the session that `name` means. An id that is not listed is used unchanged.

    Raises AmbiguousSessionError.
    """
    try:
        matches = await _look_up(agent, name)
    except MissingCapabilityError:
        matches = []
    if len(matches) > 1:
        raise AmbiguousSessionError(name, [info.session_id for info in matches])
    if not matches:
        return FoundSession(name, cwd or str(Path.cwd()))
    [info] = matches
    return FoundSession(info.session_id, cwd or info.cwd, info)


async def find_sessions(agent: AgentConnection, names: Sequence[str]) -> list[FoundSession]:
    """Return the sessions that are meant, without duplicates. Requests the agent's list only once.

    Raises AmbiguousSessionError.
    """
    if len(names) == 1:
        return [await find_session(agent, names[0])]
    try:
        infos = [info async for info in agent.list_sessions(archived="include")]
    except MissingCapabilityError:
        infos = []
    found = [choose(each, infos) for each in names]
    return list({each.session_id: each for each in found}.values())


def choose(name: str, infos: Sequence[v1.SessionInfo]) -> FoundSession:
    """Choose a session of the list by id or prefix. An unlisted id is used unchanged.

    Raises AmbiguousSessionError.
    """
    matches = [info for info in infos if info.session_id == name]
    matches = matches or [info for info in infos if info.session_id.startswith(name)]
    if len(matches) > 1:
        raise AmbiguousSessionError(name, [info.session_id for info in matches])
    return FoundSession(matches[0].session_id, matches[0].cwd, matches[0]) if matches else FoundSession(name, "")


async def _look_up(agent: AgentConnection, name: str) -> list[v1.SessionInfo]:
    matches: dict[str, v1.SessionInfo] = {}
    async with aclosing(agent.list_sessions(archived="include")) as infos:
        async for info in infos:
            if info.session_id == name:
                return [info]
            if info.session_id.startswith(name):
                matches[info.session_id] = info
    return list(matches.values())


class NothingToContinueError(RequestNotSentError):
    """The directory has no session, or the agent cannot list sessions."""


async def find_last_session(agent: AgentConnection, cwd: Path) -> str:
    """Return the id of the directory's most recently used session. Raises NothingToContinueError."""
    try:
        found = [info async for info in agent.list_sessions(cwd)]
    except MissingCapabilityError:
        problem = f"{agent.name} cannot list its sessions, so its last session is unknown"
        raise NothingToContinueError(f"{problem}; use --session ID instead of --continue") from None
    if not found:
        raise NothingToContinueError(
            f"{agent.name} has no session in {cwd} to continue; leave out --continue to start one"
        )
    return max(found, key=lambda info: info.updated_at or "").session_id
