"""The monitor of one child starts it, reports how it ended, and ends all that it started."""

import os

TYPE_CHECKING = False  # importing typing costs 5 ms
if TYPE_CHECKING:
    import signal
    from typing import NoReturn

    from dragoman.proc.fork_server.system import (
        LINE,
        PR_SET_CHILD_SUBREAPER,
        PR_SET_PDEATHSIG,
        HostPoll,
        children,
        prctl,
        reap,
        send,
    )
else:
    import _signal as signal

    from system import LINE, PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG, HostPoll, children, prctl, reap, send

RETRY_MS = 50
"""The time between two rounds of SIGKILL. A death starts the next round at once, so this covers missed processes."""

GROUP_POLL_MS = 1000
"""Without a subreaper, nothing reports the end of a group's last process, so poll once per second."""


class ChildMonitor:
    """Starts one child, reports how it ended, and ends all that it started."""

    def __init__(self, host: int | None, *, is_subreaper: bool) -> None:
        self._is_subreaper = is_subreaper and prctl(PR_SET_CHILD_SUBREAPER, 1)
        self._poll = HostPoll(host)
        self._child = 0
        self._killing = False

    def run(self, stdio: list[int]) -> None:
        """Run until the child and all processes that it started are gone."""
        order = read_order()
        if order is None:
            return
        try:
            self._child = start(order, stdio)
        except ChildSetupError as failure:
            report(b"failed " + failure.words)
            return
        report(b"started %d" % self._child)
        while self._reap():
            if self._killing and not self._signal(signal.SIGKILL):
                return
            if self._poll.wait(self._timeout_ms()):
                self._receive_orders()
            self._killing = self._killing or not self._poll.is_connected

    def _timeout_ms(self) -> int | None:
        if self._killing:
            return RETRY_MS
        return None if self._is_subreaper else GROUP_POLL_MS

    def _receive_orders(self) -> None:
        orders = read(64)
        if not orders:
            self._poll.disconnect()
        if b"T" in orders:
            self._signal(signal.SIGTERM)
        if b"K" in orders:
            self._killing = True

    def _reap(self) -> bool:
        ended, left = reap()
        if self._child in ended:
            report(b"exited %d" % ended[self._child])
        return left or (not self._is_subreaper and send(os.killpg, {self._child}, 0))

    def _signal(self, number: int) -> bool:
        # The group of an unreaped child never belongs to a stranger. Its number is not reused while the group has a
        # member, and only processes of our child can have joined it.
        kept = children() if self._is_subreaper else None
        groups = {self._child} if kept is None else {os.getpgid(pid) for pid in kept}
        return send(os.killpg, groups, number)


def read_order() -> bytes | None:
    """Read one order from the line. Return None if the line ends first."""
    header = read_exactly(4)
    return header and read_exactly(int.from_bytes(header, "big"))


def read_exactly(size: int) -> bytes | None:
    """Read `size` bytes from the line. Return None if the line ends first."""
    data = bytearray()
    while len(data) < size:
        piece = read(size - len(data))
        if not piece:
            return None
        data += piece
    return bytes(data)


def read(size: int) -> bytes:
    """Read the available bytes of the line. Return empty bytes at its end."""
    try:
        return os.read(LINE, size)
    except ConnectionError:  # closed while some of our bytes were unread
        return b""


def report(text: bytes, line: int = LINE) -> None:
    """Send a report to the host, if it is still connected."""
    try:
        os.write(line, text + b"\n")
    except ConnectionError:
        return


class ChildSetupError(Exception):
    """The step at which a fork failed to become the requested program."""

    def __init__(self, stage: bytes, number: int) -> None:
        self.words = b"%s %d" % (stage, number)


def start(order: bytes, stdio: list[int]) -> int:
    """Start the program of an order and return its pid. Raises ChildSetupError."""
    # The fork writes its failure into this pipe. A successful exec closes the pipe, so that nothing is read from it.
    reading, writing = os.pipe()
    monitor = os.getpid()
    try:
        pid = os.fork()
    except OSError as error:
        raise ChildSetupError(b"fork", error.errno or 0) from None
    if pid == 0:
        exec_order(order, stdio, monitor, writing)
    for descriptor in (writing, *stdio):
        os.close(descriptor)
    stage, _, number = os.read(reading, 64).partition(b" ")
    os.close(reading)
    if stage:
        os.waitpid(pid, 0)
        raise ChildSetupError(stage, int(number))
    return pid


def exec_order(order: bytes, stdio: list[int], monitor: int, failure_pipe: int) -> "NoReturn":
    """Run the program of an order in this fork. If that fails, write the failure to `failure_pipe`."""
    directory, count, *rest = order.split(b"\0")
    arguments, variables = rest[: int(count)], rest[int(count) :]
    try:
        os.setsid()
        restore_signals()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != monitor:  # the monitor died before the kernel watched it
            os._exit(1)
        for number, descriptor in enumerate(stdio):
            os.dup2(descriptor, number)
        enter(directory)
        execute(arguments, dict(variable.split(b"=", 1) for variable in variables))
    except ChildSetupError as failure:
        os.write(failure_pipe, failure.words)
    finally:
        os._exit(127)


def restore_signals() -> None:
    """Restore the signal dispositions and the mask of a fresh login."""
    for number in range(1, signal.NSIG):
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):  # SIGKILL, SIGSTOP and signals that libc reserves
            continue
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def enter(directory: bytes) -> None:
    """Change to the working directory of an order."""
    try:
        os.chdir(directory)
    except OSError as error:
        raise ChildSetupError(b"cwd", error.errno or 0) from None


def execute(arguments: list[bytes], environment: dict[bytes, bytes]) -> None:
    """Execute the command. If it has no slash, look it up in the PATH of the order's environment."""
    failure = ChildSetupError(b"missing", 0)
    for path in candidates(arguments[0], environment):
        try:
            os.execve(path, arguments, environment)  # noqa: S606 -- deliberately without a shell
        except (FileNotFoundError, NotADirectoryError) as error:
            if os.path.isfile(path):  # noqa: PTH113 -- pathlib costs 8 ms
                raise ChildSetupError(b"interpreter", error.errno or 0) from None
        except PermissionError as error:
            # A PATH folder without search permission says nothing about the command.
            if path == arguments[0] or os.path.exists(path):  # noqa: PTH110 -- as above
                failure = ChildSetupError(b"exec", error.errno or 0)
        except OSError as error:
            raise ChildSetupError(b"exec", error.errno or 0) from None
    raise failure


def candidates(command: bytes, environment: dict[bytes, bytes]) -> list[bytes]:
    """Return the paths at which a command may be. The first that works counts."""
    if b"/" in command:
        return [command]
    folders = environment.get(b"PATH", os.fsencode(os.defpath)).split(b":")
    # An empty entry means the working directory. Running a command from there could run an untrusted program.
    return [folder + b"/" + command for folder in folders if folder]
