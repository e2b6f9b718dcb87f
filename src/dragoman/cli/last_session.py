"""`--continue`: the session of a directory that was used last."""

from pathlib import Path

from dragoman.client import MissingCapability, RemoteAgent
from dragoman.client.problem import Refused


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
