"""The system calls of the fork server and its monitors: child processes, signals and polling."""

# Importing pathlib would cost 8 ms.
# ruff: noqa: PTH112, PTH123, PTH208

import ctypes
import os
import select
import sys

TYPE_CHECKING = False  # importing typing costs 5 ms
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterable
else:
    import _signal as signal

LINE = 0
"""The descriptor of the line to the host."""

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def prctl(option: int, value: int) -> bool:
    """Set an attribute of this process. Return whether this kernel supports it."""
    if not sys.platform.startswith("linux"):
        return False
    return ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0


def open_process(pid: int) -> int | None:
    """Return a descriptor that becomes readable when the host ends, or None if the system has no pidfd."""
    try:
        host = os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
    return host if os.getppid() == pid else None


def reap() -> tuple[dict[int, int], bool]:
    """Reap ended children. Return their statuses by pid, and whether any child is left."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended, False
        if pid == 0:
            return ended, True
        ended[pid] = status


def send(kill: "Callable[[int, int], None]", targets: "Iterable[int]", number: int) -> bool:
    """Send a signal to each target. Return False if no target could be signalled."""
    reached = False
    for target in targets:
        try:
            kill(target, number)
            reached = True
        except (ProcessLookupError, PermissionError):
            continue
    return reached


def children() -> list[int] | None:
    """Return the pids of the children of this process, adopted ones included, or None if the system lists none."""
    me = os.getpid()
    try:
        with open(f"/proc/{me}/task/{me}/children", "rb") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return scan_children(me)


def scan_children(parent: int) -> list[int] | None:
    """Find the children of `parent` by reading all of /proc, for kernels without CONFIG_PROC_CHILDREN."""
    if not os.path.isdir("/proc/self"):
        return None
    found: list[int] = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                # The program's name precedes this in parentheses and may contain any character.
                if int(file.read().rpartition(b")")[2].split()[1]) == parent:
                    found.append(int(name))
        except OSError:
            continue
    return found


def _wake_up(number: int, frame: object) -> None:
    """Do nothing. The existence of a handler makes the signal write to the wakeup descriptor."""


class HostPoll:
    """Waits for the line, a child's exit or the host's end."""

    def __init__(self, host: int | None) -> None:
        self.host = host
        self.is_connected = True
        """False once the host is dead or has closed the line."""
        self._wake, wake = os.pipe()
        for descriptor in (self._wake, wake):
            os.set_blocking(descriptor, False)
        signal.signal(signal.SIGCHLD, _wake_up)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self._poll = select.poll()
        for descriptor in (LINE, self._wake, host):
            if descriptor is not None:
                self._poll.register(descriptor, select.POLLIN)

    def wait(self, timeout_ms: int | None) -> bool:
        """Wait for any of these. Return whether the line has something to read."""
        ready = {descriptor for descriptor, _ in self._poll.poll(timeout_ms)}
        if self._wake in ready:
            os.read(self._wake, 4096)
        if self.host in ready:
            self.disconnect()
        return self.is_connected and LINE in ready

    def disconnect(self) -> None:
        """Record that nothing more will come from the host."""
        if not self.is_connected:
            return
        self.is_connected = False
        self._poll.unregister(LINE)
        if self.host is not None:
            self._poll.unregister(self.host)
