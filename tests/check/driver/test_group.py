"""Who is left of a process group: those that run, and not those that have ended and were not asked how."""

import os
import subprocess
import sys

from dragoman.check.driver.transport import count_left_behind

LEADER = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]])
os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT) if sys.argv[2] == "ended" else None
print(flush=True)
sys.stdin.read()
"""


def lead(program: str, how: str) -> subprocess.Popen[bytes]:
    """Start a group of two, whose leader holds on to a child that runs or has ended."""
    leader = subprocess.Popen(
        [sys.executable, "-c", LEADER, program, how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert leader.stdout is not None
    leader.stdout.readline()
    return leader


async def test_a_process_that_has_ended_and_was_not_asked_how_is_not_left():
    with lead("", "ended") as leader:
        assert await count_left_behind(leader.pid, 0) == 1
        assert leader.stdin is not None
        leader.stdin.close()


async def test_a_process_that_runs_is_left_until_it_ends():
    with lead("import time; time.sleep(60)", "runs") as leader:
        assert await count_left_behind(leader.pid, 0) == 2
        assert leader.stdin is not None
        leader.stdin.close()
        leader.wait()
        assert await count_left_behind(leader.pid, 0) == 1
        os.killpg(leader.pid, 9)
        assert await count_left_behind(leader.pid, 30) == 0
