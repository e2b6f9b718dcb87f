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

DEAD = ("Z", "X")
"""States of a process that has ended, and whose parent has not asked how: in a container, nobody may ever ask."""


async def left_behind(group: int, timeout_s: float) -> int:
    """Count the members of a group, once all are gone or the time is over."""
    until = time.monotonic() + timeout_s
    while (count := _count(group)) and time.monotonic() < until:  # noqa: ASYNC110 -- processes tell nobody that they end
        await asyncio.sleep(LOOK_S)
    return count


def _count(group: int) -> int:
    """Count the members that run; where the system has no list of processes, all of them are one."""
    if not _has_members(group):
        return 0
    if not PROCESSES.is_dir():
        return 1
    members = [fields for fields in map(_fields, PROCESSES.glob("[0-9]*/stat")) if fields[GROUP:][:1] == [str(group)]]
    return sum(fields[STATE] not in DEAD for fields in members)


def _has_members(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _fields(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").rpartition(")")[2].split()
    except OSError:  # it has ended meanwhile
        return []
