"""However we die, nobody whom we started stays."""

import os
import signal
import subprocess
import sys

import pytest

from tests.proc.processes import HERE, LOOPS, TREE_SIZE, alive, children_of, pids_in, wait_until, wait_until_gone


def start_host(loop, file, end):
    command = [sys.executable, str(HERE / "host.py"), loop, str(file), end]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def steward_and_wardens(host):
    (steward,) = [pid for pid in children_of(host.pid) if is_steward(pid)]
    return [steward, *children_of(steward)]


def is_steward(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return b"import steward" in file.read()


@pytest.mark.parametrize("end", ["exception", "cancellation", "sys.exit", "os._exit"])
def test_nobody_stays_when_the_host_ends_by_its_own_doing(tmp_path, end):
    with start_host("uvloop", tmp_path / "pids", end) as host:
        pids = pids_in(tmp_path / "pids", count=TREE_SIZE) + steward_and_wardens(host)
        host.stdin.write(b"now\n")
        host.stdin.flush()
        wait_until_gone(pids)


@pytest.mark.parametrize("loop", LOOPS)
def test_nobody_stays_when_the_host_ends_normally_with_its_stdin(tmp_path, loop):
    with start_host(loop, tmp_path / "pids", "normal") as host:
        pids = pids_in(tmp_path / "pids", count=TREE_SIZE) + steward_and_wardens(host)
        host.stdin.close()
        wait_until_gone(pids)
        assert host.wait() == 0
        assert host.stderr.read() == b""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGABRT])
def test_nobody_stays_when_the_host_is_ended_by_a_signal(tmp_path, number):
    with start_host("asyncio", tmp_path / "pids", "signal") as host:
        pids = pids_in(tmp_path / "pids", count=TREE_SIZE) + steward_and_wardens(host)
        host.send_signal(number)
        wait_until_gone(pids)


def test_nobody_stays_when_a_fork_of_the_killed_host_still_holds_its_descriptors(tmp_path):
    with start_host("asyncio", tmp_path / "pids", "forked") as host:
        fork = int(host.stdout.readline())
        pids = pids_in(tmp_path / "pids", count=TREE_SIZE) + steward_and_wardens(host)
        host.kill()
        try:
            wait_until_gone(pids)
            assert alive(fork)
        finally:
            os.kill(fork, signal.SIGKILL)


def test_nobody_stays_when_host_and_steward_and_wardens_are_all_killed_but_for_whom_the_warden_had_adopted(tmp_path):
    with start_host("asyncio", tmp_path / "pids", "signal") as host:
        pids = pids_in(tmp_path / "pids", count=TREE_SIZE)
        (program,) = [pid for pid in pids if os.getpgid(pid) == pid == os.getsid(pid) and stdin_is_a_pipe(pid)]
        for pid in [*steward_and_wardens(host), host.pid]:
            os.kill(pid, signal.SIGSTOP)
        for pid in [host.pid, *steward_and_wardens(host)]:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not alive(program))
        for pid in pids:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)


def stdin_is_a_pipe(pid):
    return os.readlink(f"/proc/{pid}/fd/0").startswith("pipe:")


def test_keyboard_interrupt_of_the_terminal_does_not_reach_children_or_steward(tmp_path):
    with start_host("asyncio", tmp_path / "pids", "signal") as host:
        pids = pids_in(tmp_path / "pids", count=TREE_SIZE)
        groups = {os.getpgid(pid) for pid in (*pids, *steward_and_wardens(host))}
        assert os.getpgid(host.pid) not in groups
        host.kill()
        wait_until_gone(pids)
