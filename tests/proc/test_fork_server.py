"""The fork server and the monitors: being killed, and finding children."""

import os
import signal
import subprocess
import sys

import pytest

from dragoman.errors import StartError
from dragoman.proc import ProcessExit, Supervisor
from dragoman.proc.fork_server.system import children, scan_children
from tests.proc.processes import TREE, alive, announced, children_of, python
from tests.waiting import until


async def test_children_survive_a_killed_fork_server(tmp_path):
    async with Supervisor() as supervisor:
        first = await supervisor.start([*TREE, str(tmp_path / "pids")])
        pids = await announced(tmp_path / "pids")
        (fork_server,) = children_of(os.getpid())
        os.kill(fork_server, signal.SIGKILL)
        second = await supervisor.start(["cat"])
        assert children_of(os.getpid()) != [fork_server]
        assert all(map(alive, pids))
        assert await first.stop(grace_s=0.05, term_s=0.05) == ProcessExit(signal=signal.SIGKILL)
        assert not any(map(alive, pids))
        assert await second.stop() == ProcessExit(code=0)
    assert children_of(os.getpid()) == []


async def test_killed_monitor_ends_its_tree_and_no_other(tmp_path):
    async with Supervisor() as supervisor:
        other = await supervisor.start(["cat"])
        (fork_server,) = children_of(os.getpid())
        monitors = set(children_of(fork_server))
        child = await supervisor.start([*TREE, str(tmp_path / "pids")])
        pids = await announced(tmp_path / "pids")
        (monitor,) = set(children_of(fork_server)) - monitors
        os.kill(monitor, signal.SIGKILL)
        assert await child.wait() == ProcessExit(signal=signal.SIGKILL)
        await until(lambda: not any(map(alive, pids)))
        assert other.exit is None


async def test_child_cannot_escape_by_killing_its_parent(tmp_path):
    file = tmp_path / "pids"
    code = f"""
import os, signal, time
monitor = os.getppid()
if os.fork() == 0:
    os.setsid()
    open({str(file)!r}, "w").write(str(os.getpid()))
    os.kill(monitor, signal.SIGKILL)
time.sleep(300)
"""
    async with Supervisor() as supervisor:
        child = await supervisor.start(python(code))
        assert await child.wait() == ProcessExit(signal=signal.SIGKILL)
        await until(lambda: file.exists() and file.read_text() != "" and not alive(int(file.read_text())))


async def test_fork_server_ignores_terminal_and_shutdown_signals():
    async with Supervisor() as supervisor:
        child = await supervisor.start(["cat"])
        (fork_server,) = children_of(os.getpid())
        for pid in (fork_server, *children_of(fork_server)):
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
                os.kill(pid, number)
        await (await supervisor.start(["cat"])).stop()
        assert child.exit is None
        assert children_of(os.getpid()) == [fork_server]


async def test_fork_server_runs_only_from_the_first_child_to_the_last():
    async with Supervisor() as supervisor:
        assert children_of(os.getpid()) == []
        await supervisor.start(["cat"])
        assert len(children_of(os.getpid())) == 1
    assert children_of(os.getpid()) == []


async def test_fork_server_that_cannot_start_raises_an_error(monkeypatch):
    async with Supervisor() as supervisor:
        monkeypatch.setattr(sys, "executable", "/bin/false")
        with pytest.raises(StartError, match="the process that should have started it died"):
            await supervisor.start(["cat"])
        monkeypatch.setattr(sys, "executable", "/no/such/python")
        with pytest.raises(StartError, match="No such file"):
            await supervisor.start(["cat"])
        monkeypatch.undo()
        await supervisor.start(["cat"])


def test_children_are_found_with_and_without_kernel_support():
    processes = [subprocess.Popen(["sleep", "300"]) for _ in range(3)]
    try:
        pids = {process.pid for process in processes}
        assert pids <= set(children() or ())
        assert set(scan_children(os.getpid()) or ()) == set(children() or ())
    finally:
        for process in processes:
            process.kill()
            process.wait()
