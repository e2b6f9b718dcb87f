"""No child survives its host, however the host ends."""

import os
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager

from tests.proc.processes import HERE, LOOPS, TREE_SIZE, alive, children_of, pids_in, wait_until_gone
from tests.waiting import wait_until


def start_host(loop, end, file):
    command = [sys.executable, "-m", "tests.proc.host", loop, str(file), end]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=HERE.parent.parent, stdin=pipe, stdout=pipe, stderr=pipe)


def fork_server_and_monitors(host):
    (fork_server,) = [pid for pid in children_of(host.pid) if is_fork_server(pid)]
    return [fork_server, *children_of(fork_server)]


def is_fork_server(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return b"import server" in file.read()


@contextmanager
def hosts(folder, *ways):
    """Run hosts concurrently, because each needs seconds to end its tree. Yield each with the pids that must end."""
    with ExitStack() as stack:
        files = [folder / f"pids-{number}" for number in range(len(ways))]
        started = [stack.enter_context(start_host(*way, file)) for way, file in zip(ways, files, strict=True)]
        yield [
            (host, pids_in(file, count=TREE_SIZE) + fork_server_and_monitors(host))
            for host, file in zip(started, files, strict=True)
        ]


def test_no_child_survives_the_host(tmp_path):
    normal = [(loop, "normal") for loop in LOOPS]
    others = [("uvloop", end) for end in ("exception", "cancellation", "sys.exit", "os._exit")]
    with hosts(tmp_path, *normal, *others) as started:
        for host, _ in started:
            host.stdin.close()
        for _, pids in started:
            wait_until_gone(pids)
        for host, _ in started[: len(normal)]:
            assert host.wait() == 0
            assert host.stderr.read() == b""


def test_no_child_survives_a_signalled_host(tmp_path):
    numbers = [signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGABRT]
    with hosts(tmp_path, *[("asyncio", "signal")] * len(numbers)) as started:
        for (host, pids), number in zip(started, numbers, strict=True):
            assert os.getpgid(host.pid) not in {os.getpgid(pid) for pid in pids}
            host.send_signal(number)
        for _, pids in started:
            wait_until_gone(pids)


def test_no_child_survives_if_a_fork_of_the_host_holds_its_descriptors(tmp_path):
    with start_host("asyncio", "forked", tmp_path / "pids") as host:
        fork = int(host.stdout.readline())
        pids = pids_in(tmp_path / "pids", count=TREE_SIZE) + fork_server_and_monitors(host)
        host.kill()
        try:
            wait_until_gone(pids)
            assert alive(fork)
        finally:
            os.kill(fork, signal.SIGKILL)


def test_program_dies_when_host_fork_server_and_monitors_are_killed(
    tmp_path,
):
    with start_host("asyncio", "signal", tmp_path / "pids") as host:
        pids = pids_in(tmp_path / "pids", count=TREE_SIZE)
        (program,) = [pid for pid in pids if os.getpgid(pid) == pid == os.getsid(pid) and stdin_is_a_pipe(pid)]
        for pid in [*fork_server_and_monitors(host), host.pid]:
            os.kill(pid, signal.SIGSTOP)
        for pid in [host.pid, *fork_server_and_monitors(host)]:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not alive(program))
        for pid in pids:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)


def stdin_is_a_pipe(pid):
    return os.readlink(f"/proc/{pid}/fd/0").startswith("pipe:")
