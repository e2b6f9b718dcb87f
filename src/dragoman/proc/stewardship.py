"""The steward of one supervisor: started at first need, and again should it die."""

import asyncio
import errno
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from dragoman.descriptors import is_open

PROGRAM: Final = Path(__file__).parent / "steward"

BOOTSTRAP: Final = "import sys; sys.path.append(sys.argv[1]); import steward; steward.main()"
"""Imported, it comes out of the bytecode cache; run as a script it would be compiled anew each time (3 ms)."""

LIBRARY_PATHS: Final = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""All of our environment that the steward gets: some Pythons do not start without."""

BLOCKED: Final = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
"""Signals to our group, Ctrl-C above all, which must not reach the steward before it ignores them."""

RETRY_S = 0.005
"""A steward forks in about a millisecond: when its line is full there is room again after this."""

END_TIMEOUT_S = 5.0
"""It ends milliseconds after its last warden; only a process stuck in the kernel makes it wait, and needs no help."""


class Stewardship:
    """Hands descriptors to the steward."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._line: socket.socket | None = None
        self._pids: set[int] = set()

    async def hand_over(self, descriptors: Sequence[int]) -> None:
        """Have a warden made that owns copies of these descriptors."""
        while True:
            try:
                socket.send_fds(self._line or self._start(), [b"\0"], descriptors)
            except BlockingIOError:
                await asyncio.sleep(RETRY_S)
            except ConnectionError:
                self._lose()
                await asyncio.sleep(RETRY_S)
            except OSError as error:
                if error.errno != errno.ETOOMANYREFS:  # too many descriptors are under way
                    raise
                await asyncio.sleep(RETRY_S)
            else:
                return

    async def end(self) -> None:
        """Let go of the steward and wait until it, and so everybody, is gone."""
        self._lose()
        try:
            async with asyncio.timeout(END_TIMEOUT_S):
                while self._reap():  # noqa: ASYNC110 -- no event tells of its end on every system
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
        self._loop.add_reader(ours.fileno(), self._lose)
        self._line = ours
        return ours

    def _lose(self) -> None:
        # The steward says nothing, so that its line is readable means that it has ended.
        if self._line is not None:
            self._loop.remove_reader(self._line.fileno())
            self._line.close()
            self._line = None
        self._reap()

    def _reap(self) -> bool:
        self._pids = {pid for pid in self._pids if _runs(pid)}
        return bool(self._pids)


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


def _runs(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG) == (0, 0)
    except ChildProcessError:  # somebody else in our process has reaped it
        return False
