"""Which session is meant: by its whole id, or by the beginning of it that a list shows."""

from contextlib import aclosing
from pathlib import Path

import msgspec

from dragoman.client import MissingCapability, RemoteAgent
from dragoman.client.problem import Refused
from dragoman.protocol import v1

MOST_NAMED = 5


class Ambiguous(Refused):
    """Several sessions begin like that."""

    def __init__(self, given: str, ids: list[str]) -> None:
        self.given = given
        self.ids = ids
        more = ", …" if len(ids) > MOST_NAMED else ""
        super().__init__(f"several sessions begin with {given!r}: {', '.join(ids[:MOST_NAMED])}{more}; give more of it")


class Found(msgspec.Struct, frozen=True):
    """A session, and what the agent's list says of it, if it is there."""

    session_id: str
    cwd: str
    info: v1.SessionInfo | None = None

    @property
    def additional_directories(self) -> list[str]:
        """The other directories that it works in."""
        return self.info.additional_directories if self.info else []


async def find_session(agent: RemoteAgent, given: str, cwd: str | None = None) -> Found:
    """Return the session that is meant; one that the agent does not list is taken at its word. Raises Ambiguous."""
    try:
        matches = await _look_up(agent, given)
    except MissingCapability:
        matches = []
    if len(matches) > 1:
        raise Ambiguous(given, [info.session_id for info in matches])
    if not matches:
        return Found(given, cwd or str(Path.cwd()))
    [info] = matches
    return Found(info.session_id, cwd or info.cwd, info)


async def _look_up(agent: RemoteAgent, given: str) -> list[v1.SessionInfo]:
    begin_so: dict[str, v1.SessionInfo] = {}
    async with aclosing(agent.list_sessions()) as infos:
        async for info in infos:
            if info.session_id == given:
                return [info]
            if info.session_id.startswith(given):
                begin_so[info.session_id] = info
    return list(begin_so.values())
