"""Programs that the tests of `proc` start, and functions that inspect processes from outside."""

import asyncio
import gc
import os
import sys
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path

import uvloop

from tests.waiting import until, wait_until

HERE = Path(__file__).parent
TREE = [sys.executable, str(HERE / "tree.py")]
TREE_SIZE = 5

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}

UNRELATED: set[int] = set()
"""Children of this process that do not belong to a test."""


def run(loop: str, main: Coroutine[None, None, None]) -> None:
    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(main)


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def children_of(pid: int) -> list[int]:
    """Return the children of a process. For our own process, omit the unrelated ones."""
    return [child for child in _children_of(pid) if child not in UNRELATED]


def record_unrelated_children() -> None:
    """Record the children that exist before a test, such as the browser that other tests of this worker share."""
    UNRELATED.clear()
    UNRELATED.update(_children_of(os.getpid()))


def _children_of(pid: int) -> list[int]:
    """Return the children of all threads of a process."""
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended and has no children
            found += map(int, (thread / "children").read_text().split())
    return found


def open_descriptors() -> int:
    gc.collect()  # otherwise objects of earlier tests could be freed during this one
    return len(os.listdir("/proc/self/fd"))


def pids_in(file: Path, *, count: int) -> list[int]:
    """Return the pids that a tree has announced, once all of them have."""
    wait_until(lambda: len(_lines(file)) >= count)
    return [int(line) for line in _lines(file)]


def _lines(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []


def wait_until_gone(pids: list[int]) -> None:
    wait_until(lambda: not any(alive(pid) for pid in pids))


async def announced(file: Path, count: int = TREE_SIZE) -> list[int]:
    await until(lambda: len(_lines(file)) >= count)
    return [int(line) for line in _lines(file)]


async def read_all(descriptor: int) -> bytes:
    """Read a blocking descriptor to its end in a thread."""

    def read() -> bytes:
        with os.fdopen(descriptor, "rb") as file:
            return file.read()

    return await asyncio.to_thread(read)
