"""A child: a process that we started, its stdio, how it ended, and how to end it."""

import asyncio
from collections.abc import Callable

from dragoman.errors import ProcessDied
from dragoman.proc.exit import Exit
from dragoman.proc.line import KILL, TERMINATE, Line
from dragoman.proc.pipes import close_all
from dragoman.proc.stderr import Stderr

STDIN_GRACE_S = 2.0
"""For a child to finish by itself once its stdin is closed, which is how a stdio server is told to end."""

TERM_GRACE_S = 2.0
"""For whoever is left to clean up after SIGTERM."""

KILL_TIMEOUT_S = 5.0
"""SIGKILL takes milliseconds; only a process stuck in the kernel needs more, and waiting would not help it."""

DEATH_TIMEOUT_S = 1.0
"""Between a closed stdout and the exit that explains it lies the teardown of an interpreter, seldom more."""


class Child:
    """A process started by a Supervisor, which owns it."""

    def __init__(
        self,
        command: tuple[str, ...],
        pid: int,
        line: Line,
        *,
        stdin: int,
        stdout: int,
        stderr: Stderr,
        on_free: Callable[["Child"], None],
    ) -> None:
        self.command = command
        self.pid = pid
        self.stdin = stdin
        """Our end of its stdin, or -1 once closed or taken."""
        self.stdout = stdout
        """Our end of its stdout, or -1 once closed or taken."""
        self._line = line
        self._stderr = stderr
        self._on_free = on_free
        self._stopping: asyncio.Task[Exit] | None = None
        line.exited.add_done_callback(lambda _: stderr.catch_up())  # for those who look without waiting
        line.gone.add_done_callback(lambda _: self._free_if_unused())

    @property
    def stderr_tail(self) -> str:
        """The last 16 KiB of its stderr, whole lines where possible."""
        return self._stderr.tail

    @property
    def exit(self) -> Exit | None:
        """How it ended, or None while it runs."""
        return self._line.exited.result() if self._line.exited.done() else None

    def take_stdio(self) -> tuple[int, int]:
        """Hand over the descriptors to read its stdout and to write its stdin; the caller closes them.

        Raises RuntimeError if they were taken or closed before.
        """
        if self.stdout < 0 or self.stdin < 0:
            raise RuntimeError(f"the stdio of {self.command[0]} was taken or closed before")
        stdio = self.stdout, self.stdin
        self.stdout = self.stdin = -1
        self._free_if_unused()
        return stdio

    async def wait(self) -> Exit:
        """Wait until it has ended; what it started may still run."""
        ended = await asyncio.shield(self._line.exited)
        self._stderr.catch_up()
        return ended

    async def stop(self, *, grace_s: float = STDIN_GRACE_S, term_s: float = TERM_GRACE_S) -> Exit:
        """End it and all it has started: close stdin, then SIGTERM, then SIGKILL.

        It goes on if the caller is cancelled, and calls at the same time share one run.
        """
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop(grace_s, term_s))
        return await asyncio.shield(self._stopping)

    def kill(self) -> None:
        """Kill it and all it has started, now."""
        self._line.tell(KILL)

    async def death(self) -> ProcessDied:
        """Say how it died, once its stdout has ended."""
        await asyncio.wait({self._line.exited}, timeout=DEATH_TIMEOUT_S)
        self._stderr.catch_up()
        ended = self.exit or Exit()
        return ProcessDied(self.command[0], exit_code=ended.code, signal=ended.signal, stderr_tail=self.stderr_tail)

    async def _stop(self, grace_s: float, term_s: float) -> Exit:
        line = self._line
        try:
            self._close_stdin()
            await asyncio.wait({line.exited}, timeout=grace_s)
            for order, timeout_s in ((TERMINATE, term_s), (KILL, KILL_TIMEOUT_S)):
                line.tell(order)
                await asyncio.wait({line.gone}, timeout=timeout_s)
        finally:
            self._free()
        return line.exited.result()

    def _close_stdin(self) -> None:
        if self.stdin >= 0:
            close_all(self.stdin)
            self.stdin = -1

    def _free_if_unused(self) -> None:
        if self._line.gone.done() and self.stdin < 0 and self.stdout < 0:
            self._free()

    def _free(self) -> None:
        self._line.close()
        self._close_stdin()
        if self.stdout >= 0:
            close_all(self.stdout)
            self.stdout = -1
        self._stderr.close()
        self._on_free(self)
