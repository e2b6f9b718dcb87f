"""A child: a process that we started, its stdio, how it ended, and how to end it."""

import asyncio
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from dragoman.errors import ProcessDied
from dragoman.proc.pipes import PipeReader, Sink, StderrReader, close_all

_T = TypeVar("_T")

STDIN_GRACE_S = 2.0
"""For a child to finish by itself once its stdin is closed, which is how a stdio server is told to end."""

TERM_GRACE_S = 2.0
"""For the processes that are left to clean up after SIGTERM."""

KILL_TIMEOUT_S = 5.0
"""SIGKILL takes milliseconds; only a process stuck in the kernel needs more, and waiting would not help it."""

DEATH_TIMEOUT_S = 1.0
"""Between a closed stdout and the exit that explains it lies the teardown of an interpreter, seldom more."""

TERMINATE: Final = b"T"
KILL: Final = b"K"


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """The end of a process: by itself with a code, or by a signal."""

    code: int | None = None
    signal: int | None = None

    @property
    def signal_name(self) -> str | None:
        """The name of the signal that ended it, such as SIGTERM."""
        if self.signal is None:
            return None
        try:
            return signal.Signals(self.signal).name
        except ValueError:
            return f"signal {self.signal}"


def decode_status(status: int) -> ProcessExit:
    """Read a status as `waitpid` gives it."""
    code = os.waitstatus_to_exitcode(status)
    return ProcessExit(code=code) if code >= 0 else ProcessExit(signal=-code)


KILLED: Final = ProcessExit(signal=signal.SIGKILL)
"""The end of a child whose monitor died without a report: the kernel or the fork server has killed the child."""


class MonitorConnection:
    """Our end of the line to a monitor; `fork_server/__init__.py` describes its messages."""

    def __init__(self, end: socket.socket) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = end
        self._received = b""
        self._answer: asyncio.Future[bytes] = self._loop.create_future()
        self.exited: asyncio.Future[ProcessExit] = self._loop.create_future()
        """Done when the child itself has ended."""
        self.gone: asyncio.Future[None] = self._loop.create_future()
        """Done when none is left of all that the child has started."""
        self._loop.add_reader(end.fileno(), self._receive)

    async def order(self, order: bytes) -> bytes:
        """Send the order to start and return the monitor's answer, which is empty if the monitor died."""
        try:
            await self._loop.sock_sendall(self._socket, order)
        except ConnectionError:
            self.close()
        return await self._answer

    def tell(self, order: bytes) -> None:
        """Send one of the short orders; it always fits, and a monitor that is gone needs none."""
        if self.gone.done():
            return
        try:
            self._socket.send(order)
        except ConnectionError:
            return

    def close(self) -> None:
        """Let go: the monitor kills all that are left."""
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()
        _settle(self._answer, b"")
        _settle(self.exited, KILLED)
        _settle(self.gone, None)

    def _receive(self) -> None:
        try:
            data = self._socket.recv(4096)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        if not data:
            self.close()
            return
        *reports, self._received = (self._received + data).split(b"\n")
        for report in reports:
            self._take_report(report)

    def _take_report(self, report: bytes) -> None:
        if report.startswith(b"exited "):
            _settle(self.exited, decode_status(int(report[7:])))
        else:
            _settle(self._answer, report)


class Child:
    """A process started by a Supervisor, which owns it."""

    def __init__(
        self,
        command: tuple[str, ...],
        pid: int,
        monitor: MonitorConnection,
        *,
        stdin: int,
        stdout: int,
        stderr: StderrReader,
        on_free: Callable[["Child"], None],
    ) -> None:
        self.command = command
        self.pid = pid
        self.stdin = stdin
        """Our end of its stdin, or -1 once closed or taken."""
        self.stdout = stdout
        """Our end of its stdout, or -1 once closed or taken."""
        self._monitor = monitor
        self._stderr = stderr
        self._on_free = on_free
        self._stopping: asyncio.Task[ProcessExit] | None = None
        monitor.exited.add_done_callback(lambda _: stderr.catch_up())  # for callers that look without waiting
        monitor.gone.add_done_callback(lambda _: self._free_if_unused())

    @property
    def stderr_tail(self) -> str:
        """The last 16 KiB of its stderr, whole lines where possible."""
        return self._stderr.tail

    @property
    def exit(self) -> ProcessExit | None:
        """Its end; None while it runs."""
        return self._monitor.exited.result() if self._monitor.exited.done() else None

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

    def read_stdout(self, sink: Sink) -> PipeReader:
        """Close its stdin and read its stdout into `sink`, on the event loop; the caller closes the reader.

        Raises RuntimeError if they were taken or closed before.
        """
        stdout, stdin = self.take_stdio()
        os.close(stdin)
        return PipeReader(stdout, sink)

    async def wait(self) -> ProcessExit:
        """Wait until it has ended; processes that it started may still run."""
        ended = await asyncio.shield(self._monitor.exited)
        self._stderr.catch_up()
        return ended

    async def stop(self, *, grace_s: float = STDIN_GRACE_S, term_s: float = TERM_GRACE_S) -> ProcessExit:
        """End it and all it has started: close stdin, then SIGTERM, then SIGKILL.

        It goes on if the caller is cancelled, and calls at the same time share one run.
        """
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop(grace_s, term_s))
        return await asyncio.shield(self._stopping)

    def kill(self) -> None:
        """Kill it and all it has started, now."""
        self._monitor.tell(KILL)

    async def death(self) -> ProcessDied:
        """Return the error that explains its death, once its stdout has ended."""
        await asyncio.wait({self._monitor.exited}, timeout=DEATH_TIMEOUT_S)
        self._stderr.catch_up()
        ended = self.exit or ProcessExit()
        return ProcessDied(self.command[0], exit_code=ended.code, signal=ended.signal, stderr_tail=self.stderr_tail)

    async def _stop(self, grace_s: float, term_s: float) -> ProcessExit:
        monitor = self._monitor
        try:
            self._close_stdin()
            await asyncio.wait({monitor.exited}, timeout=grace_s)
            for order, timeout_s in ((TERMINATE, term_s), (KILL, KILL_TIMEOUT_S)):
                monitor.tell(order)
                await asyncio.wait({monitor.gone}, timeout=timeout_s)
        finally:
            self._free()
        return monitor.exited.result()

    def _close_stdin(self) -> None:
        if self.stdin >= 0:
            close_all(self.stdin)
            self.stdin = -1

    def _free_if_unused(self) -> None:
        if self._monitor.gone.done() and self.stdin < 0 and self.stdout < 0:
            self._free()

    def _free(self) -> None:
        self._monitor.close()
        self._close_stdin()
        if self.stdout >= 0:
            close_all(self.stdout)
            self.stdout = -1
        self._stderr.close()
        self._on_free(self)


def _settle(future: asyncio.Future[_T], result: _T) -> None:
    if not future.done():
        future.set_result(result)
