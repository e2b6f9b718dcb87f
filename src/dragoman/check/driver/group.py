"""Who is left of a process group when the process that led it has ended.

A child that was given a session of its own is not of the group: whoever does that means it to go on.
"""

import asyncio
import os
import time
from pathlib import Path

LOOK_S = 0.02
PROCESSES = Path("/proc")
STATE, GROUP = 0, 2
"""Fields of /proc/PID/stat, behind the name of the program."""


async def left_behind(group: int, timeout_s: float) -> int:
    """Count the members of a group, once all are gone or the time is over."""
    until = time.monotonic() + timeout_s
    while _has_members(group) and time.monotonic() < until:  # noqa: ASYNC110 -- processes tell nobody that they end
        await asyncio.sleep(LOOK_S)
    return _count(group) if _has_members(group) else 0


def _has_members(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _count(group: int) -> int:
    """Count the members; where the system has no list of processes, there is one at least."""
    files = PROCESSES.glob("[0-9]*/stat")
    return max(1, sum(fields[GROUP : GROUP + 1] == [str(group)] for fields in map(_fields, files)))


def _fields(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").rpartition(")")[2].split()
    except OSError:  # it has ended meanwhile
        return []
