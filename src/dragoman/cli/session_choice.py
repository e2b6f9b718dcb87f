"""Earlier sessions that the command line means: by id, by the beginning of one, or the newest of a directory."""

from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path

import msgspec

from dragoman.client import MissingCapability, RemoteAgent
from dragoman.client.problem import Refused
from dragoman.protocol import v1

MOST_NAMED = 5


class AmbiguousSession(Refused):
    """Several sessions begin like that."""

    def __init__(self, given: str, ids: list[str]) -> None:
        self.given = given
        self.ids = ids
        more = ", …" if len(ids) > MOST_NAMED else ""
        super().__init__(f"several sessions begin with {given!r}: {', '.join(ids[:MOST_NAMED])}{more}; give more of it")


class FoundSession(msgspec.Struct, frozen=True):
    """A session, with its entry in the agent's list, if there is one."""

    session_id: str
    cwd: str
    info: v1.SessionInfo | None = None

    @property
    def additional_directories(self) -> list[str]:
        """The other directories that it works in."""
        return self.info.additional_directories if self.info else []


async def find_session(agent: RemoteAgent, given: str, cwd: str | None = None) -> FoundSession:
    """Return the session that is meant; an id that is not in the list is taken as it is. Raises AmbiguousSession."""
    try:
        matches = await _look_up(agent, given)
    except MissingCapability:
        matches = []
    if len(matches) > 1:
        raise AmbiguousSession(given, [info.session_id for info in matches])
    if not matches:
        return FoundSession(given, cwd or str(Path.cwd()))
    [info] = matches
    return FoundSession(info.session_id, cwd or info.cwd, info)


async def find_sessions(agent: RemoteAgent, given: Sequence[str]) -> list[FoundSession]:
    """Return the sessions that are meant, each once; the agent is asked for its list once. Raises AmbiguousSession."""
    if len(given) == 1:
        return [await find_session(agent, given[0])]
    try:
        infos = [info async for info in agent.list_sessions(archived="include")]
    except MissingCapability:
        infos = []
    found = [choose(each, infos) for each in given]
    return list({each.session_id: each for each in found}.values())


def choose(given: str, infos: Sequence[v1.SessionInfo]) -> FoundSession:
    """Return the session of a list that is meant; an id not in it is taken as it is. Raises AmbiguousSession."""
    matches = [info for info in infos if info.session_id == given]
    matches = matches or [info for info in infos if info.session_id.startswith(given)]
    if len(matches) > 1:
        raise AmbiguousSession(given, [info.session_id for info in matches])
    return FoundSession(matches[0].session_id, matches[0].cwd, matches[0]) if matches else FoundSession(given, "")


async def _look_up(agent: RemoteAgent, given: str) -> list[v1.SessionInfo]:
    matches: dict[str, v1.SessionInfo] = {}
    async with aclosing(agent.list_sessions(archived="include")) as infos:
        async for info in infos:
            if info.session_id == given:
                return [info]
            if info.session_id.startswith(given):
                matches[info.session_id] = info
    return list(matches.values())


class NothingToContinue(Refused):
    """There is no session in this directory, or none that can be found."""


async def find_last_session(agent: RemoteAgent, cwd: Path) -> str:
    """Return the id of the session that was used last in a directory; raises NothingToContinue."""
    try:
        found = [info async for info in agent.list_sessions(cwd)]
    except MissingCapability:
        problem = f"{agent.name} cannot list its sessions, so it is not known which was the last"
        raise NothingToContinue(f"{problem}; say --session ID in place of --continue") from None
    if not found:
        raise NothingToContinue(f"{agent.name} has no session in {cwd} to continue; leave --continue out to begin one")
    return max(found, key=lambda info: info.updated_at or "").session_id
