"""The cost of the sandbox: `true` as our agent runs it, with and without the sandbox, and `bwrap` by itself.

The session's directory has a Git repository and a thousand files, which the sandbox searches for those to protect.
"""

import asyncio
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from bench.measure import Measure, MissingError
from bench.size import size
from dragoman.proc import Supervisor
from dragoman.sandbox.bubblewrap import find_program
from dragoman.sandbox.sandbox import Sandbox, find_problem

COMMANDS = size(50, 2)
FILES = size(1_000, 10)

BARE = "without the sandbox"
SANDBOXED = "in the sandbox"
BWRAP = "bwrap by itself"

TRUE = ["/bin/sh", "-c", "true"]
BARE_BWRAP = ["--ro-bind", "/", "/", "--unshare-all", "--dev", "/dev", "--proc", "/proc"]


def bare(_: Path) -> list[str]:
    return TRUE


def sandboxed(directory: Path) -> list[str]:
    return Sandbox("workspace", [str(directory)]).wrap(TRUE, str(directory))


def in_bwrap(_: Path) -> list[str]:
    program = find_program()
    if program is None:
        raise MissingError("bwrap is not installed")
    return [program, *BARE_BWRAP, *TRUE]


def run(make_command: Callable[[Path], list[str]]) -> float:
    """Return the milliseconds per command."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        subprocess.run(["git", "init", "-q", name], check=True)
        for number in range(FILES):
            (directory / f"{number}.py").touch()
        return asyncio.run(_run(make_command, directory))


async def _run(make_command: Callable[[Path], list[str]], directory: Path) -> float:
    async with Supervisor() as supervisor:
        if make_command is not bare and (problem := await find_problem(supervisor)) is not None:
            raise MissingError(problem)
        started = perf_counter()
        for _ in range(COMMANDS):
            child = await supervisor.start(make_command(directory), cwd=str(directory))
            if (await child.stop(grace_s=60)).code != 0:
                raise RuntimeError(child.stderr_tail)
        return 1_000 * (perf_counter() - started) / COMMANDS


MEASURES = (
    Measure(
        part="sandbox",
        title="a command that does nothing",
        unit="ms",
        contenders={BARE: lambda: run(bare), SANDBOXED: lambda: run(sandboxed), BWRAP: lambda: run(in_bwrap)},
        targets=(),
        ratios=((SANDBOXED, BARE), (SANDBOXED, BWRAP)),
        rounds=9,
        quick_rounds=3,
    ),
)
