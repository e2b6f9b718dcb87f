"""Programs for the tests of `proc` to start, and processes seen from outside."""

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

STRANGERS: set[int] = set()
"""Children of ours that have nothing to do with a test."""


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
    """The children of a process; of our own, those that the test has to do with."""
    return [child for child in _children_of(pid) if child not in STRANGERS]


def note_strangers() -> None:
    """Take note of children that are there before a test: the browser that other tests of this worker share."""
    STRANGERS.clear()
    STRANGERS.update(_children_of(os.getpid()))


def _children_of(pid: int) -> list[int]:
    """The children of all threads of a process."""
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended meanwhile has no children
            found += map(int, (thread / "children").read_text().split())
    return found


def open_descriptors() -> int:
    gc.collect()  # what earlier tests left does not go in the middle of this one
    return len(os.listdir("/proc/self/fd"))


def pids_in(file: Path, *, count: int) -> list[int]:
    """The pids that a tree has announced, once all have."""
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
    """Read a blocking descriptor to its end, beside the loop."""

    def read() -> bytes:
        with os.fdopen(descriptor, "rb") as file:
            return file.read()

    return await asyncio.to_thread(read)
