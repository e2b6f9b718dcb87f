"""The supervisor: starts children, owns them, and leaves none behind."""

import asyncio
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from types import TracebackType
from typing import Self

from dragoman.errors import StartError
from dragoman.proc.child import Child
from dragoman.proc.environment import make_environment
from dragoman.proc.line import Line
from dragoman.proc.order import encode_order, explain_errno, read_answer
from dragoman.proc.pipes import Pipes
from dragoman.proc.stderr import Stderr
from dragoman.proc.stewardship import Stewardship

START_TIMEOUT_S = 30.0
"""A start takes milliseconds, but a hundred at once on a busy machine, or a program on a slow network disk, do not."""

START_ATTEMPTS = 2
"""A steward that is killed takes the orders along that it has not read; the next one gets them."""


class Supervisor:
    """Owns every child started through it: use it as an async context manager."""

    def __init__(self) -> None:
        self._stewardship: Stewardship | None = None
        self._children: set[Child] = set()

    async def __aenter__(self) -> Self:
        self._stewardship = Stewardship()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await _finish(asyncio.create_task(self._close()))

    async def start(
        self,
        command: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        inherit: Collection[str] | None = None,
        on_stderr: Callable[[bytes], None] | None = None,
    ) -> Child:
        """Start a program with its own session, a short environment and no descriptor of ours but its stdio.

        Raises CommandNotFound if there is no such program, StartError if it cannot be started.
        """
        directory = _absolute(cwd, command)
        order = encode_order(command, directory, make_environment(env, inherit))
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                pid, line, pipes = await self._launch(command[0], directory, order)
        except TimeoutError:
            raise StartError(command[0], f"it did not start within {START_TIMEOUT_S:.0f} s") from None
        except OSError as error:
            raise StartError(command[0], explain_errno(error.errno or 0)) from None
        stderr = Stderr(pipes.stderr, on_stderr)
        child = Child(
            tuple(command), pid, line, stdin=pipes.stdin, stdout=pipes.stdout, stderr=stderr, on_free=self._forget
        )
        self._children.add(child)
        return child

    async def _launch(self, name: str, cwd: str, order: bytes) -> tuple[int, Line, Pipes]:
        for _ in range(START_ATTEMPTS):
            pipes = Pipes()
            line = Line(pipes.line)
            try:
                answer = await self._order(name, order, line, pipes)
                if pid := read_answer(name, cwd, answer):
                    return pid, line, pipes
            except BaseException:
                line.close()
                pipes.close()
                raise
            pipes.close()
        raise StartError(name, "the process that should have started it died; try again")

    async def _order(self, name: str, order: bytes, line: Line, pipes: Pipes) -> bytes:
        await self._steward(name).hand_over(pipes.theirs)
        pipes.close_theirs()
        answer = await line.order(order)
        self._steward(name)
        return answer

    def _steward(self, name: str) -> Stewardship:
        if self._stewardship is None:
            raise StartError(name, "its supervisor is not open; start processes inside `async with Supervisor()`")
        return self._stewardship

    def _forget(self, child: Child) -> None:
        self._children.discard(child)

    async def _close(self) -> None:
        stewardship, self._stewardship = self._stewardship, None
        try:
            async with asyncio.TaskGroup() as group:
                for child in tuple(self._children):
                    group.create_task(child.stop())
        finally:
            if stewardship is not None:
                await stewardship.end()


async def _finish(task: asyncio.Task[None]) -> None:
    """Wait for a cleanup to its end, and be cancelled only then."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


def _absolute(cwd: str | None, command: Sequence[str]) -> str:
    try:
        return os.path.abspath(cwd or ".")  # noqa: PTH100 -- symlinks stay in it, as a shell has it
    except FileNotFoundError:
        raise StartError("".join(command[:1]), "our own working directory is gone; name one for it") from None
