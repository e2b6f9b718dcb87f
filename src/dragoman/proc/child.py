"""A child process: its stdio, how it ended, and how to end it."""

import asyncio
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from dragoman.errors import ProcessDiedError
from dragoman.proc.pipes import PipeReader, Sink, StderrReader, close_all

_T = TypeVar("_T")

STDIN_GRACE_S = 2.0
"""How long a child may take to finish after its stdin is closed, which asks a stdio server to end."""

TERM_GRACE_S = 2.0
"""How long the remaining processes may take to clean up after SIGTERM."""

KILL_TIMEOUT_S = 5.0
"""How long SIGKILL may take. It needs milliseconds. A process stuck in the kernel cannot be helped by waiting."""

DEATH_TIMEOUT_S = 1.0
"""How long to wait for an exit after stdout was closed. Between them is only the teardown of an interpreter."""

TERMINATE: Final = b"T"
KILL: Final = b"K"


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """How a process ended: with an exit code, or by a signal."""

    code: int | None = None
    signal: int | None = None

    @property
    def signal_name(self) -> str | None:
        """The name of the signal that ended the process, such as SIGTERM."""
        if self.signal is None:
            return None
        try:
            return signal.Signals(self.signal).name
        except ValueError:
            return f"signal {self.signal}"


def decode_status(status: int) -> ProcessExit:
    """Decode a status that `waitpid` returned."""
    code = os.waitstatus_to_exitcode(status)
    return ProcessExit(code=code) if code >= 0 else ProcessExit(signal=-code)


KILLED: Final = ProcessExit(signal=signal.SIGKILL)
"""The exit of a child whose monitor died without a report. The kernel or the fork server has killed the child."""


class MonitorConnection:
    """Our end of the connection to a monitor. `fork_server/__init__.py` describes its messages."""

    def __init__(self, end: socket.socket) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = end
        self._received = b""
        self._answer: asyncio.Future[bytes] = self._loop.create_future()
        self.exited: asyncio.Future[ProcessExit] = self._loop.create_future()
        """Done when the child itself has ended."""
        self.gone: asyncio.Future[None] = self._loop.create_future()
        """Done when no process that the child started is left."""
        self._loop.add_reader(end.fileno(), self._receive)

    async def order(self, order: bytes) -> bytes:
        """Send the order to start. Return the monitor's answer, or empty bytes if the monitor died."""
        try:
            await self._loop.sock_sendall(self._socket, order)
        except ConnectionError:
            self.close()
        return await self._answer

    def send(self, order: bytes) -> None:
        """Send a short order, which always fits. Do nothing if the monitor is gone."""
        if self.gone.done():
            return
        try:
            self._socket.send(order)
        except ConnectionError:
            return

    def close(self) -> None:
        """Close the connection. The monitor then kills all processes that are left."""
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
            self._handle_report(report)

    def _handle_report(self, report: bytes) -> None:
        if report.startswith(b"exited "):
            _settle(self.exited, decode_status(int(report[7:])))
        else:
            _settle(self._answer, report)


class Child:
    """A process that a Supervisor started and owns."""

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
        """Our end of its stdin, or -1 once closed or claimed."""
        self.stdout = stdout
        """Our end of its stdout, or -1 once closed or claimed."""
        self._monitor = monitor
        self._stderr = stderr
        self._on_free = on_free
        self._stopping: asyncio.Task[ProcessExit] | None = None
        monitor.exited.add_done_callback(lambda _: stderr.catch_up())  # for callers that read the tail without waiting
        monitor.gone.add_done_callback(lambda _: self._free_if_unused())

    @property
    def stderr_tail(self) -> str:
        """The last 16 KiB of its stderr, in whole lines if possible."""
        return self._stderr.tail

    @property
    def exit(self) -> ProcessExit | None:
        """How it ended. None while it runs."""
        return self._monitor.exited.result() if self._monitor.exited.done() else None

    def claim_stdio(self) -> tuple[int, int]:
        """Return the descriptors for reading its stdout and writing its stdin. The caller must close them.

        Raises RuntimeError if they were already claimed or closed.
        """
        if self.stdout < 0 or self.stdin < 0:
            raise RuntimeError(f"the stdio of {self.command[0]} is already in use or closed")
        stdio = self.stdout, self.stdin
        self.stdout = self.stdin = -1
        self._free_if_unused()
        return stdio

    def read_stdout(self, sink: Sink) -> PipeReader:
        """Close its stdin and read its stdout into `sink` on the event loop. The caller must close the reader.

        Raises RuntimeError if stdin and stdout were already claimed or closed.
        """
        stdout, stdin = self.claim_stdio()
        os.close(stdin)
        return PipeReader(stdout, sink)

    async def wait(self) -> ProcessExit:
        """Wait until the process has ended. Processes that it started may still run."""
        ended = await asyncio.shield(self._monitor.exited)
        self._stderr.catch_up()
        return ended

    async def stop(self, *, grace_s: float = STDIN_GRACE_S, term_s: float = TERM_GRACE_S) -> ProcessExit:
        """End the process and all that it started: close stdin, then send SIGTERM, then SIGKILL.

        The stop continues if the caller is cancelled. Concurrent calls share one stop.
        """
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop(grace_s, term_s))
        return await asyncio.shield(self._stopping)

    def kill(self) -> None:
        """Kill the process and all that it started, at once."""
        self._monitor.send(KILL)

    async def death(self) -> ProcessDiedError:
        """Return the error that explains the death of the process, after its stdout has ended."""
        await asyncio.wait({self._monitor.exited}, timeout=DEATH_TIMEOUT_S)
        self._stderr.catch_up()
        ended = self.exit or ProcessExit()
        return ProcessDiedError(
            self.command[0], exit_code=ended.code, signal=ended.signal, stderr_tail=self.stderr_tail
        )

    async def _stop(self, grace_s: float, term_s: float) -> ProcessExit:
        monitor = self._monitor
        try:
            self._close_stdin()
            await asyncio.wait({monitor.exited}, timeout=grace_s)
            for order, timeout_s in ((TERMINATE, term_s), (KILL, KILL_TIMEOUT_S)):
                monitor.send(order)
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
