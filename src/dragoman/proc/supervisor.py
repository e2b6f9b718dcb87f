"""The supervisor starts children, owns them, and leaves none behind.

A separate process, the fork server, starts the children. `fork_server/__init__.py` says how and why.
"""

import asyncio
import errno
import os
import signal
import socket
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from dragoman.cancellation import finish
from dragoman.descriptors import is_open
from dragoman.errors import StartError
from dragoman.proc.child import Child, MonitorConnection
from dragoman.proc.command import encode_order, explain_errno, make_environment, read_answer
from dragoman.proc.pipes import ChildPipes, StderrReader

START_TIMEOUT_S = 30.0
"""A start takes milliseconds, except for a hundred at once on a busy machine or a program on a slow network disk."""

START_ATTEMPTS = 2
"""A fork server that is killed loses the orders that it has not read. The next fork server then receives them."""

PROGRAM: Final = Path(__file__).parent / "fork_server"

BOOTSTRAP: Final = "import sys; sys.path.append(sys.argv[1]); import server; server.main()"
"""Imports the server from the bytecode cache. A script would be compiled each time (3 ms)."""

LIBRARY_PATHS: Final = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""The only variables that the fork server inherits. Some Pythons do not start without them."""

BLOCKED: Final = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
"""Signals to our process group, such as Ctrl-C. They must not reach the fork server before it ignores them."""

RETRY_S = 0.005
"""How long to wait when the connection to the fork server is full. It forks in about a millisecond."""

END_TIMEOUT_S = 5.0
"""The fork server ends milliseconds after its last monitor. Only a process stuck in the kernel delays it."""


class ForkServerProcess:
    """The fork server of one supervisor. It starts at first use, and again if it dies."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._line: socket.socket | None = None
        self._pids: set[int] = set()

    async def hand_over(self, descriptors: Sequence[int]) -> None:
        """Send descriptors to the fork server, which forks a monitor that owns copies of them."""
        while True:
            try:
                socket.send_fds(self._line or self._start(), [b"\0"], descriptors)
            except BlockingIOError:
                await asyncio.sleep(RETRY_S)
            except ConnectionError:
                self._disconnect()
                await asyncio.sleep(RETRY_S)
            except OSError as error:
                if error.errno != errno.ETOOMANYREFS:  # too many descriptors are in flight
                    raise
                await asyncio.sleep(RETRY_S)
            else:
                return

    async def end(self) -> None:
        """Disconnect from the fork server and wait until it has ended, and every child with it."""
        self._disconnect()
        try:
            async with asyncio.timeout(END_TIMEOUT_S):
                while self._reap():  # noqa: ASYNC110 -- no event reports its end on every system
                    await asyncio.sleep(RETRY_S)
        except TimeoutError:
            return

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            try:
                self._pids.add(_spawn(theirs.fileno()))
            except BaseException:
                ours.close()
                raise
        ours.setblocking(False)
        self._loop.add_reader(ours.fileno(), self._disconnect)
        self._line = ours
        return ours

    def _disconnect(self) -> None:
        # The fork server sends nothing, so a readable line means that it has ended.
        if self._line is not None:
            self._loop.remove_reader(self._line.fileno())
            self._line.close()
            self._line = None
        self._reap()

    def _reap(self) -> bool:
        self._pids = {pid for pid in self._pids if _is_running(pid)}
        return bool(self._pids)


class Supervisor:
    """Owns every child that it starts. Use it as an async context manager."""

    def __init__(self) -> None:
        self._fork_server: ForkServerProcess | None = None
        self._children: set[Child] = set()

    async def __aenter__(self) -> Self:
        self._fork_server = ForkServerProcess()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await finish(self._close())

    async def start(
        self,
        command: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        inherit: Collection[str] | None = None,
        on_stderr: Callable[[bytes], None] | None = None,
    ) -> Child:
        """Start a program in its own session, with a short environment. Its stdio are its only descriptors from us.

        Raises CommandNotFoundError if the program does not exist, and StartError if it cannot be started.
        """
        directory = _absolute(cwd, command)
        order = encode_order(command, directory, make_environment(env, inherit))
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                pid, monitor, pipes = await self._launch(command[0], directory, order)
        except TimeoutError:
            raise StartError(command[0], f"it did not start within {START_TIMEOUT_S:.0f} s") from None
        except OSError as error:
            raise StartError(command[0], explain_errno(error.errno or 0)) from None
        stderr = StderrReader(pipes.stderr, on_stderr)
        child = Child(
            tuple(command), pid, monitor, stdin=pipes.stdin, stdout=pipes.stdout, stderr=stderr, on_free=self._forget
        )
        self._children.add(child)
        return child

    async def _launch(self, name: str, cwd: str, order: bytes) -> tuple[int, MonitorConnection, ChildPipes]:
        for _ in range(START_ATTEMPTS):
            pipes = ChildPipes()
            monitor = MonitorConnection(pipes.line)
            try:
                answer = await self._order(name, order, monitor, pipes)
                if pid := read_answer(name, cwd, answer):
                    return pid, monitor, pipes
            except BaseException:
                monitor.close()
                pipes.close()
                raise
            pipes.close()
        raise StartError(name, "the process that should have started it died. Try again")

    async def _order(self, name: str, order: bytes, monitor: MonitorConnection, pipes: ChildPipes) -> bytes:
        await self._require_fork_server(name).hand_over(pipes.theirs)
        pipes.close_child_ends()
        answer = await monitor.order(order)
        self._require_fork_server(name)
        return answer

    def _require_fork_server(self, name: str) -> ForkServerProcess:
        if self._fork_server is None:
            raise StartError(name, "its supervisor is not open; start processes inside `async with Supervisor()`")
        return self._fork_server

    def _forget(self, child: Child) -> None:
        self._children.discard(child)

    async def _close(self) -> None:
        fork_server, self._fork_server = self._fork_server, None
        try:
            async with asyncio.TaskGroup() as group:
                for child in tuple(self._children):
                    group.create_task(child.stop())
        finally:
            if fork_server is not None:
                await fork_server.end()


def _absolute(cwd: str | None, command: Sequence[str]) -> str:
    try:
        return os.path.abspath(cwd or ".")  # noqa: PTH100 -- keeps symlinks, as a shell does
    except FileNotFoundError:
        raise StartError("".join(command[:1]), "the current working directory no longer exists. Pass a cwd") from None


def _spawn(line: int) -> int:
    actions: list[tuple[int, int, int] | tuple[int, int, str, int, int]] = [
        (os.POSIX_SPAWN_DUP2, line, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
    ]
    if not is_open(2):
        actions.append((os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0))
    arguments = [sys.executable, "-I", "-S", "-c", BOOTSTRAP, str(PROGRAM), str(os.getpid())]
    environment = {name: os.environ[name] for name in LIBRARY_PATHS if name in os.environ}
    return os.posix_spawn(sys.executable, arguments, environment, file_actions=actions, setsigmask=BLOCKED)


def _is_running(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG) == (0, 0)
    except ChildProcessError:  # other code in our process has reaped it
        return False
