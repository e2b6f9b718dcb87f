"""A process that starts a tree of stubborn processes and then ends: `python -m tests.proc.host LOOP FILE END`.

It ends in the way that END names, after a line or the end of its stdin. With END `signal`, the test sends a signal.
"""

import asyncio
import os
import sys
import threading

from dragoman.proc import Supervisor
from tests.proc.processes import LOOPS, TREE

LOOP, FILE, END = sys.argv[1:]


async def wait_for_input() -> None:
    loop, arrived = asyncio.get_running_loop(), asyncio.Event()

    def listen() -> None:
        sys.stdin.readline()
        loop.call_soon_threadsafe(arrived.set)

    threading.Thread(target=listen, daemon=True).start()
    await arrived.wait()


async def main() -> None:
    task = asyncio.current_task()
    assert task is not None
    async with Supervisor() as supervisor:
        await supervisor.start([*TREE, FILE])
        if END == "forked":
            fork_holding_everything()
        await wait_for_input()
        if END == "exception":
            raise ValueError("on purpose")
        if END == "cancellation":
            task.cancel()
            await asyncio.sleep(60)
        if END == "sys.exit":
            sys.exit(3)
        if END == "os._exit":
            os._exit(4)


def fork_holding_everything() -> None:
    """Leave a fork of this process that keeps copies of all its descriptors, as multiprocessing may."""
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        threading.Event().wait(300)
        os._exit(0)


with asyncio.Runner(loop_factory=LOOPS[LOOP]) as runner:
    runner.run(main())
