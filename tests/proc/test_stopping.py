"""Stopping a child and all processes that it started."""

import asyncio
import os
import signal

import pytest

from dragoman.proc import ProcessExit, Supervisor
from tests.proc.processes import LOOPS, TREE, alive, announced, children_of, python, read_all, run, wait_until_gone
from tests.waiting import until

SHORT = {"grace_s": 0.05, "term_s": 0.05}
ON_TERM = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: os._exit(5))
print("ready", flush=True)
time.sleep(300)
"""


async def test_child_that_ends_with_its_stdin_receives_no_signal():
    async with Supervisor() as supervisor:
        child = await supervisor.start(python("import sys; sys.stdin.read(); sys.exit(6)"))
        assert child.exit is None
        assert await child.stop() == ProcessExit(code=6)
        assert child.exit == ProcessExit(code=6)


async def test_child_that_ignores_stdin_receives_sigterm():
    async with Supervisor() as supervisor:
        child = await supervisor.start(python(ON_TERM))
        assert await asyncio.to_thread(os.read, child.stdout, 6) == b"ready\n"
        assert await child.stop(grace_s=0.05) == ProcessExit(code=5)


async def test_child_that_ignores_sigterm_receives_sigkill():
    code = ON_TERM.replace("lambda *_: os._exit(5)", "signal.SIG_IGN")
    async with Supervisor() as supervisor:
        child = await supervisor.start(python(code))
        assert await asyncio.to_thread(os.read, child.stdout, 6) == b"ready\n"
        assert await child.stop(**SHORT) == ProcessExit(signal=signal.SIGKILL)


async def test_suspended_child_is_killed():
    async with Supervisor() as supervisor:
        child = await supervisor.start(["sleep", "300"])
        os.kill(child.pid, signal.SIGSTOP)
        assert await child.stop(**SHORT) == ProcessExit(signal=signal.SIGKILL)


@pytest.mark.parametrize("loop", LOOPS)
def test_stop_ends_the_whole_process_tree(tmp_path, loop):
    async def main():
        async with Supervisor() as supervisor:
            child = await supervisor.start([*TREE, str(tmp_path / "pids")])
            pids = await announced(tmp_path / "pids")
            assert await child.stop(**SHORT) == ProcessExit(signal=signal.SIGKILL)
            assert not any(map(alive, pids))

    run(loop, main())


async def test_stop_ends_processes_that_outlive_their_child(tmp_path):
    async with Supervisor() as supervisor:
        child = await supervisor.start([*TREE, str(tmp_path / "pids"), "leave"])
        left = await announced(tmp_path / "pids", 4)
        assert await child.wait() == ProcessExit(code=7)
        assert all(map(alive, left))
        assert await child.stop(**SHORT) == ProcessExit(code=7)
        assert not any(map(alive, left))


async def test_closing_the_supervisor_ends_processes_that_outlive_their_child(tmp_path):
    async with Supervisor() as supervisor:
        child = await supervisor.start([*TREE, str(tmp_path / "pids"), "leave"])
        left = await announced(tmp_path / "pids", 4)
        for descriptor in child.claim_stdio():
            os.close(descriptor)
        assert await child.wait() == ProcessExit(code=7)
    assert not any(map(alive, left))


async def test_remaining_processes_may_clean_up_after_sigterm(tmp_path):
    done = tmp_path / "done"
    code = ON_TERM.replace("os._exit(5)", f"(open({str(done)!r}, 'w').close(), os._exit(0))")
    code = f"import os\nif os.fork(): os._exit(0)\nos.setsid()\n{code}"
    async with Supervisor() as supervisor:
        child = await supervisor.start(python(code))
        assert await asyncio.to_thread(os.read, child.stdout, 6) == b"ready\n"
        await child.stop(grace_s=0.05)
    assert done.exists()


async def test_stopping_one_child_does_not_affect_others(tmp_path):
    async with Supervisor() as supervisor:
        one = await supervisor.start([*TREE, str(tmp_path / "one")])
        other = await supervisor.start([*TREE, str(tmp_path / "other")])
        ones, others = await announced(tmp_path / "one"), await announced(tmp_path / "other")
        await one.stop(**SHORT)
        assert not any(map(alive, ones))
        assert all(map(alive, others))
        other.kill()
    assert not any(map(alive, others))


async def test_kill_ends_the_whole_tree_at_once(tmp_path):
    async with Supervisor() as supervisor:
        child = await supervisor.start([*TREE, str(tmp_path / "pids")])
        pids = await announced(tmp_path / "pids")
        child.kill()
        assert await child.wait() == ProcessExit(signal=signal.SIGKILL)
        await until(lambda: not any(map(alive, pids)))
        child.kill()
        assert await child.stop() == ProcessExit(signal=signal.SIGKILL)
        child.kill()


async def test_endlessly_forking_processes_are_all_killed(tmp_path):
    file = tmp_path / "pids"
    code = f"""
import os, time
while True:
    file = os.open({str(file)!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, b"%d\\n" % os.getpid())
    os.close(file)
    if os.fork():
        time.sleep(0.01)
        os._exit(0)
    os.setsid()
"""
    async with Supervisor() as supervisor:
        child = await supervisor.start(python(code))
        await announced(file, 10)
        await child.stop(**SHORT)
        pids = [int(pid) for pid in file.read_text().split()]
        assert not any(map(alive, pids))


async def test_concurrent_stops_are_one_stop():
    async with Supervisor() as supervisor:
        child = await supervisor.start(["cat"])
        assert await asyncio.gather(*(child.stop() for _ in range(10))) == [ProcessExit(code=0)] * 10
        assert await child.stop() == ProcessExit(code=0)
        assert await child.wait() == ProcessExit(code=0)


async def test_children_are_stopped_in_parallel_when_the_supervisor_closes(tmp_path):
    """One after another, these stops would take 80 seconds, more than the time limit of a test."""
    async with Supervisor() as supervisor:
        children = await asyncio.gather(*(supervisor.start(["sleep", "300"]) for _ in range(40)))
    assert [child.exit for child in children] == [ProcessExit(signal=signal.SIGTERM)] * 40


async def test_cancelled_stop_continues(tmp_path):
    async with Supervisor() as supervisor:
        child = await supervisor.start([*TREE, str(tmp_path / "pids")])
        pids = await announced(tmp_path / "pids")
        stop = asyncio.create_task(child.stop(**SHORT))
        await asyncio.sleep(0)
        stop.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stop
        await until(lambda: not any(map(alive, pids)))
        assert await child.wait() == ProcessExit(signal=signal.SIGKILL)


async def test_supervisor_cancelled_while_closing_still_ends_every_child(tmp_path):
    async def main():
        async with Supervisor() as supervisor:
            child = await supervisor.start([*TREE, str(tmp_path / "pids")])
            pids.extend(await announced(tmp_path / "pids"))
            stop = asyncio.create_task(child.stop(**SHORT))
            await asyncio.sleep(0)
        await stop

    pids: list[int] = []
    task = asyncio.create_task(main())
    await until(lambda: len(pids) == 5)
    for _ in range(3):
        await asyncio.sleep(0)
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not any(map(alive, pids))
    assert children_of(os.getpid()) == []


@pytest.mark.parametrize("loop", LOOPS)
def test_no_child_survives_if_the_loop_ends_during_a_stop(tmp_path, loop):
    async def main():
        supervisor = await Supervisor().__aenter__()
        child = await supervisor.start([*TREE, str(tmp_path / "pids")])
        pids.extend(await announced(tmp_path / "pids"))
        stops.append(asyncio.create_task(child.stop()))
        await until(lambda: child.stdin == -1)  # the stop has begun: it closed the child's stdin
        supervisors.append(supervisor)

    pids: list[int] = []
    stops: list[asyncio.Task[ProcessExit]] = []
    supervisors: list[Supervisor] = []
    run(loop, main())
    wait_until_gone(pids)
    asyncio.run(supervisors.pop().__aexit__(None, None, None))


async def test_stop_does_not_close_claimed_stdio():
    async with Supervisor() as supervisor:
        child = await supervisor.start(["cat"])
        stdout, stdin = child.claim_stdio()
        assert (child.stdin, child.stdout) == (-1, -1)
        with pytest.raises(RuntimeError, match="already in use"):
            child.claim_stdio()
        os.write(stdin, b"still here")
        os.close(stdin)
        assert await child.stop() == ProcessExit(code=0)
        assert await read_all(stdout) == b"still here"


async def test_child_that_floods_an_unread_stdout_can_be_stopped():
    async with Supervisor() as supervisor:
        child = await supervisor.start(python("import os\nwhile True: os.write(1, bytes(65536))"))
        assert await child.stop(**SHORT) == ProcessExit(signal=signal.SIGTERM)


async def test_orphaned_processes_are_reaped_while_the_child_runs():
    code = "import os, sys\nfor _ in range(20): os.fork() or (os.fork() and os._exit(0)) or os._exit(0)\n"
    code += "print('ready', flush=True); sys.stdin.read()"
    async with Supervisor() as supervisor:
        child = await supervisor.start(python(code))
        assert await asyncio.to_thread(os.read, child.stdout, 6) == b"ready\n"
        (fork_server,) = children_of(os.getpid())
        (monitor,) = children_of(fork_server)
        await until(lambda: children_of(monitor) == [child.pid])
