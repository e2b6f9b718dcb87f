"""The exit and the end of the stderr of a dead child."""

import asyncio
import os
import signal

import pytest

from dragoman.proc import ProcessExit, Supervisor
from dragoman.proc.pipes import STDERR_TAIL_BYTES
from tests.proc.processes import LOOPS, open_descriptors, python, run
from tests.waiting import until

FLOOD = "import os\nfor n in range(800): os.write(2, b'%063d\\n' % n * 1024)\nos.write(2, b'the end\\n')"


async def died(code):
    async with Supervisor() as supervisor:
        child = await supervisor.start(python(code))
        death = await child.death()
        child.kill()
        return death


async def test_death_reports_the_exit_code_and_the_end_of_stderr():
    death = await died("import sys; sys.exit('no key: set API_KEY')")
    assert (death.exit_code, death.signal) == (1, None)
    assert death.stderr_tail == "no key: set API_KEY\n"
    assert str(death).endswith("exited with code 1; its stderr ends:\nno key: set API_KEY")


async def test_death_reports_the_signal():
    death = await died("import os; os.kill(os.getpid(), 9)")
    assert (death.exit_code, death.signal) == (None, signal.SIGKILL)
    assert "was killed by signal 9 and wrote nothing to stderr" in str(death)


async def test_death_names_the_command_without_arguments():
    async with Supervisor() as supervisor:
        child = await supervisor.start(["false", "--token=secret"])
        assert str(await child.death()) == "false exited with code 1 and wrote nothing to stderr"


async def test_child_that_closed_its_output_but_runs_is_not_reported_dead():
    death = await died("import os, time; os.write(2, b'bye'); os.close(1); time.sleep(300)")
    assert (death.exit_code, death.signal) == (None, None)
    assert "closed its output but still runs" in str(death)
    assert death.stderr_tail == "bye"


async def test_death_does_not_wait_for_other_holders_of_stderr():
    death = await died("import os, sys, time\nos.fork() or time.sleep(300)\nsys.exit('gone')")
    assert (death.exit_code, death.stderr_tail) == (1, "gone\n")


async def test_every_waiter_receives_the_exit():
    async with Supervisor() as supervisor:
        child = await supervisor.start(python("import sys; sys.stdin.read(); sys.exit(3)"))
        waits = [asyncio.create_task(child.wait()) for _ in range(3)]
        await asyncio.sleep(0)
        waits.pop().cancel()
        os.close(child.claim_stdio()[1])
        assert await asyncio.gather(*waits) == [ProcessExit(code=3)] * 2


@pytest.mark.parametrize("loop", LOOPS)
def test_unread_stderr_does_not_block_the_child(loop):
    async def main():
        async with Supervisor() as supervisor:
            child = await supervisor.start(python(FLOOD))
            assert await child.wait() == ProcessExit(code=0)
            assert child.stderr_tail.endswith("\nthe end\n")
            assert len(child.stderr_tail) <= STDERR_TAIL_BYTES
            assert {len(line) for line in child.stderr_tail.splitlines()[:-1]} == {63}

    run(loop, main())


async def test_listener_receives_all_of_stderr():
    seen = bytearray()
    async with Supervisor() as supervisor:
        child = await supervisor.start(python(FLOOD), on_stderr=seen.extend)
        await child.wait()
    assert len(seen) == 800 * 64 * 1024 + len("the end\n")


async def test_listener_that_raises_is_reported_and_stderr_is_still_read():
    reports = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reports.append(context["message"]))

    def listener(data):
        raise ValueError("on purpose")

    async with Supervisor() as supervisor:
        child = await supervisor.start(python(FLOOD), on_stderr=listener)
        assert await child.wait() == ProcessExit(code=0)
        assert child.stderr_tail.endswith("the end\n")
    assert reports == ["on_stderr raised, and will not be called again"]


async def test_stderr_tail_of_one_long_line_replaces_invalid_bytes():
    async with Supervisor() as supervisor:
        child = await supervisor.start(python("import os; os.write(2, b'\\xff' * 40000)"))
        await child.wait()
        assert child.stderr_tail == "\N{REPLACEMENT CHARACTER}" * STDERR_TAIL_BYTES


async def test_a_child_may_close_its_stderr():
    async with Supervisor() as supervisor:
        child = await supervisor.start(python("import os, sys; sys.stdin.readline(); os.close(2); sys.stdin.read()"))
        before = open_descriptors()
        os.write(child.stdin, b"\n")
        await until(lambda: open_descriptors() == before - 1)
        assert await child.stop() == ProcessExit(code=0)
