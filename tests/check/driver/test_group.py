"""The remaining members of a process group are the running ones, not the exited but unreaped ones."""

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
    """Start a group of two. The leader keeps a child that is running or has exited."""
    leader = subprocess.Popen(
        [sys.executable, "-c", LEADER, program, how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert leader.stdout is not None
    leader.stdout.readline()
    return leader


async def test_exited_unreaped_process_is_not_counted():
    with lead("", "ended") as leader:
        assert await count_left_behind(leader.pid, 0) == 1
        assert leader.stdin is not None
        leader.stdin.close()


async def test_running_process_is_counted_until_it_exits():
    with lead("import time; time.sleep(60)", "runs") as leader:
        assert await count_left_behind(leader.pid, 0) == 2
        assert leader.stdin is not None
        leader.stdin.close()
        leader.wait()
        assert await count_left_behind(leader.pid, 0) == 1
        os.killpg(leader.pid, 9)
        assert await count_left_behind(leader.pid, 30) == 0
